//! The trained checkpoints through the engine: the same text with speculation on and off, and drafts that are accepted.
//!
//! A short selection by default; `SLIPSTREAM_FULL=1` runs ten prompts of 300 tokens at every block size and temperature, and
//! compares acceptance at every block size that was published.

use std::ops::ControlFlow;
use std::path::PathBuf;

use models::{
    Engine, GenerateRequest, Generated, GenerationEvent, LoadRequest, Message, Prompt, Role, SamplingParams,
    Speculation,
};
use tests::{builtin, trained};

const PROMPTS: &[&str] = &[
    "What is the capital of France?",
    "Explain how a stack works.",
    "Write a haiku about the sea.",
    "What is 12 + 30?",
    "Write a short story about a lighthouse keeper.",
    "Write a Python function that reverses a string.",
    "Explain what a checksum is.",
    "What is the capital of Japan?",
];
const RAW: &[&str] = &["The package manager keeps a list of", "A file system is"];

fn full() -> bool {
    std::env::var_os("SLIPSTREAM_FULL").is_some()
}

fn pairs() -> Vec<(&'static str, PathBuf, Option<PathBuf>)> {
    let mut pairs = vec![("built-in 4-bit", builtin("target"), Some(builtin("drafter")))];
    for (folder, name) in [
        ("qwen35-tiny", "qwen35-tiny bf16"),
        ("inkling-tiny", "inkling-tiny bf16"),
    ] {
        match trained(folder) {
            Some(dir) => pairs.push((name, dir, None)),
            None => eprintln!("skipped: {folder} is not here (CHECKPOINTS_ROOT)"),
        }
    }
    pairs
}

fn chat(text: &str) -> Prompt {
    Prompt::Messages(vec![Message {
        role: Role::User,
        content: text.to_owned(),
        reasoning: None,
    }])
}

/// The first so many chat and raw prompts.
fn prompts(chats: usize, raws: usize) -> Vec<Prompt> {
    PROMPTS
        .iter()
        .take(chats)
        .map(|text| chat(text))
        .chain(RAW.iter().take(raws).map(|t| Prompt::Raw((*t).to_owned())))
        .collect()
}

fn generate(
    engine: &Engine,
    prompt: &Prompt,
    n: usize,
    ignore_eos: bool,
    speculation: Speculation,
    temperature: f32,
) -> Generated {
    let request = GenerateRequest {
        speculation,
        max_tokens: Some(n),
        ignore_eos,
        sampling: SamplingParams {
            temperature,
            top_p: 0.95,
            top_k: 40,
            seed: 17,
            ..SamplingParams::default()
        },
        ..GenerateRequest::new(prompt.clone())
    };
    engine
        .generate(request, Box::new(|_: GenerationEvent| ControlFlow::Continue(())))
        .unwrap()
}

#[test]
fn trained_checkpoints_say_the_same_with_speculation_on_and_off() {
    let (n, selection) = if full() {
        (300, prompts(8, 2))
    } else {
        (48, prompts(1, 1))
    };
    let blocks: &[usize] = if full() { &[2, 3, 4, 5, 6] } else { &[3, 5] };
    for (name, target, drafter) in pairs() {
        let engine = Engine::start();
        engine
            .load(LoadRequest {
                target,
                drafter,
                ..LoadRequest::default()
            })
            .unwrap();
        let temperatures: &[f32] = if full() { &[0.0, 0.7, 1.0] } else { &[0.0, 1.0] };
        for &temperature in temperatures {
            let mut figures = vec![(0, 0, 0); blocks.len()];
            for (i, prompt) in selection.iter().enumerate() {
                let plain = generate(&engine, prompt, n, true, Speculation::Off, temperature);
                assert!(!plain.stats.speculation.enabled);
                for (block, sum) in blocks.iter().zip(&mut figures) {
                    let mtp = generate(&engine, prompt, n, true, Speculation::Block(*block), temperature);
                    assert!(mtp.stats.speculation.enabled);
                    assert_eq!(
                        mtp.tokens, plain.tokens,
                        "{name}, prompt {i}, block {block}, temperature {temperature}"
                    );
                    assert_eq!((&mtp.text, mtp.finish), (&plain.text, plain.finish));
                    let s = &mtp.stats.speculation;
                    *sum = (sum.0 + s.rounds, sum.1 + s.drafted, sum.2 + s.accepted);
                }
            }
            for (block, (rounds, drafted, accepted)) in blocks.iter().zip(&figures) {
                let rate = *accepted as f64 / *drafted as f64;
                eprintln!(
                    "{name}, temperature {temperature}, block {block}: {:.2} tokens a round, {:.1} % of {drafted} drafts",
                    *accepted as f64 / *rounds as f64 + 1.0,
                    rate * 100.0
                );
                // Shared noise keeps drafts close to the target's choices at any temperature.
                assert!(
                    rate > 0.2,
                    "{name}: only {rate} accepted at block {block}, temperature {temperature}"
                );
            }
        }
    }
}

/// Figures of a checkpoint's README (mlx-vlm, up to 96 greedy tokens, eight chat and two raw prompts): block size and
/// share of drafts accepted; and ten prompts of the kinds it names (capital, sum, haiku, story, two explanations, two of
/// code, two raw), on which mlx-vlm gives those figures to within 0.02. The READMEs do not give their own prompts.
struct Published {
    figures: [(usize, f64); 3],
    prompts: [&'static str; 10],
}

const FOUR_BIT: Published = Published {
    figures: [(3, 0.79), (4, 0.72), (5, 0.64)],
    prompts: [
        "What is the capital of Japan?",
        "What is 45 + 17?",
        "Write a haiku about autumn.",
        "Write a short story about a robot.",
        "What is recursion?",
        "Explain what an operating system does.",
        "Write a Rust function that checks whether a number is prime.",
        "Write a function in Python that returns the Fibonacci numbers.",
        "The package manager keeps a list of",
        "The kernel provides",
    ],
};

const BF16: Published = Published {
    figures: [(3, 0.83), (4, 0.75), (5, 0.70)],
    prompts: [
        "What is the capital of Italy?",
        "What is 12 + 30?",
        "Write a haiku about autumn.",
        "Write a short story about a robot.",
        "What is a compiler?",
        "Explain how a stack works.",
        "Write a Python function that reverses a string.",
        "Write a function in Python that returns the Fibonacci numbers.",
        "The package manager keeps a list of",
        "A file system is",
    ],
};

/// No more than this below the published figure. What is left is counting: drafts behind an end token count as accepted
/// there and not at all here.
const SLACK: f64 = 0.02;

#[test]
fn greedy_drafts_are_accepted_as_often_as_published() {
    for (name, target, drafter) in pairs() {
        let published = match name {
            "built-in 4-bit" => FOUR_BIT,
            "qwen35-tiny bf16" => BF16,
            _ => continue,
        };
        let engine = Engine::start();
        engine
            .load(LoadRequest {
                target,
                drafter,
                ..LoadRequest::default()
            })
            .unwrap();
        let prompts = published.prompts.iter().enumerate();
        let prompts: Vec<Prompt> = prompts
            .map(|(i, text)| {
                if i < 8 {
                    chat(text)
                } else {
                    Prompt::Raw((*text).to_owned())
                }
            })
            .collect();
        for (block, figure) in published.figures.into_iter().take(if full() { 3 } else { 1 }) {
            let (mut drafted, mut accepted) = (0, 0);
            for prompt in &prompts {
                let s = generate(&engine, prompt, 96, false, Speculation::Block(block), 0.0)
                    .stats
                    .speculation;
                (drafted, accepted) = (drafted + s.drafted, accepted + s.accepted);
            }
            let rate = accepted as f64 / drafted as f64;
            eprintln!("{name}, block {block}: {rate:.3} accepted, published {figure:.2}");
            assert!(rate >= figure - SLACK, "{name}, block {block}: {rate}");
        }
    }
}
