//! The prompt set under several ways to speculate, interleaved.

use std::sync::Arc;

use models::{Exactness, GenerateRequest, SamplingParams};

use super::prompts::BenchPrompt;
use super::run::{self, Measured, Runner, Subject, Times};
use super::stats;
use crate::ipc::{
    Arm, BenchEvent, BenchReport, Call, MeasuredRun, PromptFigures, Ratio, SideFigures, SpeculationChoice, Winner,
};
use crate::turn::{Stop, count, speculation};

/// Tokens of a warm-up.
const WARM_UP_TOKENS: usize = 16;

/// Version of the report's format.
const REPORT_VERSION: u32 = 1;

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct BenchPlan {
    /// The prompts.
    pub prompts: Vec<BenchPrompt>,
    /// The ways to speculate; off is added where it is missing.
    pub arms: Vec<SpeculationChoice>,
    /// Runs of each prompt with each of them.
    pub repetitions: usize,
    /// Most tokens a run.
    pub max_tokens: usize,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Whether blocks have to give the text of single steps.
    pub exactness: Exactness,
}

/// Hears what happens, between runs.
pub type TellBench<'a> = &'a dyn Fn(BenchEvent);

struct Done {
    prompt: usize,
    arm: usize,
    repetition: usize,
    measured: Measured,
}

/// Runs every prompt with every arm, repetition by repetition; the order of the arms goes on by one and turns around each
/// time, so that no arm is always the first or the last. A prompt that does not fit the context is left out.
///
/// # Errors
/// What the engine says of any run.
pub fn bench(
    runner: &dyn Runner,
    subject: Subject<'_>,
    plan: &BenchPlan,
    stop: &Arc<Stop>,
    tell: TellBench<'_>,
) -> models::Result<BenchReport> {
    let mut setup = subject.setup(plan.exactness);
    let arms = with_off(&plan.arms);
    let per_repetition = plan.prompts.len() * arms.len();
    let warm_ups = if plan.prompts.is_empty() { 0 } else { arms.len() };
    tell(BenchEvent::Started {
        runs: count(warm_ups + per_repetition * plan.repetitions),
        model: setup.model.clone(),
    });
    let one = |prompt: &BenchPrompt, arm: SpeculationChoice, tokens: usize| {
        let request = GenerateRequest {
            sampling: plan.sampling.clone(),
            max_tokens: Some(tokens),
            exactness: plan.exactness,
            ..GenerateRequest::new(prompt.prompt(subject.loaded.can_chat))
        };
        run::measure(
            runner,
            run::prepared(&request, speculation(arm)),
            stop,
            Box::new(|_| ()),
        )
    };
    let mut begun = 0;
    let mut begin = |prompt: &BenchPrompt, arm: SpeculationChoice, repetition: usize| {
        tell(BenchEvent::Run {
            done: count(begun),
            prompt: prompt.id.clone(),
            speculation: arm,
            repetition: count(repetition),
        });
        begun += 1;
    };
    for arm in &arms {
        if let Some(prompt) = plan.prompts.first().filter(|_| !stop.is_requested()) {
            begin(prompt, *arm, 0);
            match one(prompt, *arm, WARM_UP_TOKENS.min(plan.max_tokens)) {
                Ok(_) | Err(models::Error::ContextFull { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let mut done: Vec<Done> = Vec::new();
    let mut runs: Vec<MeasuredRun> = Vec::new();
    'all: for repetition in 1..=plan.repetitions {
        for (p, prompt) in plan.prompts.iter().enumerate() {
            for (a, arm) in in_turn(&arms, repetition + p) {
                if stop.is_requested() {
                    break 'all;
                }
                begin(prompt, arm, repetition);
                let measured = match one(prompt, arm, plan.max_tokens) {
                    Err(models::Error::ContextFull { .. }) => continue,
                    other => other?,
                };
                if !measured.is_whole() {
                    break 'all;
                }
                let record = measured.record(Some(&prompt.id), arm, repetition, runs.len() + 1);
                tell(BenchEvent::Measured { run: record.clone() });
                runs.push(record);
                done.push(Done {
                    prompt: p,
                    arm: a,
                    repetition,
                    measured,
                });
            }
        }
    }
    run::finish(&mut setup);
    Ok(report(plan, setup, &arms, &done, runs, stop.is_requested()))
}

/// The arms once each, off first.
fn with_off(asked: &[SpeculationChoice]) -> Vec<SpeculationChoice> {
    let mut arms = vec![SpeculationChoice::Off];
    for arm in asked {
        if !arms.contains(arm) {
            arms.push(*arm);
        }
    }
    arms
}

/// The arms with their places, starting at another one each time and every second time backwards.
fn in_turn(arms: &[SpeculationChoice], time: usize) -> Vec<(usize, SpeculationChoice)> {
    let mut order: Vec<_> = arms.iter().copied().enumerate().collect();
    let by = (time / 2) % order.len().max(1);
    order.rotate_left(by);
    if time % 2 == 1 {
        order.reverse();
    }
    order
}

fn report(
    plan: &BenchPlan,
    setup: crate::ipc::Setup,
    arms: &[SpeculationChoice],
    done: &[Done],
    runs: Vec<MeasuredRun>,
    stopped: bool,
) -> BenchReport {
    let all: Vec<Arm> = (0..arms.len()).map(|a| arm(plan, arms, done, a)).collect();
    let mut prompts = Vec::new();
    for (p, prompt) in plan.prompts.iter().enumerate() {
        let rates = |a: usize| {
            let of = done.iter().filter(|d| d.prompt == p && d.arm == a);
            let rates: Vec<f64> = of
                .map(|d| Times::of(std::iter::once(&d.measured)).tokens_per_second)
                .collect();
            stats::spread(&rates)
        };
        let off = rates(0);
        for (a, choice) in arms.iter().enumerate() {
            let of: Vec<&Measured> = select(done, |d| d.prompt == p && d.arm == a);
            if of.is_empty() {
                continue;
            }
            let rate = rates(a);
            prompts.push(PromptFigures {
                prompt: prompt.id.clone(),
                kind: prompt.kind,
                speculation: *choice,
                speedup: rate
                    .as_ref()
                    .zip(off.as_ref())
                    .filter(|_| a > 0)
                    .and_then(|(rate, off)| stats::ratio(rate, off)),
                tokens_per_second: rate,
                acceptance_rate: run::figures(*choice, &[], &of).acceptance_rate,
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
        costs: run::costs(done.iter().map(|d| &d.measured)),
        runs,
    }
}

fn select(done: &[Done], wanted: impl Fn(&Done) -> bool) -> Vec<&Measured> {
    done.iter().filter(|d| wanted(d)).map(|d| &d.measured).collect()
}

/// The first arm is off.
fn arm(plan: &BenchPlan, arms: &[SpeculationChoice], done: &[Done], a: usize) -> Arm {
    let choice = arms.get(a).copied().unwrap_or(SpeculationChoice::Off);
    let figures = repeated(plan, done, a, 0, choice);
    let off = repeated(plan, done, 0, a, SpeculationChoice::Off);
    let of = select(done, |d| d.arm == a);
    let mut checked_tokens = 0;
    let mut differing = Vec::new();
    for (p, prompt) in plan.prompts.iter().enumerate() {
        let Some(plain) = done.iter().find(|d| d.prompt == p && d.arm == 0) else {
            continue;
        };
        let plain = &plain.measured.generated.tokens;
        for run in select(done, |d| d.prompt == p && d.arm == a) {
            checked_tokens += run.generated.tokens.len();
            if run.generated.tokens != *plain && !differing.contains(&prompt.id) {
                differing.push(prompt.id.clone());
            }
        }
    }
    Arm {
        speedup: match (&figures.tokens_per_second, &off.tokens_per_second) {
            (Some(rate), Some(off)) if a > 0 => stats::ratio(rate, off),
            _ => None,
        },
        figures,
        acceptance_by_context: run::by_context(of.iter().copied()),
        checked_tokens: count(checked_tokens),
        differing,
    }
}

/// Figures of an arm with a value for each repetition, over the prompts that another one ran in it too. After a stop a
/// repetition may hold half the set, which has other rates: only those that hold most are taken.
fn repeated(plan: &BenchPlan, done: &[Done], a: usize, other: usize, choice: SpeculationChoice) -> SideFigures {
    let ran = |a: usize, r: usize, p: usize| done.iter().any(|d| d.arm == a && d.repetition == r && d.prompt == p);
    let common = |r: usize| -> Vec<usize> {
        let all = 0..plan.prompts.len();
        all.filter(|p| ran(a, r, *p) && ran(other, r, *p)).collect()
    };
    let sets: Vec<(usize, Vec<usize>)> = (1..=plan.repetitions).map(|r| (r, common(r))).collect();
    let fullest = sets.iter().map(|(_, set)| set.len()).max().unwrap_or_default();
    let whole = sets.iter().filter(|(_, set)| fullest > 0 && set.len() == fullest);
    let times: Vec<Times> = whole
        .map(|(r, set)| {
            let of = select(done, |d| d.arm == a && d.repetition == *r && set.contains(&d.prompt));
            Times::of(of.into_iter())
        })
        .collect();
    run::figures(choice, &times, &select(done, |d| d.arm == a))
}

/// The fastest of those that are faster than off beyond the noise.
fn winner(arms: &[Arm]) -> Winner {
    let compared: Vec<(&Arm, &Ratio)> = arms
        .iter()
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

    #[test]
    fn every_arm_has_its_turn_at_every_place() {
        let arms = with_off(&[
            SpeculationChoice::Auto,
            SpeculationChoice::Off,
            SpeculationChoice::Block { size: 2 },
        ]);
        assert_eq!(arms.len(), 3, "off is there once");
        assert_eq!(arms[0], SpeculationChoice::Off);
        let mut firsts = [0; 3];
        for time in 0..6 {
            let order = in_turn(&arms, time);
            assert_eq!(order.len(), 3);
            firsts[order[0].0] += 1;
        }
        assert_eq!(firsts, [2, 2, 2]);
    }

    #[test]
    fn a_winner_is_called_only_beyond_the_noise() {
        let arm = |call, value| Arm {
            figures: SideFigures {
                speculation: SpeculationChoice::Block { size: value as u32 },
                speculating: true,
                reason: None,
                tokens_per_second: None,
                ttft_ms: None,
                total_ms: None,
                tokens_per_round: 1.0,
                acceptance_rate: None,
                acceptance_by_position: Vec::new(),
            },
            speedup: Some(Ratio {
                value,
                low: None,
                high: None,
                call,
            }),
            acceptance_by_context: Vec::new(),
            checked_tokens: 0,
            differing: Vec::new(),
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
