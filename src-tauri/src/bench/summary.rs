//! What the runs of a benchmark come to.

use super::bench::{BenchPlan, Done, Way};
use super::figures::{Times, by_context, costs, figures, gain};
use super::run::Measured;
use super::stats;
use crate::ipc::{
    Arm, BenchReport, Call, MeasuredRun, PromptFigures, Ratio, RowCost, Setup, SideFigures, SpeculationChoice, Winner,
};
use crate::turn::count;

/// Version of the report's format.
pub(super) const REPORT_VERSION: u32 = 2;

/// The report on whatever was measured, whole or not.
pub(super) fn report(
    plan: &BenchPlan,
    (setup, passes, draft_ms): (Setup, Vec<RowCost>, Option<f64>),
    ways: &[Way],
    done: &[Done],
    runs: Vec<MeasuredRun>,
    stopped: bool,
) -> BenchReport {
    let all: Vec<Arm> = (0..ways.len()).map(|a| arm(plan, ways, done, a)).collect();
    let mut prompts = Vec::new();
    for (p, prompt) in plan.prompts.iter().enumerate() {
        let rates = |a: usize| {
            let of = done.iter().filter(|d| d.prompt == p && d.arm == a);
            let rates: Vec<f64> = of.map(|d| Times::one(&d.measured).tokens_per_second).collect();
            stats::spread(&rates)
        };
        let off = rates(0);
        for (a, way) in ways.iter().enumerate() {
            let of: Vec<&Measured> = select(done, |d| d.prompt == p && d.arm == a);
            if of.is_empty() {
                continue;
            }
            let rate = rates(a);
            let figures = figures(way.choice, &[], &of);
            prompts.push(PromptFigures {
                prompt: prompt.id.clone(),
                kind: prompt.kind,
                speculation: figures.speculation,
                speedup: gain(&figures, rate.as_ref(), off.as_ref()),
                tokens_per_second: rate,
                acceptance_rate: figures.acceptance_rate,
            });
        }
    }
    BenchReport {
        version: REPORT_VERSION,
        setup,
        prompt_ids: plan.prompts.iter().map(|prompt| prompt.id.clone()).collect(),
        repetitions: count(plan.repetitions),
        max_tokens: count(plan.max_tokens),
        temperature: f64::from(plan.sampling.temperature),
        seed: plan.sampling.seed as f64,
        stopped,
        winner: winner(&all),
        arms: all,
        prompts,
        costs: costs(
            done.iter().filter(|d| d.arm == 0).map(|d| &d.measured),
            done.iter().filter(|d| d.arm > 0).map(|d| &d.measured),
        ),
        passes,
        draft_ms,
        runs,
    }
}

fn select(done: &[Done], wanted: impl Fn(&Done) -> bool) -> Vec<&Measured> {
    done.iter().filter(|d| wanted(d)).map(|d| &d.measured).collect()
}

/// The first arm is off.
fn arm(plan: &BenchPlan, ways: &[Way], done: &[Done], a: usize) -> Arm {
    let way = ways.get(a).cloned().unwrap_or_default();
    let mut of_arm = repeated(plan, done, a, 0, way.choice);
    let off = repeated(plan, done, 0, a, SpeculationChoice::Off);
    of_arm.asked.extend(way.asked);
    let of = select(done, |d| d.arm == a);
    let is_checked = a == 0 || of_arm.speculating;
    let mut checked_tokens = 0;
    let mut differing = Vec::new();
    for (p, prompt) in plan.prompts.iter().enumerate() {
        let Some(plain) = done.iter().find(|d| d.prompt == p && d.arm == 0) else {
            continue;
        };
        let plain = &plain.measured.generated.tokens;
        for run in select(done, |d| d.prompt == p && d.arm == a) {
            if is_checked {
                checked_tokens += run.generated.tokens.len();
            }
            if run.generated.tokens != *plain && !differing.contains(&prompt.id) {
                differing.push(prompt.id.clone());
            }
        }
    }
    Arm {
        speedup: gain(
            &of_arm,
            of_arm.tokens_per_second.as_ref(),
            off.tokens_per_second.as_ref(),
        ),
        figures: of_arm,
        warm_ups: count(way.warm.runs),
        settled: way.warm.settled,
        acceptance_by_context: by_context(of.iter().copied()),
        checked_tokens: count(checked_tokens),
        differing,
    }
}

/// Figures of an arm with a value for each repetition, over the prompts that another one ran in it too. After a stop a
/// repetition may hold half the set, which has other rates: only those that hold most are taken. A rate is of the prompts
/// that both had one of each time, since prompts have other rates too.
fn repeated(plan: &BenchPlan, done: &[Done], a: usize, other: usize, choice: SpeculationChoice) -> SideFigures {
    let find = |a: usize, r: usize, p: usize| {
        let mut all = done.iter();
        all.find(|d| d.arm == a && d.repetition == r && d.prompt == p)
            .map(|d| &d.measured)
    };
    let common = |r: usize| -> Vec<usize> {
        let all = 0..plan.prompts.len();
        all.filter(|p| find(a, r, *p).is_some() && find(other, r, *p).is_some())
            .collect()
    };
    let sets: Vec<(usize, Vec<usize>)> = (1..=plan.repetitions).map(|r| (r, common(r))).collect();
    let fullest = sets.iter().map(|(_, set)| set.len()).max().unwrap_or_default();
    let whole: Vec<_> = sets
        .iter()
        .filter(|(_, set)| fullest > 0 && set.len() == fullest)
        .collect();
    let has_rate = |a: usize, r: usize, p: usize| find(a, r, p).is_none_or(Measured::has_rate);
    let is_rated = |p: usize| whole.iter().all(|(r, _)| has_rate(a, *r, p) && has_rate(other, *r, p));
    let times = whole.iter().map(|(r, set)| {
        let of: Vec<&Measured> = set.iter().filter_map(|p| find(a, *r, *p)).collect();
        Times::of(&of, |place| set.get(place).is_some_and(|p| is_rated(*p)))
    });
    let times: Vec<Times> = times.collect();
    figures(choice, &times, &select(done, |d| d.arm == a))
}

/// The fastest of those that are faster than off beyond the noise.
fn winner(arms: &[Arm]) -> Winner {
    let compared: Vec<(&Arm, &Ratio)> = arms
        .iter()
        .filter(|arm| arm.figures.speculating)
        .filter_map(|arm| Some((arm, arm.speedup.as_ref()?)))
        .collect();
    if compared.is_empty() {
        return Winner::Unknown;
    }
    let faster = compared.iter().filter(|(_, ratio)| ratio.call == Call::Higher);
    match faster.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value)) {
        Some((arm, ratio)) => Winner::Fastest {
            speculation: arm.figures.speculation,
            ratio: (*ratio).clone(),
        },
        None if compared.iter().all(|(_, ratio)| ratio.call == Call::TooFew) => Winner::Unknown,
        None if compared.iter().any(|(_, ratio)| ratio.call == Call::Lower)
            && !compared.iter().any(|(_, ratio)| ratio.call == Call::Noise) =>
        {
            Winner::Off
        }
        None => Winner::Noise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fake;

    #[test]
    fn a_winner_is_called_only_beyond_the_noise() {
        let arm = |call, value| {
            fake::arm(
                SpeculationChoice::Block { size: value as u32 },
                Some((value, call)),
                &[],
            )
        };
        assert_eq!(winner(&[]), Winner::Unknown);
        assert_eq!(winner(&[arm(Call::TooFew, 3.0)]), Winner::Unknown);
        assert_eq!(winner(&[arm(Call::Noise, 3.0), arm(Call::Lower, 0.5)]), Winner::Noise);
        assert_eq!(winner(&[arm(Call::Lower, 0.7), arm(Call::Lower, 0.5)]), Winner::Off);
        let called = winner(&[arm(Call::Noise, 9.0), arm(Call::Higher, 2.0), arm(Call::Higher, 3.0)]);
        let Winner::Fastest { speculation, ratio } = called else {
            panic!("{called:?}")
        };
        assert_eq!((speculation, ratio.value), (SpeculationChoice::Block { size: 3 }, 3.0));
    }
}
