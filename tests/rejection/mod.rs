//! Drafts accepted by chance: what comes out follows the target's distribution, for every filter and block size.
//!
//! The models are Markov chains over a handful of tokens behind the real traits, decoded by the real decoder, so that what
//! should come out is known exactly.

mod bets;
mod chain;
mod play;

use mlx_rs::{Array, ops};
use models::family::Target;
use models::generate::{Decoder, Depth, Limits, Plain, sync_count};
use models::registry::StartRequest;
use models::sampler::Sampler;
use models::{
    Acceptance, Engine, Error, GenerateRequest, LoadRequest, Prompt, SamplingParams, Speculation, SpeculationStats,
};
use tests::{golden, greedy, load};

use bets::{Bet, Bets, Law};
use chain::{Chain, opposites, pair};
use play::*;

fn sampled(seed: u64) -> SamplingParams {
    SamplingParams {
        temperature: 1.0,
        seed,
        ..SamplingParams::default()
    }
}

/// Every filter alone, and together.
fn filters() -> Vec<(&'static str, SamplingParams)> {
    let with = |set: fn(&mut SamplingParams)| {
        let mut params = sampled(11);
        set(&mut params);
        params
    };
    vec![
        ("none", with(|_| ())),
        ("temperature 0.5", with(|p| p.temperature = 0.5)),
        ("temperature 1.5", with(|p| p.temperature = 1.5)),
        ("top-k", with(|p| p.top_k = 2)),
        ("top-p", with(|p| p.top_p = 0.6)),
        ("min-p", with(|p| p.min_p = 0.4)),
        (
            "bias",
            with(|p| p.logit_bias = vec![(1, 1.2), (4, -2.0), (2, f32::NEG_INFINITY)]),
        ),
        (
            "all",
            with(|p| {
                (p.temperature, p.top_k, p.top_p, p.min_p) = (0.8, 4, 0.95, 0.05);
                p.logit_bias = vec![(3, 0.7)];
            }),
        ),
    ]
}

/// Every penalty; they act on a sequence's own tokens, so short sequences show them.
fn penalties() -> Vec<(&'static str, SamplingParams)> {
    let with = |set: fn(&mut SamplingParams)| {
        let mut params = sampled(0);
        set(&mut params);
        params
    };
    vec![
        ("repetition", with(|p| p.repetition_penalty = 2.5)),
        ("presence", with(|p| p.presence_penalty = 1.5)),
        ("frequency", with(|p| p.frequency_penalty = 1.2)),
        (
            "all",
            with(|p| {
                (p.repetition_penalty, p.presence_penalty, p.frequency_penalty) = (1.3, 0.5, 0.4);
                (p.temperature, p.top_k) = (0.9, 4);
            }),
        ),
    ]
}

#[test]
fn every_filter_and_block_size_gives_the_targets_distribution() {
    let (target, drafter) = pair();
    none(
        filters()
            .iter()
            .flat_map(|(name, params)| failures(name, (&target, &drafter), params, 1, 11..12, 600))
            .collect(),
    );
}

#[test]
fn penalties_see_the_accepted_drafts_before_each_position() {
    let (target, drafter) = pair();
    none(
        penalties()
            .iter()
            .flat_map(|(name, params)| failures(name, (&target, &drafter), params, 1, 0..100, 8))
            .collect(),
    );
}

/// Tokens of one round, one after the other: with one uniform number for both, a draft behind an accepted one would be
/// accepted too often.
#[test]
fn positions_of_one_round_are_judged_independently() {
    let (target, drafter) = opposites();
    none(failures("opposites", (&target, &drafter), &sampled(0), 2, 5..6, 2000));
}

/// Drafters at both ends: one that is always right, and one that is sure of the wrong thing.
#[test]
fn a_perfect_drafter_is_always_accepted_and_a_hopeless_one_never() {
    let (target, _) = pair();
    for (_, params) in filters().into_iter().chain(penalties()) {
        let rounds = play((&target, &target), &params, 4, 100);
        assert!(
            rounds[1..rounds.len() - 1].iter().all(|r| r.accepted == 4),
            "{params:?}"
        );
    }
    // Tokens 0 and 1 of the target, 2 to 4 of the drafter.
    let half = |low: bool| {
        let score = |j| if (j < 2) == low { 0.0 } else { f32::NEG_INFINITY };
        Chain(vec![(0..5).map(score).collect(); 5])
    };
    let (target, drafter) = (half(true), half(false));
    let rounds = play((&target, &drafter), &sampled(3), 3, 300);
    assert!(rounds.iter().all(|r| r.accepted == 0));
    let mut bets = Bets::default();
    bets.on(
        (&Law::new(&target, &sampled(3)), &Law::new(&drafter, &sampled(3))),
        &rounds,
    );
    none(bets.failures("disjoint"));
}

/// A drafter with broken scores costs speed and nothing else.
#[test]
fn a_drafter_without_a_distribution_does_not_change_the_targets() {
    let (target, _) = pair();
    let broken = |value: f32| {
        let mut rows = vec![vec![0.0; 5]; 5];
        rows[1][3] = value;
        rows[2] = vec![value; 5];
        Chain(rows)
    };
    let law = Law::new(&target, &sampled(8));
    let mut failures = Vec::new();
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut bet = Bet::default();
        let mut last = PROMPT[1];
        for token in tokens(&play((&target, &broken(value)), &sampled(8), 2, 700)) {
            bet.on(&[last], &law.after(&[last]), token);
            last = token;
        }
        if !bet.is_lost() {
            failures.push(format!("{value}: log stake {:.1}", bet.log_stake));
        }
    }
    none(failures);
}

/// Rounding may leave a rejection without a residual. The token then comes from the target, and is never the draft.
#[test]
fn a_rejection_without_a_residual_draws_from_the_target() {
    let shares = [0.5f64, 0.25, 0.15, 0.1];
    let scores: Vec<f32> = shares.iter().map(|p| p.ln() as f32).collect();
    let sampler = Sampler::new(&sampled(2), 4).unwrap();
    let mut failures = Vec::new();
    for draft in 0..4u32 {
        // Nowhere less than the target's, and e³ times as much at the draft.
        let mut log_q = scores.iter().map(|x| x + 1e-3).collect::<Vec<f32>>();
        log_q[draft as usize] += 3.0;
        let log_q = Array::from_slice(&log_q, &[4]);
        let rows = Array::from_slice(&scores.repeat(2), &[1, 2, 4]);
        let drafts = Array::from_slice(&[draft], &[1, 1]);
        let kept = (-3.001f64).exp();
        let others = 1.0 - shares[draft as usize];
        let claim: Vec<f64> = (0..4)
            .map(|j| {
                if j == draft as usize {
                    kept
                } else {
                    (1.0 - kept) * shares[j] / others
                }
            })
            .collect();
        let judged: Vec<Array> = (0..400)
            .map(|at| {
                sampler
                    .judge_rows(&rows, at, &drafts, std::slice::from_ref(&log_q), &None)
                    .unwrap()
                    .0
            })
            .collect();
        let mut bet = Bet::default();
        for ids in read(&judged).chunks(2) {
            bet.on(&[], &claim, ids[0]);
        }
        if !bet.is_lost() {
            failures.push(format!("draft {draft}: log stake {:.1}", bet.log_stake));
        }
    }
    none(failures);
}

fn read(ids: &[Array]) -> Vec<u32> {
    let all = ops::concatenate(ids, 1).unwrap();
    all.eval().unwrap();
    all.as_slice::<u32>().to_vec()
}

/// The draft at a position and the target's own draw there have noise of their own.
#[test]
fn drafts_do_not_draw_with_the_targets_noise() {
    let (target, _) = pair();
    let params = sampled(4);
    let sampler = Sampler::new(&params, 5).unwrap();
    let (row, p) = (target.row(0), Law::new(&target, &params).after(&[0]));
    let mut bet = Bet::default();
    let both: Vec<Array> = (0..400)
        .flat_map(|at| {
            let draw = sampler.choose(&row, at, &None).unwrap().0;
            [draw, sampler.propose(&row, at, &None).unwrap().0]
        })
        .collect();
    for ids in read(&both).chunks(2) {
        bet.on(&[ids[0]], &p, ids[1]);
    }
    assert!(bet.is_lost(), "log stake {:.1}", bet.log_stake);
}

/// The noise that drew a rejected draft favoured it over its likely rivals, so it must not draw the token in its place.
#[test]
fn the_token_in_a_drafts_place_has_noise_of_its_own() {
    let row = |shares: [f32; 3], rows: usize| {
        let scores: Vec<f32> = shares.iter().map(|p| p.ln()).collect();
        Array::from_slice(&scores.repeat(rows), &[1, rows as i32, 3])
    };
    // Token 0 is never right; in its place come 1 and 2, equally often, of which the drafter thinks very differently.
    let (p, q) = (row([0.0, 0.74, 0.26], 2), row([0.5, 0.49, 0.01], 1));
    let sampler = Sampler::new(&sampled(7), 3).unwrap();
    let judged: Vec<Array> = (0..1200)
        .flat_map(|at| {
            let (draft, log_q) = sampler.propose(&q, at, &None).unwrap();
            let ids = sampler.judge_rows(&p, at, &draft, &[log_q], &None).unwrap().0;
            [draft, ids]
        })
        .collect();
    let mut bet = Bet::default();
    for ids in read(&judged).chunks(3).filter(|ids| ids[0] == 0) {
        bet.on(&[], &[0.0, 0.5, 0.5], ids[1]);
    }
    assert!(bet.is_lost(), "log stake {:.1}", bet.log_stake);
}

#[test]
fn broken_scores_of_the_target_are_told_where_they_count_and_only_there() {
    let (mut target, drafter) = pair();
    target.0[2] = vec![f32::NAN; 5];
    for drafts in 1..=4 {
        let failed = rounds(
            (&target, &drafter),
            &sampled(1),
            drafts,
            limit(500),
            Acceptance::Rejection,
        );
        assert!(
            matches!(failed, Err(Error::NonFiniteLogits { position }) if position > 2),
            "{failed:?}"
        );
    }
    // The drafter goes on proposing what the target never says.
    for row in &mut target.0 {
        row[2] = f32::NEG_INFINITY;
    }
    for drafts in 1..=4 {
        let said = tokens(&play((&target, &drafter), &sampled(1), drafts, 500));
        assert!(said.len() == 500 && !said.contains(&2));
    }
}

#[test]
fn at_temperature_0_both_ways_are_one() {
    let (target, drafter) = pair();
    let params = SamplingParams {
        repetition_penalty: 1.3,
        ..greedy()
    };
    for drafts in 1..=4 {
        for params in [&greedy(), &params] {
            let both = [Acceptance::Equality, Acceptance::Rejection]
                .map(|accept| rounds((&target, &drafter), params, drafts, limit(60), accept).unwrap());
            assert_eq!(both[0], both[1]);
        }
    }
}

#[test]
fn by_equality_the_text_is_still_that_without_speculation() {
    let (target, drafter) = pair();
    for (_, params) in filters().into_iter().chain(penalties()) {
        let sampler = Sampler::new(&params, 5).unwrap();
        let mut cache = target.new_cache();
        let hidden = target
            .forward(&Array::from_slice(&PROMPT, &[1, 2]), &mut cache)
            .unwrap();
        let last = hidden.rows(1, 2).unwrap();
        let mut decoder = Plain::new(&target, &sampler, cache, &last, &PROMPT, limit(100)).unwrap();
        let mut plain = Vec::new();
        while let Some(round) = decoder.next_round().unwrap() {
            plain.extend(round.tokens);
        }
        for drafts in 1..=4 {
            let mtp = rounds((&target, &drafter), &params, drafts, limit(100), Acceptance::Equality).unwrap();
            assert_eq!(tokens(&mtp), plain, "{params:?}");
        }
    }
}

#[test]
fn one_wait_a_round_and_none_a_draft_by_chance_too() {
    let (target, drafter) = pair();
    for drafts in 1..=4 {
        let before = sync_count();
        let rounds = play((&target, &drafter), &sampled(6), drafts, 200);
        assert_eq!(sync_count() - before, rounds.len());
    }
    for family in ["qwen3_5", "inkling"] {
        let pair = load(&golden(family).join("hf"), None);
        let sampler = pair.sampler(&sampled(6)).unwrap();
        let before = sync_count();
        let mut progress = |_| std::ops::ControlFlow::Continue(());
        let request = StartRequest {
            depth: Some(Depth::block(5)),
            accept: Acceptance::Rejection,
            ..StartRequest::new(&[11, 5, 93], limit(60), &mut progress)
        };
        let mut decoder = pair.start(&sampler, request).unwrap().unwrap();
        let (mut rounds, mut said) = (0, 0);
        while let Some(round) = decoder.next_round().unwrap() {
            rounds += 1;
            said += round.tokens.len();
        }
        assert_eq!((sync_count() - before, said), (rounds, 60), "{family}");
        assert_eq!(decoder.finish().unwrap().len, 3 + 60 - 1, "{family}");
    }
}

#[test]
fn ends_and_limits_hold_by_chance_too() {
    let (target, drafter) = pair();
    for drafts in 1..=4 {
        for n in 1..=12 {
            assert_eq!(tokens(&play((&target, &drafter), &sampled(9), drafts, n)).len(), n);
        }
        for seed in 0..20 {
            let limits = Limits {
                max_tokens: 40,
                eos: vec![4],
            };
            let said = tokens(
                &rounds(
                    (&target, &drafter),
                    &sampled(seed),
                    drafts,
                    limits,
                    Acceptance::Rejection,
                )
                .unwrap(),
            );
            let end = said.iter().position(|t| *t == 4).map_or(40, |at| at + 1);
            assert_eq!(said.len(), end);
        }
    }
}

#[test]
fn the_engine_takes_the_choice_and_says_what_it_used() {
    let engine = Engine::start();
    engine
        .load(LoadRequest {
            target: golden("qwen3_5").join("hf"),
            ..LoadRequest::default()
        })
        .unwrap();
    let say = |accept, temperature, speculation| -> (Vec<u32>, SpeculationStats) {
        let request = GenerateRequest {
            sampling: SamplingParams {
                temperature,
                ..sampled(3)
            },
            max_tokens: Some(40),
            ignore_eos: true,
            speculation,
            accept,
            ..GenerateRequest::new(Prompt::Ids(vec![11, 5, 93, 40, 7]))
        };
        let done = engine
            .generate(request, Box::new(|_| std::ops::ControlFlow::Continue(())))
            .unwrap();
        (done.tokens, done.stats.speculation)
    };
    let block = Speculation::Block(4);
    let by_chance = say(Acceptance::Rejection, 0.8, block);
    assert_eq!(by_chance.1.accept, Some(Acceptance::Rejection));
    assert_eq!(
        say(Acceptance::Rejection, 0.8, block).0,
        by_chance.0,
        "a seed fixes the text"
    );
    let equal = say(Acceptance::Equality, 0.8, block);
    assert_eq!(equal.1.accept, Some(Acceptance::Equality));
    assert_ne!(equal.0, by_chance.0);
    let greedy = say(Acceptance::Rejection, 0.0, block);
    assert_eq!(greedy.1.accept, Some(Acceptance::Equality));
    assert_eq!(greedy.0, say(Acceptance::Equality, 0.0, block).0);
    let off = say(Acceptance::Rejection, 0.8, Speculation::Off);
    assert_eq!((off.1.accept, off.0), (None, equal.0));
}
