//! What speculation is worth for a pair on this machine, by what was measured of it; nothing where nothing may be said.
//!
//! A whole benchmark under the same versions and power counts most. Without one, what automatic depth worked out in replies
//! is told as the estimate it is: its plain steps are timed now and then, and its texts are whatever was chatted about. Then
//! a benchmark under other circumstances, which says that it is stale.

#[cfg(test)]
mod tests;

use models::{ControllerState, Exactness, GenerationStats, Prior, SpeculationState};
use serde::{Deserialize, Serialize};

use super::place::{moved, place};
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

/// Files that are others than then, where no commit says so.
const FILES: &str = "the model's files";

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

impl PairHistory {
    /// What was measured of a target with each head, under the paths that they have now: benchmarks of other versions of both
    /// are among it, since they can be told as stale. What was worked out in their replies is not.
    #[must_use]
    pub fn all_of(pairs: &[PairHistory], target: &str, drafter: Option<&str>) -> Vec<PairHistory> {
        let mut found: Vec<PairHistory> = Vec::new();
        let drafter_place = |path: Option<&str>| path.map(place);
        for pair in pairs.iter().filter(|pair| place(&pair.target) == place(target)) {
            let of_pair = drafter_place(pair.drafter.as_deref());
            let at = found
                .iter()
                .position(|other| drafter_place(other.drafter.as_deref()) == of_pair)
                .unwrap_or_else(|| {
                    let is_current = of_pair == drafter_place(drafter);
                    found.push(PairHistory {
                        target: target.to_owned(),
                        drafter: if is_current {
                            drafter.map(str::to_owned)
                        } else {
                            pair.drafter.clone()
                        },
                        ..PairHistory::default()
                    });
                    found.len() - 1
                });
            let Some(whole) = found.get_mut(at) else { continue };
            whole.benches.extend(pair.benches.iter().cloned());
            if pair.target == target && pair.drafter == whole.drafter {
                whole.replies.extend(pair.replies.iter().cloned());
            }
        }
        for whole in &mut found {
            whole
                .benches
                .sort_by(|a, b| b.setup.started_at.total_cmp(&a.setup.started_at));
        }
        found
    }
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
            changes.push(FILES.to_owned());
        }
        changes
    }
}

/// What may be said of a pair, and where its automatic depth begins: nowhere in particular when that is stale.
#[must_use]
pub fn judge(history: &PairHistory, now: &Now) -> Option<(PairVerdict, Prior)> {
    let mut stale = None;
    for report in history.benches.iter().filter(|report| counts(report)) {
        let verdict = of_report(report, history, now);
        if verdict.changes.is_empty() {
            return Some((verdict, prior_of(report)));
        }
        stale = stale.or(Some((verdict, Prior::default())));
    }
    of_replies(history, now).or(stale)
}

/// Whole, with drafts, and run as replies are: exactly, with keys and values as they are, on a machine that stayed powered as it was.
fn counts(report: &BenchReport) -> bool {
    let setup = &report.setup;
    let has_drafts = |arm: &Arm| arm.figures.speculation != SpeculationChoice::Off && arm.figures.speculating;
    !report.stopped
        && report.arms.iter().any(has_drafts)
        && report.winner != Winner::Unknown
        && setup.exactness == Exactness::Exact.as_str()
        && !setup.check_key.contains("keys and values in")
        && setup.before.power_mode == setup.after.power_mode
        && setup.before.power_source == setup.after.power_source
}

fn of_report(report: &BenchReport, history: &PairHistory, now: &Now) -> PairVerdict {
    let under = Circumstances::from(&report.setup);
    let commits = moved(&report.setup, &history.target, history.drafter.as_deref());
    let mut changes = now.changes(&under, report.setup.started_at);
    if !commits.is_empty() {
        changes.retain(|change| change != FILES);
        changes.extend(commits);
    }
    PairVerdict {
        drafter: history.drafter.clone(),
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
        changes,
        under,
    }
}

/// The fastest of the block sizes that are faster beyond the noise, none where all are slower; and how often drafts were right.
fn prior_of(report: &BenchReport) -> Prior {
    let blocks: Vec<(usize, &Arm, Option<&Ratio>)> = report
        .arms
        .iter()
        .filter(|arm| arm.figures.speculating)
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
