//! Automatic depth: however the number of drafts changes from round to round, the text, the caches and the one wait a
//! round stay.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use models::cache::Cache;
use models::families::FAMILIES;
use models::generate::{Controller, Costs, Depth, Limits, sync_count};
use models::registry::{Pair, StartRequest};
use models::sampler::Sampler;
use models::{
    Acceptance, Calibration, ControllerState, Engine, Exactness, GenerateRequest, GenerationEvent, LoadRequest,
    Measured, Prompt, SamplingParams, Speculation, SpeculationState,
};
use tests::{builtin, cache_difference, golden, greedy, ids, json, load, run};

/// What one run with automatic depth did.
struct Ran {
    tokens: Vec<u32>,
    cache: Cache,
    plain: usize,
    drafting: usize,
}

fn automatic(
    pair: &dyn Pair,
    prompt: &[u32],
    controller: &Rc<RefCell<Controller>>,
    sampling: &SamplingParams,
    n: usize,
) -> Ran {
    let sampler = pair.sampler(sampling).unwrap();
    let limits = Limits {
        max_tokens: n,
        eos: Vec::new(),
    };
    let mut progress = |_| ControlFlow::Continue(());
    let before = sync_count();
    let request = StartRequest {
        depth: Some(Depth::Measured(controller.clone())),
        ..StartRequest::new(prompt, limits, &mut progress)
    };
    let mut decoder = pair.start(&sampler, request).unwrap().unwrap();
    let (mut tokens, mut rounds) = (Vec::new(), Vec::new());
    while let Some(round) = decoder.next_round().unwrap() {
        tokens.extend(&round.tokens);
        rounds.push(round.drafted);
    }
    assert_eq!(sync_count() - before, rounds.len(), "one wait a round");
    let cache = decoder.finish().unwrap();
    let drafting = rounds.iter().filter(|drafted| **drafted > 0).count();
    Ran {
        tokens,
        cache,
        plain: rounds.len() - drafting - 1,
        drafting,
    }
}

fn costs(verify: &[(usize, f64)], draft_ms: f64) -> Option<Costs> {
    Some(Costs {
        verify_ms: verify.to_vec(),
        draft_ms,
    })
}

/// Controllers that begin differently: parked, drafting, and not knowing what a plain step costs.
fn controllers() -> [(&'static str, Rc<RefCell<Controller>>); 3] {
    let new = |costs, own| Rc::new(RefCell::new(Controller::new(costs, 7, own)));
    [
        ("parked", new(costs(&[(1, 1.0), (2, 50.0), (8, 400.0)], 50.0), 3)),
        ("drafting", new(costs(&[(1, 100.0), (8, 101.0)], 0.1), 3)),
        ("unmeasured", new(None, 3)),
    ]
}

#[test]
fn no_schedule_changes_a_token_or_a_cache() {
    for family in FAMILIES {
        let dir = golden(family.name);
        let prompt = ids(&json(&dir.join("ref.json"))["prompt_short"]);
        let pair = load(&dir.join("hf"), None);
        let with_penalties = SamplingParams {
            temperature: 0.8,
            repetition_penalty: 1.2,
            frequency_penalty: 0.1,
            seed: 3,
            ..SamplingParams::default()
        };
        let mut seen = (0, 0);
        for sampling in [greedy(), with_penalties] {
            let plain = run(pair.as_ref(), &prompt, None, &sampling, 130);
            for (name, controller) in controllers() {
                // Twice with one controller: the second starts with what the first taught it.
                for turn in 0..2 {
                    let ran = automatic(pair.as_ref(), &prompt, &controller, &sampling, 130);
                    let what = format!("{} {name} {turn}", family.name);
                    assert_eq!(ran.tokens, plain.tokens, "{what}");
                    assert_eq!(cache_difference(&ran.cache, &plain.cache), None, "{what}");
                    seen = (seen.0 + ran.plain, seen.1 + ran.drafting);
                }
            }
        }
        // How many of each is the clock's affair; both kinds there always are.
        assert!(seen.0 >= 8 && seen.1 >= 8, "{}: {seen:?}", family.name);
    }
}

#[test]
fn a_run_that_ends_at_any_token_leaves_the_cache_of_a_plain_one() {
    let dir = golden("qwen3_5");
    let prompt = ids(&json(&dir.join("ref.json"))["prompt_short"]);
    let pair = load(&dir.join("mlx-q4"), Some(&dir.join("mlx-q4-mtp")));
    for n in 1..24 {
        let plain = run(pair.as_ref(), &prompt, None, &greedy(), n);
        for (name, controller) in controllers() {
            let ran = automatic(pair.as_ref(), &prompt, &controller, &greedy(), n);
            assert_eq!(ran.tokens, plain.tokens, "{name}, {n} tokens");
            assert_eq!(cache_difference(&ran.cache, &plain.cache), None, "{name}, {n} tokens");
        }
    }
}

/// A stop may come while a plain step is queued ahead.
#[test]
fn a_run_stopped_at_any_round_leaves_the_cache_of_a_plain_one() {
    let dir = golden("inkling");
    let prompt = ids(&json(&dir.join("ref.json"))["prompt_short"]);
    let pair = load(&dir.join("hf"), None);
    let sampler = pair.sampler(&greedy()).unwrap();
    for (name, controller) in controllers() {
        for rounds in [1, 2, 3, 5, 8, 13, 21, 40] {
            let mut progress = |_| ControlFlow::Continue(());
            let limits = Limits {
                max_tokens: 300,
                eos: Vec::new(),
            };
            let request = StartRequest {
                depth: Some(Depth::Measured(controller.clone())),
                ..StartRequest::new(&prompt, limits, &mut progress)
            };
            let mut decoder = pair.start(&sampler, request).unwrap().unwrap();
            let mut n = 0;
            for _ in 0..rounds {
                n += decoder.next_round().unwrap().unwrap().tokens.len();
            }
            let cache = decoder.finish().unwrap();
            let plain = run(pair.as_ref(), &prompt, None, &greedy(), n);
            assert_eq!(cache_difference(&cache, &plain.cache), None, "{name}, {rounds} rounds");
        }
    }
}

/// Rounds of a run, each with its tokens, drafts and accepted drafts.
fn rounds_of(
    pair: &dyn Pair,
    sampler: &Sampler,
    request: StartRequest<'_>,
    mut between: impl FnMut(usize),
) -> Vec<models::generate::Round> {
    let mut decoder = pair.start(sampler, request).unwrap().unwrap();
    let mut rounds = Vec::new();
    while let Some(round) = decoder.next_round().unwrap() {
        rounds.push(round);
        between(rounds.len());
    }
    rounds
}

/// The drafter is told of plain rounds before it drafts again: its drafts are then those of one that never was left out.
#[test]
fn drafts_after_a_parked_stretch_are_those_of_a_drafter_that_saw_it_all() {
    let pair = load(&builtin("target"), Some(&builtin("drafter")));
    let text = "Question: Tell me about the sea.\nAnswer:";
    let prompt = models::text::Tokenizer::load(&builtin("target"))
        .unwrap()
        .encode(text)
        .unwrap();
    let new = |costs| Controller::new(costs, 2, 2);
    let mut compared = 0;
    // Fewer than it is fed at once, and more.
    for (seed, parked) in [(1, 30), (2, 41), (3, 75)] {
        let sampling = SamplingParams {
            temperature: 0.8,
            seed,
            ..SamplingParams::default()
        };
        let sampler = pair.sampler(&sampling).unwrap();
        let limits = Limits {
            max_tokens: parked + 24,
            eos: Vec::new(),
        };
        let controller = Rc::new(RefCell::new(new(costs(&[(1, 1.0), (2, 50.0), (8, 400.0)], 50.0))));
        let mut progress = |_| ControlFlow::Continue(());
        let request = StartRequest {
            depth: Some(Depth::Measured(controller.clone())),
            ..StartRequest::new(&prompt, limits.clone(), &mut progress)
        };
        let rounds = rounds_of(pair.as_ref(), &sampler, request, |done| {
            if done == parked {
                // From here on drafts are believed to pay, whatever the clock said.
                controller.replace(new(costs(&[(1, 100.0), (8, 101.0)], 0.1)));
            }
        });
        let tokens: Vec<u32> = rounds.iter().flat_map(|r| r.tokens.clone()).collect();
        let first = rounds.iter().position(|r| r.drafted > 0).unwrap();
        assert!(first >= parked - 8, "it had drafted before: {first}");
        let before: usize = rounds[..first].iter().map(|r| r.tokens.len()).sum();

        let request = StartRequest {
            depth: Some(Depth::Fixed(2)),
            replay: &tokens[..before - 1],
            ..StartRequest::new(&prompt, limits, &mut progress)
        };
        let whole = rounds_of(pair.as_ref(), &sampler, request, |_| {});
        // Four rounds are drafted for before the controller judges.
        let shown = |rounds: &[models::generate::Round]| -> Vec<(usize, usize)> {
            rounds.iter().take(4).map(|r| (r.drafted, r.accepted)).collect()
        };
        assert_eq!(shown(&rounds[first..]), shown(&whole[1..]), "seed {seed}");
        compared += rounds[first..].iter().take(4).map(|r| r.accepted).sum::<usize>();
    }
    assert!(compared > 0, "no draft was right, so nothing was compared");
}

#[test]
fn the_engine_measures_once_and_says_what_it_does() {
    let engine = Engine::start();
    let load = |measured, conditions: &str| {
        let request = LoadRequest {
            target: builtin("target"),
            drafter: Some(builtin("drafter")),
            measured,
            calibration: Calibration::On {
                conditions: conditions.to_owned(),
            },
            ..LoadRequest::default()
        };
        engine.load(request).unwrap()
    };
    let first = load(Measured::default(), "mains");
    let costs = first.costs.clone().expect("calibrated");
    let rows: Vec<usize> = costs.verify_ms.iter().map(|(rows, _)| *rows).collect();
    assert_eq!(rows, [1, 2, 3, 4, 6, 8]);
    assert!(
        costs.verify_ms.iter().all(|(_, ms)| *ms > 0.0) && costs.draft_ms > 0.0,
        "{costs:?}"
    );
    assert!(costs.ratio(8) > 0.5, "{costs:?}");

    // Known under the same conditions, and only then; the costs given here say that drafts are a loss.
    let bad = Costs {
        verify_ms: vec![(1, 1.0), (2, 500.0)],
        draft_ms: 500.0,
    };
    let known = Measured {
        costs: vec![(first.costs_key.clone(), bad.clone())],
        ..Measured::default()
    };
    assert_ne!(load(known.clone(), "battery").costs, Some(bad.clone()));
    assert_eq!(load(known, "mains").costs, Some(bad));

    let generate = |speculation, exactness, accept| {
        let request = GenerateRequest {
            max_tokens: Some(12),
            ignore_eos: true,
            speculation,
            exactness,
            accept,
            sampling: SamplingParams {
                temperature: 0.7,
                ..SamplingParams::default()
            },
            ..GenerateRequest::new(Prompt::Ids(vec![5, 9, 11]))
        };
        let go_on = |_: GenerationEvent| ControlFlow::Continue(());
        engine.generate(request, Box::new(go_on)).unwrap().stats.speculation
    };
    let auto = generate(Speculation::Auto, Exactness::Exact, Acceptance::Equality);
    let SpeculationState::Auto(ControllerState::Parked { speedup, .. }) = &auto.state else {
        panic!("{:?}", auto.state);
    };
    assert!(
        *speedup < 1.0 && auto.enabled && auto.block_size == 1 && auto.drafted == 0,
        "{auto:?}"
    );
    assert_eq!((auto.plain_rounds, auto.tokens_per_round), (11, 1.0));
    assert!(
        auto.state.sentence().contains("would be 0.0"),
        "{}",
        auto.state.sentence()
    );

    let fixed = generate(Speculation::Block(5), Exactness::Fast, Acceptance::Equality);
    assert_eq!(fixed.state.sentence(), "on: 4 drafts a round, as asked");
    assert_eq!((fixed.block_size, fixed.plain_rounds), (5, 0));
    // The text hangs on the drafts then, so their number may not hang on the clock.
    let by_chance = generate(Speculation::Auto, Exactness::Exact, Acceptance::Rejection);
    assert_eq!((by_chance.state.name(), by_chance.block_size), ("fixed", 3));
    assert_eq!(
        generate(Speculation::Off, Exactness::Exact, Acceptance::Equality).state,
        SpeculationState::Off
    );
}
