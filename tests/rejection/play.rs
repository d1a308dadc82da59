//! Playing the toy pair, and betting on what it says.

use mlx_rs::Array;
use models::family::{Drafter, Target};
use models::generate::{Decoder, Depth, Limits, Mtp, Round};
use models::sampler::Sampler;
use models::{Acceptance, Error, SamplingParams};

use super::bets::{Bets, Law};
use super::chain::Chain;

pub(super) const PROMPT: [u32; 2] = [3, 0];

/// All rounds of `n` tokens; the first is the prompt's own.
pub(super) fn rounds(
    (target, drafter): (&Chain, &Chain),
    params: &SamplingParams,
    drafts: usize,
    limits: Limits,
    accept: Acceptance,
) -> Result<Vec<Round>, Error> {
    let sampler = Sampler::new(params, target.vocabulary()).unwrap();
    let mut cache = target.new_cache();
    let hidden = target
        .forward(&Array::from_slice(&PROMPT, &[1, 2]), &mut cache)
        .unwrap();
    let state = drafter.new_state(0);
    let mut decoder = Mtp::new(
        target,
        drafter,
        &sampler,
        cache,
        state,
        &hidden.rows(1, 2).unwrap(),
        &PROMPT,
        Depth::Fixed(drafts),
        limits,
        accept,
    )?;
    let mut rounds = Vec::new();
    while let Some(round) = decoder.next_round()? {
        rounds.push(round);
    }
    Ok(rounds)
}

pub(super) fn limit(max_tokens: usize) -> Limits {
    Limits {
        max_tokens,
        eos: Vec::new(),
    }
}

pub(super) fn play(pair: (&Chain, &Chain), params: &SamplingParams, drafts: usize, n: usize) -> Vec<Round> {
    rounds(pair, params, drafts, limit(n), Acceptance::Rejection).unwrap()
}

pub(super) fn tokens(rounds: &[Round]) -> Vec<u32> {
    rounds.iter().flat_map(|r| r.tokens.clone()).collect()
}

/// Plays every number of drafts from `least` to 4 with `seeds` and bets on each number alone and on all together.
pub(super) fn failures(
    case: &str,
    (target, drafter): (&Chain, &Chain),
    params: &SamplingParams,
    least: usize,
    seeds: std::ops::Range<u64>,
    n: usize,
) -> Vec<String> {
    let laws = (&Law::new(target, params), &Law::new(drafter, params));
    let mut all = Bets::default();
    let mut failures = Vec::new();
    for drafts in least..=4 {
        let mut alone = Bets::default();
        for seed in seeds.clone() {
            // Seeds of its own for each number: runs with the same noise would foretell one another.
            let seed = seed + 1000 * drafts as u64;
            let params = SamplingParams { seed, ..params.clone() };
            let rounds = play((target, drafter), &params, drafts, n);
            assert_eq!(tokens(&rounds).len(), n);
            alone.on(laws, &rounds);
            all.on(laws, &rounds);
        }
        failures.extend(alone.failures(&format!("{case}, {drafts} drafts")));
    }
    failures.extend(all.failures(case));
    failures
}

pub(super) fn none(failures: Vec<String>) {
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
