//! Thinking that is ended in the model's place: by a budget, or by a person who wants the answer.

use std::ops::ControlFlow;

use models::cache::Cache;
use models::families::FAMILIES;
use models::generate::{Limits, sync_count};
use models::registry::Pair;
use models::{
    Engine, GenerateRequest, Generated, GenerationEvent, Message, Prompt, Role, SamplingParams, Sink, Speculation,
    ThinkingEnd,
};
use tests::{builtin, cache_difference, engine_with_builtin, golden, greedy, load, start};

const QUESTION: &str = "What is the capital of France?";

fn sampled() -> SamplingParams {
    SamplingParams {
        temperature: 0.8,
        seed: 3,
        ..SamplingParams::default()
    }
}

/// Says `said` after `cut` tokens and goes on up to `all`, counting waits.
fn run_said(
    pair: &dyn Pair,
    block: Option<usize>,
    sampling: &SamplingParams,
    cut: usize,
    rows: usize,
) -> (Vec<u32>, Cache) {
    const SAID: [u32; 5] = [21, 4, 77, 4, 102];
    const ALL: usize = 30;
    let limits = Limits {
        max_tokens: ALL,
        eos: Vec::new(),
    };
    let sampler = pair.sampler(sampling).unwrap();
    let mut decoder = start(pair, &sampler, &[11, 5, 93, 40, 7], block, None, limits);
    let (mut tokens, waits, mut rounds) = (Vec::new(), sync_count(), 0);
    decoder.hold(cut);
    while let Some(round) = decoder.next_round().unwrap() {
        rounds += 1;
        tokens.extend(round.tokens);
        if tokens.len() == cut {
            decoder.say(&SAID, rows).unwrap();
            tokens.extend(SAID);
            decoder.hold(usize::MAX);
        } else if tokens.len() < cut {
            decoder.hold(cut - tokens.len());
        }
    }
    assert_eq!(tokens.len(), ALL);
    assert_eq!(tokens[cut..cut + SAID.len()], SAID);
    assert_eq!(
        sync_count() - waits,
        rounds,
        "one wait a round, and none for what is said"
    );
    (tokens, decoder.finish().unwrap())
}

#[test]
fn what_is_said_in_the_models_place_is_said_the_same_with_drafts() {
    for family in FAMILIES {
        let pair = load(&golden(family.name).join("hf"), None);
        let penalised = SamplingParams {
            presence_penalty: 0.5,
            ..sampled()
        };
        for setting in [greedy(), penalised] {
            for cut in [1, 2, 5] {
                let plain = run_said(pair.as_ref(), None, &setting, cut, 1);
                for block in [2, 4, 6] {
                    let case = format!("{}, cut {cut}, block {block}, {setting:?}", family.name);
                    let mtp = run_said(pair.as_ref(), Some(block), &setting, cut, block);
                    assert_eq!(mtp.0, plain.0, "{case}");
                    assert_eq!(cache_difference(&mtp.1, &plain.1), None, "{case}");
                }
            }
        }
    }
}

fn request(sampling: SamplingParams, speculation: Speculation, budget: Option<usize>) -> GenerateRequest {
    GenerateRequest {
        sampling,
        speculation,
        thinking: Some(true),
        thinking_budget: budget,
        max_tokens: Some(56),
        ..GenerateRequest::new(Prompt::Messages(vec![said(Role::User, QUESTION)]))
    }
}

fn said(role: Role, content: &str) -> Message {
    Message {
        role,
        content: content.to_owned(),
        reasoning: None,
    }
}

fn go_on(_: GenerationEvent) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn generate(engine: &Engine, request: GenerateRequest) -> Generated {
    engine.generate(request, Box::new(go_on)).unwrap()
}

/// Wants the answer after this many rounds, and keeps what the rounds added.
struct Impatient {
    rounds: usize,
    patience: usize,
    ids: std::sync::mpsc::Sender<Vec<u32>>,
}

impl Sink for Impatient {
    fn event(&mut self, event: GenerationEvent) -> ControlFlow<()> {
        if let GenerationEvent::Round { round, .. } = event {
            self.rounds += usize::from(!round.said);
            self.ids.send(round.tokens).unwrap();
        }
        ControlFlow::Continue(())
    }

    fn wants_answer(&self) -> bool {
        self.rounds >= self.patience
    }
}

#[test]
fn a_budget_ends_thinking_at_the_same_token_with_speculation_on_and_off() {
    let engine = engine_with_builtin();
    for (setting, budgets) in [(greedy(), &[0, 1, 5, 8, 1000][..]), (sampled(), &[1, 5])] {
        let free = generate(&engine, request(setting.clone(), Speculation::Off, None));
        assert_eq!(free.stats.thought.ended, None);
        for &budget in budgets {
            let plain = generate(&engine, request(setting.clone(), Speculation::Off, Some(budget)));
            let thought = &plain.stats.thought;
            if budget >= free.stats.thought.tokens && thought.ended.is_none() {
                assert_eq!(
                    plain.tokens, free.tokens,
                    "a budget that is not reached changes nothing"
                );
            } else {
                assert_eq!((thought.tokens, thought.ended), (budget, Some(ThinkingEnd::Budget)));
                assert!(plain.text.contains("</think>\n\n") && !thought.is_open);
                assert_eq!(plain.reasoning.contains("limited time"), budget > 0);
                assert!(free.tokens.starts_with(&plain.tokens[..budget]));
            }
            let blocks: &[usize] = if budget == 5 { &[2, 3, 6] } else { &[4] };
            let arms = blocks
                .iter()
                .copied()
                .map(Speculation::Block)
                .chain([Speculation::Auto]);
            for arm in arms {
                let mtp = generate(&engine, request(setting.clone(), arm, Some(budget)));
                let case = format!("budget {budget}, {arm:?}, {setting:?}");
                assert_eq!((&mtp.tokens, &mtp.text), (&plain.tokens, &plain.text), "{case}");
                let own = mtp.stats.thought;
                assert_eq!((own.tokens, own.ended), (thought.tokens, thought.ended), "{case}");
            }
        }
    }
}

#[test]
fn an_answer_at_once_is_what_a_budget_of_as_many_tokens_gives() {
    let engine = engine_with_builtin();
    let mut last = None;
    for speculation in [Speculation::Off, Speculation::Block(4)] {
        for patience in 1..=3 {
            let (ids, heard) = std::sync::mpsc::channel();
            let sink = Impatient {
                rounds: 0,
                patience,
                ids,
            };
            let asked = engine
                .generate(request(sampled(), speculation, None), Box::new(sink))
                .unwrap();
            let thought = &asked.stats.thought;
            assert_eq!(thought.ended, Some(ThinkingEnd::Person), "{speculation:?}, {patience}");
            if speculation == Speculation::Off {
                assert_eq!(thought.tokens, patience, "within one round");
            }
            let heard: Vec<u32> = heard.iter().flatten().collect();
            assert!(heard.starts_with(&asked.tokens), "the rounds add up to the reply");
            let budget = generate(&engine, request(sampled(), Speculation::Off, Some(thought.tokens)));
            assert_eq!(asked.tokens, budget.tokens, "{speculation:?}, {patience}");
            last = Some(asked);
        }
    }
    // What is held of the conversation is what reading it anew gives.
    let answer = last.unwrap().answer;
    let next = |fresh| GenerateRequest {
        fresh,
        max_tokens: Some(12),
        thinking: Some(false),
        ..GenerateRequest::new(Prompt::Messages(vec![
            said(Role::User, QUESTION),
            said(Role::Assistant, &answer),
            said(Role::User, "And of Italy?"),
        ]))
    };
    assert_eq!(
        generate(&engine, next(false)).tokens,
        generate(&engine, next(true)).tokens
    );
}

#[test]
fn a_reply_whose_thinking_was_ended_goes_on_from_anywhere() {
    let engine = engine_with_builtin();
    let whole = generate(&engine, request(sampled(), Speculation::Off, Some(3)));
    // Inside the thinking, at its end, inside what was said in the model's place, and behind it.
    for cut in [1, 3, 4, 9, whole.tokens.len() - 1] {
        let rest = GenerateRequest {
            continued: whole.tokens[..cut].to_vec(),
            max_tokens: Some(56 - cut),
            ..request(sampled(), Speculation::Block(4), Some(3))
        };
        let joined = generate(&engine, rest);
        assert_eq!(joined.tokens, whole.tokens, "cut at {cut}");
        let (own, all) = (joined.stats.thought, &whole.stats.thought);
        assert_eq!((own.tokens, own.ended), (all.tokens, all.ended), "cut at {cut}");
    }
    for limit in [2, 3, 4, 8] {
        let cut = generate(
            &engine,
            GenerateRequest {
                max_tokens: Some(limit),
                ..request(sampled(), Speculation::Block(4), Some(3))
            },
        );
        assert_eq!(cut.tokens, whole.tokens[..limit], "cut by the limit");
        assert!(limit < 5 || cut.thinking_used_budget, "there is no answer");
    }
}

/// A model that says a line break, opens a block of thinking and goes on, all in one round of drafts: nobody could know
/// beforehand where that round has to end.
#[test]
fn thinking_that_begins_and_is_over_inside_one_round_is_cut_there() {
    let engine = engine_with_builtin();
    let tokenizer = models::text::Tokenizer::load(&builtin("target")).unwrap();
    let one = |text: &str| match tokenizer.encode(text).unwrap()[..] {
        [id] => id,
        ref other => panic!("{text:?} is {other:?}"),
    };
    let bias = ["\n\n", "<think>", "a", "b"].map(one);
    let wanted = SamplingParams {
        // Once said, the next one is the likeliest.
        logit_bias: bias.iter().copied().zip([1000.0, 900.0, 800.0, 700.0]).collect(),
        presence_penalty: 500.0,
        ..greedy()
    };
    let ask = |speculation, budget| GenerateRequest {
        thinking: None,
        max_tokens: Some(40),
        ..request(wanted.clone(), speculation, Some(budget))
    };
    for budget in 0..3 {
        let plain = generate(&engine, ask(Speculation::Off, budget));
        assert!(plain.tokens.starts_with(&bias[..2]), "{:?}", plain.text);
        assert_eq!(plain.stats.thought.ended, Some(ThinkingEnd::Budget), "{:?}", plain.text);
        assert_eq!(plain.stats.thought.tokens, budget);
        for block in [3, 6] {
            let mtp = generate(&engine, ask(Speculation::Block(block), budget));
            assert_eq!(mtp.tokens, plain.tokens, "budget {budget}, block {block}");
            assert_eq!(mtp.stats.tokens, mtp.tokens.len());
        }
    }
}
