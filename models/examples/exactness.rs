//! What exactness costs on this machine: `exactness TARGET [DRAFTER|-] [TOKENS]`.
//!
//! Prints what the self-check found, then runs the same prompts plainly, with exact speculation and with fast native
//! kernels, and compares the ids. The report is meant to be pasted. It links no window system, so it also runs on a bare
//! GPU machine.
#![allow(clippy::print_stdout)]

use std::ops::ControlFlow;

use models::{
    Calibration, Engine, Exactness, GenerateRequest, Generated, GenerationEvent, LoadRequest, Prompt, SamplingParams,
    Speculation,
};

fn main() -> Result<(), models::Error> {
    models::prepare_process();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize| args.get(i).map(String::as_str).filter(|a| *a != "-");
    let tokens = arg(2).and_then(|n| n.parse().ok()).unwrap_or(300);
    let engine = Engine::start();
    let loaded = engine.load(LoadRequest {
        target: arg(0).unwrap_or("assets/builtin/target").into(),
        drafter: arg(1).map(Into::into),
        calibration: Calibration::On {
            conditions: String::new(),
        },
        ..LoadRequest::default()
    })?;
    println!("{}; loaded and checked in {:.0} ms", loaded.check_key, loaded.load_ms);
    let Some(check) = &loaded.self_check else {
        println!("no drafter, so nothing was checked: {:?}", loaded.drafter);
        return Ok(());
    };
    println!("a block equals single steps up to {} tokens; operations:", check.block);
    for op in &check.ops {
        let way = match (op.is_native(), op.gathered) {
            (true, _) => "as it is".to_owned(),
            (_, true) => "gathered".to_owned(),
            _ => format!("in parts of {}", op.rows),
        };
        println!("  {}: {way}", op.op);
    }
    if let Some(costs) = &loaded.costs {
        for (rows, ms) in &costs.verify_ms {
            println!(
                "a pass over {rows} tokens: {ms:.2} ms, {:.2} of one",
                costs.ratio(*rows)
            );
        }
        println!(
            "a draft: {:.2} ms; automatic depth begins with {} drafts",
            costs.draft_ms, loaded.auto_depth
        );
    }
    // Ids rather than text, so that checkpoints without a tokenizer can run too.
    let prompts: Vec<Vec<u32>> = (1..5u32)
        .map(|k| (0..40).map(|i| (i * 37 * k + k) % 140 + 4).collect())
        .collect();
    let one = |prompt: &[u32], temperature: f32, speculation, exactness| -> Result<Generated, models::Error> {
        let request = GenerateRequest {
            max_tokens: Some(tokens),
            ignore_eos: true,
            fresh: true,
            speculation,
            exactness,
            sampling: SamplingParams {
                temperature,
                seed: 7,
                ..SamplingParams::default()
            },
            ..GenerateRequest::new(Prompt::Ids(prompt.to_vec()))
        };
        engine.generate(request, Box::new(|_: GenerationEvent| ControlFlow::Continue(())))
    };
    // Kernels are compiled at their first use.
    let configurations = || {
        let exact = [2, 3, 4, 8].map(|block| (Speculation::Block(block), Exactness::Exact));
        let more = [
            (Speculation::Auto, Exactness::Exact),
            (Speculation::Block(3), Exactness::Fast),
        ];
        exact.into_iter().chain(more)
    };
    for (speculation, exactness) in configurations() {
        one(&prompts[0], 0.0, speculation, exactness)?;
    }
    let mut plain = Vec::new();
    for temperature in [0.0, 0.8] {
        for prompt in &prompts {
            plain.push((
                temperature,
                prompt,
                one(prompt, temperature, Speculation::Off, Exactness::Exact)?,
            ));
        }
    }
    let speed = |runs: &[f64]| runs.iter().sum::<f64>() / runs.len() as f64;
    let speeds: Vec<f64> = plain.iter().map(|(.., g)| g.stats.decode_tokens_per_second).collect();
    let base = speed(&speeds);
    println!("plain: {base:.1} tokens/s");
    for (speculation, exactness) in configurations() {
        let mut state = String::new();
        let (mut speeds, mut same, mut rounds, mut first) = (Vec::new(), 0, Vec::new(), None);
        for (temperature, prompt, expected) in &plain {
            let run = one(prompt, *temperature, speculation, exactness)?;
            speeds.push(run.stats.decode_tokens_per_second);
            rounds.push(run.stats.speculation.tokens_per_round);
            state = run.stats.speculation.state.sentence();
            same += usize::from(run.tokens == expected.tokens);
            let differs = run.tokens.iter().zip(&expected.tokens).position(|(a, b)| a != b);
            first = first.into_iter().chain(differs).min();
        }
        let now = speed(&speeds);
        println!(
            "{} {speculation:?}: {same} of {} runs equal plain{}; {now:.1} tokens/s, {:.2}x plain, {:.2} tokens a round ({state})",
            exactness.as_str(),
            plain.len(),
            first.map_or_else(String::new, |f| format!(", first difference at token {f}")),
            now / base,
            speed(&rounds),
        );
    }
    Ok(())
}
