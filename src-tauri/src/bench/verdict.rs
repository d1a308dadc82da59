//! What speculation is worth for a pair on this machine, by what was measured of it; nothing where nothing may be said.
//!
//! A whole benchmark under the same versions and power counts most. Without one, what automatic depth worked out in replies
//! is told as the estimate it is: its plain steps are timed now and then, and its texts are whatever was chatted about. Then
//! a benchmark under other circumstances, which says that it is stale.

use models::{ControllerState, Exactness, GenerationStats, Prior, SpeculationState};
use serde::{Deserialize, Serialize};

use super::regression::changed;
use super::stats;
use crate::ipc::{
    Arm, BenchReport, Call, Circumstances, PairVerdict, Ratio, Setup, SpeculationChoice, VerdictSource, Winner,
};
use crate::turn::count;

/// Rounds of a reply below which its estimate says nothing.
const FEWEST_ROUNDS: usize = 16;
/// Times that a position was reached below which its share says nothing.
const FEWEST_DRAFTS: usize = 4;

/// What was measured of one pair on one machine, the newest first.
#[derive(Debug, Clone, Default)]
pub struct PairHistory {
    /// The target's folder.
    pub target: String,
    /// The drafter's, if it is one of its own.
    pub drafter: Option<String>,
    /// Benchmarks.
    pub benches: Vec<BenchReport>,
    /// Replies with automatic depth.
    pub replies: Vec<Estimate>,
}

/// What automatic depth worked out in one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Unix milliseconds.
    pub made_at: f64,
    /// Versions, precision and power.
    pub under: Circumstances,
    /// Drafts a round of the best depth.
    pub depth: u32,
    /// Its tokens a second by those of plain decoding, by followed costs and acceptance.
    pub speedup: f64,
    /// How often the draft at each position was right, given that those before it were.
    pub acceptance: Vec<f64>,
}

impl Estimate {
    /// Of a reply that was long enough, in exact mode, and had drafts.
    #[must_use]
    pub fn of(stats: &GenerationStats, made_at: f64, under: Circumstances) -> Option<Self> {
        let ran = &stats.speculation;
        let (depth, speedup) = match &ran.state {
            SpeculationState::Auto(ControllerState::On {
                depth,
                speedup: Some(speedup),
                is_measured: true,
                ..
            })
            | SpeculationState::Auto(ControllerState::Parked {
                depth,
                speedup,
                is_measured: true,
                ..
            }) => (*depth, *speedup),
            _ => return None,
        };
        let is_telling = ran.exactness == Exactness::Exact
            && ran.rounds + ran.plain_rounds >= FEWEST_ROUNDS
            && speedup.is_finite()
            && speedup > 0.0;
        is_telling.then(|| Estimate {
            made_at,
            under,
            depth: count(depth),
            speedup,
            acceptance: by_position(&ran.drafted_per_round, &ran.accepted_per_round),
        })
    }
}

/// As things are now.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// Versions, precision and power.
    pub under: Circumstances,
    /// When a file of the pair was changed last, in Unix milliseconds.
    pub files_changed_at: f64,
}

impl Now {
    /// What is other than it was then, in words.
    fn changes(&self, then: &Circumstances, at: f64) -> Vec<String> {
        let mut changes = changed(then, &self.under);
        if self.files_changed_at > at {
            changes.push("the model's files".to_owned());
        }
        changes
    }
}

/// What may be said of a pair, and where its automatic depth begins: nowhere in particular when that is stale.
#[must_use]
pub fn judge(history: &PairHistory, now: &Now) -> Option<(PairVerdict, Prior)> {
    let mut stale = None;
    for report in history.benches.iter().filter(|report| counts(report)) {
        let verdict = of_report(report, history.drafter.clone(), now);
        if verdict.changes.is_empty() {
            return Some((verdict, prior_of(report)));
        }
        stale = stale.or(Some((verdict, Prior::default())));
    }
    of_replies(history, now).or(stale)
}

/// Whole, and run as replies are: exactly, with keys and values as they are, on a machine that stayed powered as it was.
fn counts(report: &BenchReport) -> bool {
    let setup = &report.setup;
    !report.stopped
        && report.winner != Winner::Unknown
        && setup.exactness == Exactness::Exact.as_str()
        && !setup.check_key.contains("keys and values in")
        && setup.before.power_mode == setup.after.power_mode
        && setup.before.power_source == setup.after.power_source
}

fn of_report(report: &BenchReport, drafter: Option<String>, now: &Now) -> PairVerdict {
    let under = Circumstances::from(&report.setup);
    PairVerdict {
        drafter,
        says: report.winner.clone(),
        some_slower: report
            .arms
            .iter()
            .any(|arm| arm.speedup.as_ref().is_some_and(|ratio| ratio.call == Call::Lower)),
        source: VerdictSource::Benchmark {
            prompts: count(report.prompt_ids.len()),
            repetitions: report.repetitions,
        },
        measured_at: report.setup.started_at,
        changes: now.changes(&under, report.setup.started_at),
        under,
    }
}

/// The fastest of the block sizes that are faster beyond the noise, none where all are slower; and how often drafts were right.
fn prior_of(report: &BenchReport) -> Prior {
    let blocks: Vec<(usize, &Arm, Option<&Ratio>)> = report
        .arms
        .iter()
        .filter_map(|arm| match arm.figures.speculation {
            SpeculationChoice::Block { size } => Some((size as usize, arm, arm.speedup.as_ref())),
            SpeculationChoice::Off | SpeculationChoice::Auto => None,
        })
        .collect();
    let faster = blocks
        .iter()
        .filter_map(|(size, _, ratio)| Some((size, ratio.filter(|ratio| ratio.call == Call::Higher)?)));
    let fastest = faster.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let is_slower = |ratio: &Option<&Ratio>| ratio.is_some_and(|ratio| ratio.call == Call::Lower);
    let all_slower = !blocks.is_empty() && blocks.iter().all(|(.., ratio)| is_slower(ratio));
    let shares = blocks.iter().map(|(_, arm, _)| &arm.figures.acceptance_by_position);
    Prior {
        depth: fastest.map(|(size, _)| size - 1).or(all_slower.then_some(0)),
        acceptance: shares
            .max_by_key(|shares| shares.len())
            .map_or_else(Vec::new, |shares| conditional(shares)),
    }
}

/// Estimates vary with the text, so their own spread is the noise.
fn of_replies(history: &PairHistory, now: &Now) -> Option<(PairVerdict, Prior)> {
    let valid = |estimate: &&Estimate| now.changes(&estimate.under, estimate.made_at).is_empty();
    let estimates: Vec<&Estimate> = history.replies.iter().filter(valid).collect();
    let newest = estimates.first()?;
    let speedups: Vec<f64> = estimates.iter().map(|estimate| estimate.speedup).collect();
    let plain = vec![1.0; speedups.len()];
    let ratio = stats::ratio(&stats::spread(&speedups)?, &stats::spread(&plain)?)?;
    let depth = usual(estimates.iter().map(|estimate| estimate.depth));
    let (says, begin) = match ratio.call {
        Call::Higher => (
            Winner::Fastest {
                speculation: SpeculationChoice::Auto,
                ratio,
            },
            Some(depth as usize),
        ),
        Call::Lower => (Winner::Off, Some(0)),
        Call::Noise => (Winner::Noise, None),
        Call::TooFew => return None,
    };
    let verdict = PairVerdict {
        drafter: history.drafter.clone(),
        says,
        some_slower: false,
        source: VerdictSource::Replies {
            replies: count(estimates.len()),
            depth,
        },
        measured_at: newest.made_at,
        under: newest.under.clone(),
        changes: Vec::new(),
    };
    let prior = Prior {
        depth: begin,
        acceptance: newest.acceptance.clone(),
    };
    Some((verdict, prior))
}

/// The most frequent one; of equals the smallest.
fn usual(depths: impl Iterator<Item = u32> + Clone) -> u32 {
    let times = |depth: u32| depths.clone().filter(|other| *other == depth).count();
    depths
        .clone()
        .max_by_key(|depth| (times(*depth), std::cmp::Reverse(*depth)))
        .unwrap_or_default()
}

/// From shares of all rounds to shares of those in which the drafts before were right.
fn conditional(shares: &[f64]) -> Vec<f64> {
    let before = std::iter::once(1.0).chain(shares.iter().copied());
    let reached = before.zip(shares).take_while(|(before, _)| *before > 0.0);
    reached.map(|(before, share)| (share / before).min(1.0)).collect()
}

/// The same from rounds, as far as positions were reached often enough.
fn by_position(drafted: &[usize], accepted: &[usize]) -> Vec<f64> {
    let rounds = || drafted.iter().zip(accepted);
    let share = |place: usize| {
        let reached = rounds()
            .filter(|(drafted, accepted)| **drafted > place && **accepted >= place)
            .count();
        let right = rounds().filter(|(_, accepted)| **accepted > place).count();
        (reached >= FEWEST_DRAFTS).then(|| right as f64 / reached as f64)
    };
    (0..).map_while(share).collect()
}

impl From<&Setup> for Circumstances {
    fn from(setup: &Setup) -> Self {
        Circumstances {
            app_version: setup.app_version.clone(),
            mlx_version: setup.mlx_version.clone(),
            dtype: Some(setup.dtype.clone()),
            power_mode: setup.before.power_mode.clone(),
            power_source: setup.before.power_source.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{Conditions, SideFigures};

    fn under() -> Circumstances {
        Circumstances {
            app_version: "1.0.0".to_owned(),
            mlx_version: "0.32.2".to_owned(),
            dtype: Some("float32".to_owned()),
            power_mode: Some("balanced".to_owned()),
            power_source: Some("mains".to_owned()),
        }
    }

    fn now() -> Now {
        Now {
            under: under(),
            files_changed_at: 10.0,
        }
    }

    fn arm(speculation: SpeculationChoice, call: Option<(f64, Call)>, shares: &[f64]) -> Arm {
        Arm {
            figures: SideFigures {
                speculation,
                speculating: true,
                reason: None,
                tokens_per_second: None,
                ttft_ms: None,
                total_ms: None,
                tokens_per_round: 2.0,
                acceptance_rate: None,
                acceptance_by_position: shares.to_vec(),
            },
            speedup: call.map(|(value, call)| Ratio {
                value,
                low: None,
                high: None,
                call,
            }),
            acceptance_by_context: Vec::new(),
            checked_tokens: 1,
            differing: Vec::new(),
        }
    }

    fn block(size: u32) -> SpeculationChoice {
        SpeculationChoice::Block { size }
    }

    /// At `at`, with block 2 and 4 measured as given.
    fn report(at: f64, two: (f64, Call), four: (f64, Call), winner: Winner) -> BenchReport {
        let conditions = Conditions {
            power_mode: under().power_mode,
            power_source: under().power_source,
            ..Conditions::default()
        };
        BenchReport {
            version: 1,
            setup: Setup {
                started_at: at,
                app_version: under().app_version,
                mlx_version: under().mlx_version,
                model: "m".to_owned(),
                target: "/m".to_owned(),
                drafter: None,
                check_key: "cpu, MLX, float32, 00ff".to_owned(),
                device: "cpu".to_owned(),
                dtype: "float32".to_owned(),
                exactness: "exact".to_owned(),
                in_parts: Vec::new(),
                before: conditions.clone(),
                after: conditions,
            },
            prompt_ids: vec!["a".to_owned(), "b".to_owned()],
            repetitions: 5,
            max_tokens: 100,
            temperature: 0.0,
            seed: 0.0,
            stopped: false,
            winner,
            arms: vec![
                arm(SpeculationChoice::Off, None, &[]),
                arm(block(2), Some(two), &[0.8]),
                arm(block(4), Some(four), &[0.8, 0.4, 0.1]),
            ],
            prompts: Vec::new(),
            costs: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn fast(at: f64) -> BenchReport {
        let ratio = Ratio {
            value: 1.4,
            low: Some(1.3),
            high: Some(1.5),
            call: Call::Higher,
        };
        let winner = Winner::Fastest {
            speculation: block(4),
            ratio,
        };
        report(at, (1.2, Call::Higher), (1.4, Call::Higher), winner)
    }

    fn told(benches: Vec<BenchReport>, replies: Vec<Estimate>) -> Option<(PairVerdict, Prior)> {
        let history = PairHistory {
            target: "/m".to_owned(),
            drafter: None,
            benches,
            replies,
        };
        judge(&history, &now())
    }

    fn estimates(speedups: &[f64]) -> Vec<Estimate> {
        let of = |(i, speedup): (usize, &f64)| Estimate {
            made_at: 100.0 - i as f64,
            under: under(),
            depth: if i == 0 { 1 } else { 2 },
            speedup: *speedup,
            acceptance: vec![0.7],
        };
        speedups.iter().enumerate().map(of).collect()
    }

    #[test]
    fn a_benchmark_says_what_won_and_where_to_begin() {
        let (verdict, prior) = told(vec![fast(50.0)], estimates(&[0.5; 8])).unwrap();
        assert!(verdict.changes.is_empty() && !verdict.some_slower);
        assert!(matches!(verdict.says, Winner::Fastest { speculation, .. } if speculation == block(4)));
        assert_eq!(
            verdict.source,
            VerdictSource::Benchmark {
                prompts: 2,
                repetitions: 5
            },
            "it counts more than estimates"
        );
        assert_eq!(prior.depth, Some(3));
        let expected = [0.8, 0.5, 0.25];
        assert!(prior.acceptance.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9));
        assert_eq!(prior.acceptance.len(), 3);
    }

    #[test]
    fn within_the_noise_no_depth_is_named_and_slower_ones_are_not_begun_with() {
        let noise = report(50.0, (1.1, Call::Noise), (0.9, Call::Noise), Winner::Noise);
        let (verdict, prior) = told(vec![noise], Vec::new()).unwrap();
        assert_eq!(
            (verdict.says, verdict.some_slower, prior.depth),
            (Winner::Noise, false, None)
        );
        let slower = report(50.0, (0.8, Call::Lower), (0.5, Call::Lower), Winner::Off);
        let (verdict, prior) = told(vec![slower], Vec::new()).unwrap();
        assert_eq!(
            (verdict.says, verdict.some_slower, prior.depth),
            (Winner::Off, true, Some(0))
        );
    }

    #[test]
    fn what_changed_makes_it_stale_and_no_beginning() {
        let mut old = fast(50.0);
        old.setup.mlx_version = "0.31.0".to_owned();
        let (verdict, prior) = told(vec![old.clone()], Vec::new()).unwrap();
        assert_eq!(verdict.changes, ["MLX 0.31.0 → 0.32.2"]);
        assert_eq!(prior, Prior::default());
        let (verdict, _) = told(vec![fast(5.0)], Vec::new()).unwrap();
        assert_eq!(verdict.changes, ["the model's files"]);
        // An older one under the same circumstances holds all the same.
        let (verdict, _) = told(vec![old.clone(), fast(40.0)], Vec::new()).unwrap();
        assert_eq!((verdict.measured_at, verdict.changes.len()), (40.0, 0));
        // What was worked out in replies is weaker, but of today.
        let (verdict, _) = told(vec![old], estimates(&[1.3, 1.31, 1.29, 1.3])).unwrap();
        assert!(matches!(verdict.source, VerdictSource::Replies { .. }), "{verdict:?}");
    }

    #[test]
    fn what_was_run_otherwise_or_not_whole_is_no_verdict() {
        let with = |change: fn(&mut BenchReport)| {
            let mut report = fast(50.0);
            change(&mut report);
            told(vec![report], Vec::new())
        };
        assert_eq!(with(|r| r.stopped = true), None);
        assert_eq!(with(|r| r.winner = Winner::Unknown), None);
        assert_eq!(with(|r| r.setup.exactness = "fast".to_owned()), None);
        assert_eq!(with(|r| r.setup.after.power_source = Some("battery".to_owned())), None);
        assert_eq!(
            with(|r| r.setup.check_key = "cpu, keys and values in 8 bits, 0".to_owned()),
            None
        );
        assert!(with(|_| ()).is_some());
    }

    #[test]
    fn replies_are_told_as_estimates_and_only_beyond_their_own_spread() {
        assert_eq!(told(Vec::new(), estimates(&[2.0, 2.0])), None, "too few");
        let (verdict, prior) = told(Vec::new(), estimates(&[1.3, 1.28, 1.35, 1.31, 1.3, 1.29])).unwrap();
        assert!(matches!(
            verdict.says,
            Winner::Fastest {
                speculation: SpeculationChoice::Auto,
                ..
            }
        ));
        assert_eq!(verdict.source, VerdictSource::Replies { replies: 6, depth: 2 });
        assert_eq!(
            (verdict.measured_at, prior.depth, prior.acceptance),
            (100.0, Some(2), vec![0.7])
        );
        let (verdict, prior) = told(Vec::new(), estimates(&[0.7, 1.4, 0.9, 1.1, 1.3, 0.8])).unwrap();
        assert_eq!((verdict.says, prior.depth), (Winner::Noise, None));
        let (verdict, prior) = told(Vec::new(), estimates(&[0.7, 0.71, 0.69, 0.72, 0.7])).unwrap();
        assert_eq!((verdict.says, prior.depth), (Winner::Off, Some(0)));
        let mut elsewhere = estimates(&[1.3; 6]);
        for estimate in &mut elsewhere {
            estimate.under.power_source = Some("battery".to_owned());
        }
        assert_eq!(told(Vec::new(), elsewhere), None, "stale estimates are nothing");
    }

    #[test]
    fn shares_are_counted_only_where_the_drafts_before_were_right() {
        assert_eq!(conditional(&[0.8, 0.4, 0.0, 0.0]), [0.8, 0.5, 0.0]);
        assert_eq!(conditional(&[]), [0.0; 0]);
        // Four rounds of two drafts, four of one; the second position was reached five times.
        let (drafted, accepted) = ([2, 2, 2, 2, 2, 1, 1, 1], [2, 1, 2, 1, 1, 0, 1, 1]);
        assert_eq!(by_position(&drafted, &accepted), [0.875, 0.4]);
        assert_eq!(by_position(&drafted[5..], &accepted[5..]), [0.0; 0], "too few");
    }

    #[test]
    fn a_reply_counts_when_it_is_long_and_had_drafts() {
        let stats = |rounds, exactness, is_measured| {
            let mut stats = GenerationStats::default();
            stats.speculation.state = SpeculationState::Auto(ControllerState::On {
                depth: 2,
                tokens_per_round: 2.0,
                speedup: Some(1.3),
                is_measured,
            });
            stats.speculation.rounds = rounds;
            stats.speculation.exactness = exactness;
            stats
        };
        let of = |stats| Estimate::of(&stats, 1.0, under());
        let found = of(stats(16, Exactness::Exact, true)).unwrap();
        assert_eq!((found.depth, found.speedup), (2, 1.3));
        assert_eq!(of(stats(15, Exactness::Exact, true)), None);
        assert_eq!(of(stats(16, Exactness::Fast, true)), None);
        assert_eq!(of(stats(16, Exactness::Exact, false)), None);
        assert_eq!(of(GenerationStats::default()), None);
    }
}
