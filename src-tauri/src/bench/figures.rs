//! What measured runs come to: rates, acceptance, costs.

use super::run::Measured;
use super::stats::{self, median, sorted, spread};
use crate::ipc::{Call, ContextAcceptance, Cost, Ratio, SideFigures, SpeculationChoice, Spread};
use crate::turn::count;

/// What rounds cost by the number of their rows: plain ones of the runs without speculation, those with drafts of the others.
/// Fewer than three are not told.
pub(super) fn costs<'a>(off: impl Iterator<Item = &'a Measured>, on: impl Iterator<Item = &'a Measured>) -> Vec<Cost> {
    let mut by_rows: std::collections::BTreeMap<usize, Vec<f64>> = std::collections::BTreeMap::new();
    let plain = off.flat_map(|run| &run.rounds).filter(|round| round.drafted == 0);
    let drafted = on.flat_map(|run| &run.rounds).filter(|round| round.drafted > 0);
    for round in plain.chain(drafted) {
        if let Some(ms) = round.ms {
            by_rows.entry(round.drafted + 1).or_default().push(ms);
        }
    }
    by_rows.retain(|_, times| times.len() >= 3);
    let middle = |times: &Vec<f64>| median(&sorted(times)).filter(|ms| *ms > 0.0);
    let single = by_rows.get(&1).and_then(middle);
    let all = by_rows.iter().filter_map(|(rows, times)| {
        let ms = middle(times)?;
        Some(Cost {
            rows: count(*rows),
            rounds: count(times.len()),
            ms,
            ratio: single.map(|single| ms / single),
        })
    });
    all.collect()
}

/// Acceptance by the length of the sequence, in steps that double.
pub(super) fn by_context<'a>(runs: impl Iterator<Item = &'a Measured>) -> Vec<ContextAcceptance> {
    let mut steps: Vec<ContextAcceptance> = Vec::new();
    for round in runs.flat_map(|run| &run.rounds).filter(|round| round.drafted > 0) {
        let to = (round.length + 1).next_power_of_two().max(128);
        let from = if to == 128 { 0 } else { to / 2 };
        let (from, to) = (count(from), count(to));
        let place = match steps.iter().position(|step| step.to == to) {
            Some(place) => place,
            None => {
                steps.push(ContextAcceptance {
                    from,
                    to,
                    drafted: 0,
                    accepted: 0,
                });
                steps.len() - 1
            }
        };
        if let Some(step) = steps.get_mut(place) {
            step.drafted += count(round.drafted);
            step.accepted += count(round.accepted);
        }
    }
    steps.sort_by_key(|step| step.from);
    steps
}

/// Rate, first token and total of one repetition, for the figures of a side.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) tokens_per_second: f64,
    pub(super) ttft_ms: f64,
    pub(super) total_ms: f64,
}

impl Times {
    /// Those of one run.
    pub(super) fn one(run: &Measured) -> Self {
        Self::of(&[run], |_| true)
    }

    /// Those of runs that belong together: the rate of those that are `rated`, by all their tokens and all their time.
    pub(super) fn of(runs: &[&Measured], rated: impl Fn(usize) -> bool) -> Self {
        let (mut tokens, mut decode_ms, mut ttft_ms, mut total_ms, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (place, run) in runs.iter().enumerate() {
            let stats = &run.generated.stats;
            if let Some((of_it, ms)) = run.timed().filter(|_| rated(place)) {
                tokens += of_it;
                decode_ms += ms;
            }
            ttft_ms += stats.ttft_ms;
            total_ms += stats.ttft_ms + stats.decode_ms;
            n += 1.0;
        }
        // No runs give no numbers, which are left out later.
        Times {
            tokens_per_second: tokens / decode_ms * 1e3,
            ttft_ms: ttft_ms / n,
            total_ms,
        }
    }
}

/// The figures of one way to run: times a repetition, drafts over all runs.
pub(super) fn figures(speculation: SpeculationChoice, times: &[Times], runs: &[&Measured]) -> SideFigures {
    let of = |pick: fn(&Times) -> f64| spread(&times.iter().map(pick).collect::<Vec<_>>());
    let all = || {
        runs.iter()
            .flat_map(|run| &run.rounds)
            .filter(|round| round.drafted > 0)
    };
    let deepest = all().map(|round| round.drafted).max().unwrap_or_default();
    let shares = (0..deepest).map(|place| {
        let proposed = all().filter(|round| round.drafted > place).count();
        all().filter(|round| round.accepted > place).count() as f64 / proposed.max(1) as f64
    });
    let drafted: usize = all().map(|round| round.drafted).sum();
    let accepted: usize = all().map(|round| round.accepted).sum();
    // Of both kinds; the prompt's own token is in none.
    let rounds = runs
        .iter()
        .flat_map(|run| &run.rounds)
        .filter(|round| round.ms.is_some())
        .count();
    let told = runs.first().map_or(speculation, |run| run.ran(speculation));
    let ran = runs.first().map(|run| &run.generated.stats.speculation);
    SideFigures {
        speculation: told,
        asked: Some(speculation).filter(|asked| *asked != told).into_iter().collect(),
        speculating: ran.is_some_and(|stats| stats.enabled),
        reason: ran
            .filter(|stats| !stats.enabled)
            .and_then(|stats| stats.reason.clone()),
        tokens_per_second: of(|t| t.tokens_per_second),
        ttft_ms: of(|t| t.ttft_ms),
        total_ms: of(|t| t.total_ms),
        tokens_per_round: if rounds == 0 {
            1.0
        } else {
            (accepted + rounds) as f64 / rounds as f64
        },
        acceptance_rate: (drafted > 0).then(|| accepted as f64 / drafted as f64),
        acceptance_by_position: shares.collect(),
    }
}

/// Decode rate with speculation by that without. What did not speculate has gained nothing, and what made no draft is not
/// faster, whatever the clock says.
pub(super) fn gain(on: &SideFigures, rate: Option<&Spread>, off: Option<&Spread>) -> Option<Ratio> {
    if !on.speculating {
        return None;
    }
    let mut ratio = stats::ratio(rate?, off?)?;
    if on.acceptance_rate.is_none() && ratio.call == Call::Higher {
        ratio.call = Call::Noise;
    }
    Some(ratio)
}

#[cfg(test)]
mod tests {
    use super::super::fake::{self, Fake};
    use super::*;

    fn figures_of(fake: &Fake, speculation: SpeculationChoice, tokens: usize) -> (SideFigures, Measured) {
        let run = fake.measured(speculation, tokens);
        (figures(speculation, &[Times::one(&run); 5], &[&run]), run)
    }

    #[test]
    fn a_run_of_a_few_tokens_has_no_rate() {
        let fake = Fake::default();
        for tokens in [1, 2, 9] {
            let (off, run) = figures_of(&fake, SpeculationChoice::Off, tokens);
            assert_eq!(
                (off.tokens_per_second, run.has_rate()),
                (None, false),
                "{tokens} tokens"
            );
            assert_eq!(run.record(None, SpeculationChoice::Off, 1, 1).tokens_per_second, None);
        }
        // The last interval is next to nothing; it is not counted.
        let (off, _) = figures_of(&fake, SpeculationChoice::Off, 10);
        assert_eq!(off.tokens_per_second.unwrap().median, 1e3 / fake::PLAIN_MS);
        // Many tokens in few rounds are as little.
        let (on, _) = figures_of(&fake, SpeculationChoice::Block { size: 8 }, 30);
        assert_eq!(on.tokens_per_second, None);
    }

    #[test]
    fn what_made_no_draft_is_not_faster_and_what_did_not_speculate_gained_nothing() {
        let fake = Fake::default();
        let (mut on, _) = figures_of(&fake, SpeculationChoice::Block { size: 3 }, 40);
        let (fast, slow) = (spread(&[20.0; 5]), spread(&[10.0; 5]));
        let call = |on: &SideFigures, rate, off| gain(on, rate, off).map(|ratio| ratio.call);
        assert_eq!(call(&on, fast.as_ref(), slow.as_ref()), Some(Call::Higher));
        on.acceptance_rate = None;
        assert_eq!(call(&on, fast.as_ref(), slow.as_ref()), Some(Call::Noise));
        assert_eq!(call(&on, slow.as_ref(), fast.as_ref()), Some(Call::Lower));
        on.speculating = false;
        assert_eq!(call(&on, fast.as_ref(), slow.as_ref()), None);
    }

    #[test]
    fn one_row_costs_what_it_costs_without_speculation() {
        let fake = Fake::default();
        let off = fake.measured(SpeculationChoice::Off, 12);
        let on = fake.measured(SpeculationChoice::Block { size: 3 }, 30);
        let parked = fake.measured(SpeculationChoice::Auto, 30);
        let costs = costs([&off].into_iter(), [&on, &parked].into_iter());
        let told: Vec<_> = costs.iter().map(|cost| (cost.rows, cost.rounds, cost.ms)).collect();
        assert_eq!(told, [(1, 10, fake::PLAIN_MS), (3, 9, fake::ROUND_MS)]);
        assert_eq!(costs[1].ratio, Some(fake::ROUND_MS / fake::PLAIN_MS));
    }
}
