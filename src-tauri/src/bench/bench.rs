//! The prompt set under several ways to speculate, interleaved.

use std::sync::Arc;

use models::{Exactness, GenerateRequest, SamplingParams};

use super::prompts::BenchPrompt;
use super::run::{self, Measured, Runner, Subject, WarmUp};
use super::summary::report;
use crate::ipc::{BenchEvent, BenchReport, MeasuredRun, SpeculationChoice};
use crate::turn::{Stop, count, speculation};

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

pub(super) struct Done {
    pub(super) prompt: usize,
    pub(super) arm: usize,
    pub(super) repetition: usize,
    pub(super) measured: Measured,
}

/// One way to speculate, as it runs here.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) choice: SpeculationChoice,
    /// What was asked for and runs as this.
    pub(super) asked: Vec<SpeculationChoice>,
    pub(super) warm: WarmUp,
}

impl Default for Way {
    fn default() -> Self {
        Way::cold(SpeculationChoice::Off)
    }
}

impl Way {
    fn cold(choice: SpeculationChoice) -> Self {
        Way {
            choice,
            asked: Vec::new(),
            warm: WarmUp::default(),
        }
    }
}

/// Runs every prompt with every arm, repetition by repetition; the order of the arms goes on by one and turns around each
/// time, so that no arm is always the first or the last. A prompt that does not fit the context is left out. Block sizes that exact
/// mode cuts to the same one run once.
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
    let asked = with_off(&plan.arms);
    let told = |warm_ups: usize, ways: usize| match plan.prompts.len() {
        0 => 0,
        prompts => count(warm_ups + ways * prompts * plan.repetitions),
    };
    let started = |ways: usize, model: &str| {
        tell(BenchEvent::Started {
            runs: told(asked.len(), ways),
            model: model.to_owned(),
        });
    };
    started(asked.len(), &setup.model);
    let request = |prompt: &BenchPrompt, arm: SpeculationChoice| {
        let request = GenerateRequest {
            sampling: plan.sampling.clone(),
            max_tokens: Some(plan.max_tokens),
            exactness: plan.exactness,
            ..GenerateRequest::new(prompt.prompt(subject.loaded.can_chat))
        };
        run::prepared(&request, speculation(arm))
    };
    let measure = |request: GenerateRequest| run::measure(runner, request, stop, Box::new(|_| ()));
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
    let mut ways: Vec<Way> = Vec::new();
    for arm in &asked {
        let mut way = Way::cold(*arm);
        if let Some(prompt) = plan.prompts.first().filter(|_| !stop.is_requested()) {
            begin(prompt, *arm, 0);
            match run::warm_up(&request(prompt, *arm), measure) {
                Ok((warm, run)) => {
                    way.warm = warm;
                    way.choice = run.map_or(*arm, |run| run.ran(*arm));
                }
                Err(models::Error::ContextFull { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        way.asked.extend(Some(*arm).filter(|arm| *arm != way.choice));
        match ways.iter_mut().find(|other| other.choice == way.choice) {
            Some(same) => same.asked.extend(way.asked),
            None => ways.push(way),
        }
    }
    if ways.len() < asked.len() {
        started(ways.len(), &setup.model);
    }
    let arms: Vec<SpeculationChoice> = ways.iter().map(|way| way.choice).collect();
    let mut done: Vec<Done> = Vec::new();
    let mut runs: Vec<MeasuredRun> = Vec::new();
    'all: for repetition in 1..=plan.repetitions {
        for (p, prompt) in plan.prompts.iter().enumerate() {
            for (a, arm) in in_turn(&arms, repetition + p) {
                if stop.is_requested() {
                    break 'all;
                }
                begin(prompt, arm, repetition);
                let measured = match measure(request(prompt, arm)) {
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
    let draft_ms = subject.loaded.costs.as_ref().map(|costs| costs.draft_ms);
    let about = (setup, subject.passes(), draft_ms);
    Ok(report(plan, about, &ways, &done, runs, stop.is_requested()))
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

#[cfg(test)]
mod tests {
    use super::super::fake::{self, Fake};
    use super::super::report::markdown;
    use super::super::words::verdict;
    use super::*;
    use crate::ipc::{Call, PromptKind, RowCost, Winner};

    fn block(size: u32) -> SpeculationChoice {
        SpeculationChoice::Block { size }
    }

    fn ran(fake: &Fake, arms: &[SpeculationChoice], max_tokens: usize) -> (BenchReport, Vec<BenchEvent>) {
        let plan = BenchPlan {
            prompts: super::super::prompts(&[PromptKind::Predictable]),
            arms: arms.to_vec(),
            repetitions: 5,
            max_tokens,
            sampling: SamplingParams::default(),
            exactness: Exactness::Exact,
        };
        let told = std::cell::RefCell::default();
        let tell = |event| Vec::push(&mut *told.borrow_mut(), event);
        let report = bench(fake, fake.subject(), &plan, &Arc::default(), &tell).unwrap();
        (report, told.into_inner())
    }

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
    fn a_few_tokens_make_no_winner() {
        let (report, _) = ran(&Fake::default(), &[block(2), SpeculationChoice::Auto], 2);
        assert_eq!(report.winner, Winner::Unknown);
        assert!(
            report
                .arms
                .iter()
                .all(|arm| arm.speedup.is_none() && arm.figures.tokens_per_second.is_none())
        );
        assert_eq!(
            verdict(&report),
            "No winner: the replies are too short to measure a rate."
        );
        // With enough of them there is one, and what made no draft is not it.
        let (report, _) = ran(&Fake::default(), &[block(2), SpeculationChoice::Auto], 40);
        assert!(matches!(&report.winner, Winner::Fastest { speculation, ratio }
            if *speculation == block(2) && ratio.value == 2.0 * fake::PLAIN_MS / fake::ROUND_MS));
        assert_eq!(report.arms[2].speedup.as_ref().unwrap().call, Call::Noise);
    }

    #[test]
    fn what_did_not_speculate_wins_nothing_is_not_identical_and_says_why() {
        let fake = Fake {
            head: false,
            ..Fake::default()
        };
        let (report, _) = ran(&fake, &[block(2), block(3)], 40);
        assert_eq!(report.winner, Winner::Unknown);
        assert!(
            report.arms[1..]
                .iter()
                .all(|arm| arm.speedup.is_none() && arm.checked_tokens == 0)
        );
        let text = markdown(&report, &[]);
        assert_eq!(
            verdict(&report),
            format!("No winner: nothing speculated: {}.", fake::NO_HEAD)
        );
        assert!(
            text.contains(&format!("- block 2 did not speculate: {}", fake::NO_HEAD)),
            "{text}"
        );
        assert!(!text.contains("identical"), "{text}");
    }

    #[test]
    fn blocks_are_told_as_they_ran_and_run_once() {
        let fake = Fake {
            exact: 4,
            ..Fake::default()
        };
        let (report, told) = ran(&fake, &[block(8), block(4), block(2), block(6)], 40);
        let arms: Vec<_> = report
            .arms
            .iter()
            .map(|arm| (arm.figures.speculation, arm.figures.asked.clone()))
            .collect();
        assert_eq!(
            arms,
            [
                (SpeculationChoice::Off, vec![]),
                (block(4), vec![block(8), block(6)]),
                (block(2), vec![]),
            ]
        );
        assert!(matches!(report.winner, Winner::Fastest { speculation, .. } if speculation == block(4)));
        assert_eq!(report.runs.len(), 3 * 5);
        assert!(report.runs.iter().all(|run| run.speculation != block(8)));
        let runs: Vec<u32> = told
            .iter()
            .filter_map(|event| match event {
                BenchEvent::Started { runs, .. } => Some(*runs),
                _ => None,
            })
            .collect();
        assert_eq!(runs, [5 + 5 * 5, 5 + 3 * 5], "told anew when it is known");
        let text = markdown(&report, &[]);
        assert!(text.contains("Block 8 and block 6 ran as block 4"), "{text}");
    }

    #[test]
    fn passes_of_the_target_are_told_apart_from_rounds() {
        let mut fake = Fake::default();
        fake.loaded.costs = Some(models::Costs {
            verify_ms: vec![(1, 8.0), (2, 10.0), (8, 24.0)],
            draft_ms: 1.5,
        });
        let (report, _) = ran(&fake, &[block(2)], 40);
        let passes: Vec<_> = report
            .passes
            .iter()
            .map(|RowCost { rows, ms, ratio }| (*rows, *ms, *ratio))
            .collect();
        assert_eq!(passes, [(1, 8.0, 1.0), (2, 10.0, 1.25), (8, 24.0, 3.0)]);
        assert_eq!(report.draft_ms, Some(1.5));
        assert_eq!(
            report.costs[0].ms,
            fake::PLAIN_MS,
            "a round of the arm without speculation"
        );
        let text = markdown(&report, &[]);
        assert!(
            text.contains("| 8 | 24.00 | 3.00 |") && text.contains("1.50 ms"),
            "{text}"
        );
    }

    #[test]
    fn warm_ups_are_told() {
        let (report, _) = ran(&Fake::default(), &[block(2)], 40);
        assert!(report.arms.iter().all(|arm| (arm.warm_ups, arm.settled) == (2, true)));
        assert!(markdown(&report, &[]).contains("off 2, block 2 2"));
    }
}
