//! What comparisons say, and what they share with benchmarks. Numbers that cannot be read or were not measured are absent, never 0.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{AppError, SpeculationChoice, TurnOptions};

/// Measurements of one quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// All of them, in the order in which they were measured.
    pub values: Vec<f64>,
}

/// What two sets of measurements allow to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Call {
    /// The first is larger.
    Higher,
    /// The first is smaller.
    Lower,
    /// The difference is within the noise: neither is.
    Noise,
    /// Too few measurements to tell.
    TooFew,
}

/// The ratio of two medians.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Ratio {
    /// First by second.
    pub value: f64,
    /// What the noise allows: 99 of 100 resamples from five measurements on, with three or four the extremes and as much
    /// again; absent with fewer.
    pub low: Option<f64>,
    /// The other end.
    pub high: Option<f64>,
    /// What may be said.
    pub call: Call,
}

/// One of the two ways to run a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// Speculation off.
    Off,
    /// Speculation on.
    On,
}

/// What a whole round of so many rows costs: drafting, the check and the choices. Rounds of plain decoding are those of the
/// side or arm without speculation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Tokens checked at once; 1 is plain decoding.
    pub rows: u32,
    /// Rounds it was measured on.
    pub rounds: u32,
    /// Median milliseconds of a round.
    pub ms: f64,
    /// By those of a round of plain decoding; absent where that was not measured.
    pub ratio: Option<f64>,
}

/// How often drafts were kept while the sequence had a certain length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ContextAcceptance {
    /// Tokens, from.
    pub from: u32,
    /// Up to, this one not included.
    pub to: u32,
    /// Drafts proposed.
    pub drafted: u32,
    /// Drafts kept.
    pub accepted: u32,
}

/// A side's or a block size's figures over its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SideFigures {
    /// What ran: a block that was larger than what is exact here is told as it was cut.
    pub speculation: SpeculationChoice,
    /// What was asked for and ran as this, where that is something else.
    #[serde(default)]
    pub asked: Vec<SpeculationChoice>,
    /// Whether the MTP decoder ran.
    pub speculating: bool,
    /// Why it did not.
    pub reason: Option<String>,
    /// Decode rate; absent where runs were too short to have one.
    pub tokens_per_second: Option<Spread>,
    /// Milliseconds to the first token.
    pub ttft_ms: Option<Spread>,
    /// Milliseconds from the request to the last token.
    pub total_ms: Option<Spread>,
    /// Tokens by rounds; 1 when off.
    pub tokens_per_round: f64,
    /// Kept by proposed; absent without drafts.
    pub acceptance_rate: Option<f64>,
    /// For each draft position: kept by proposed.
    pub acceptance_by_position: Vec<f64>,
}

/// A token and its score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ScoredToken {
    /// Its id.
    pub token: u32,
    /// What it reads as.
    pub text: String,
    /// The model's logit, before sampling settings.
    pub logit: f64,
}

/// Where two texts part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Which side departed from the first run with speculation off; `off` when plain decoding does not repeat itself.
    pub side: Side,
    /// Place of the first differing token in the reply, from 0.
    pub position: u32,
    /// The text both begin with, its end.
    pub before: String,
    /// How the first run goes on.
    pub expected: String,
    /// How the departing one goes on.
    pub found: String,
    /// Ids of the first run from there; the first is absent where the run had ended.
    pub expected_tokens: Vec<u32>,
    /// Ids of the departing one.
    pub found_tokens: Vec<u32>,
    /// The model's best token there, run plainly; absent where it could not be asked.
    pub first: Option<ScoredToken>,
    /// The one after it.
    pub second: Option<ScoredToken>,
    /// How far the best is ahead.
    pub margin: Option<f64>,
    /// The first token of the first run from there, with its score; absent where that run had ended.
    #[serde(default)]
    pub of_expected: Option<ScoredToken>,
    /// Likewise of the departing one.
    #[serde(default)]
    pub of_found: Option<ScoredToken>,
    /// How far the scores of these two are apart: of the first run's token less that of the other.
    #[serde(default)]
    pub apart: Option<f64>,
    /// Operations that do not give a block the bits of single rows on this device and were run at once all the same.
    pub suspects: Vec<String>,
    /// What the self-check said when it was run anew because of this; absent in fast mode, where plain decoding does not
    /// repeat itself, and where it could not be run.
    #[serde(default)]
    pub recheck: Option<Recheck>,
}

/// A self-check that was run anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Recheck {
    /// Kinds of operation that were compared.
    pub checked: u32,
    /// Tokens of the largest block that is exact as a whole.
    pub block: u32,
    /// What the load rested on.
    pub block_before: u32,
}

/// Whether both sides said the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "verdict")]
pub enum Agreement {
    /// Token for token, in every run.
    Identical {
        /// Tokens of the reply that were checked.
        tokens: u32,
        /// Runs that were compared with the first.
        runs: u32,
    },
    /// They part.
    Different {
        /// Where and how.
        difference: Box<Difference>,
    },
    /// It was stopped before both sides had run.
    Unknown,
}

/// How a comparison is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct CompareRequest {
    /// A message to run again, with the conversation before it: a reply as it was made, one of the person's as it would be
    /// answered now.
    pub message_id: Option<i32>,
    /// A new prompt, where there is no message.
    pub prompt: Option<String>,
    /// The settings of both sides; its speculation is that of the side with it.
    pub options: TurnOptions,
    /// Measured runs a side.
    pub repetitions: u32,
}

/// A comparison that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// What was run, where, with which versions.
    pub setup: Setup,
    /// The message it was started from.
    pub message_id: Option<i32>,
    /// Whether the reply that it was started from says what plain decoding said here; absent without a reply, and where one
    /// of the two is not whole.
    #[serde(default)]
    pub matches_reply: Option<bool>,
    /// The last message of the prompt.
    pub prompt: String,
    /// Tokens in the prompt.
    pub prompt_tokens: u32,
    /// The seed of all runs.
    pub seed: f64,
    /// Runs a side that were asked for.
    pub repetitions: u32,
    /// Whether it was stopped before the end.
    pub stopped: bool,
    /// Whether both sides said the same.
    pub agreement: Agreement,
    /// The text with speculation off.
    pub off_text: String,
    /// The text with speculation on.
    pub on_text: String,
    /// Off, over the measured runs.
    pub off: SideFigures,
    /// On.
    pub on: SideFigures,
    /// Decode rate on by off; absent where one side has none.
    pub speedup: Option<Ratio>,
    /// What rounds cost.
    pub costs: Vec<Cost>,
    /// Each run.
    pub runs: Vec<MeasuredRun>,
}

/// What both comparisons and benchmarks record of their surroundings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    /// Unix milliseconds of the start.
    pub started_at: f64,
    /// This app's version.
    pub app_version: String,
    /// MLX's.
    pub mlx_version: String,
    /// Display name of the target.
    pub model: String,
    /// The target's folder.
    pub target: String,
    /// The drafter's folder, if it is one of its own.
    pub drafter: Option<String>,
    /// Device, versions, checkpoint and activation type: what the self-check depends on.
    pub check_key: String,
    /// `cpu`, `metal` or `cuda`.
    pub device: String,
    /// Activation type.
    pub dtype: String,
    /// `exact` or `fast`.
    pub exactness: String,
    /// Operations that exact mode does not run at once on this device.
    pub in_parts: Vec<String>,
    /// The machine before.
    pub before: Conditions,
    /// The machine after.
    pub after: Conditions,
}

/// The state of the machine. What cannot be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Conditions {
    /// Name of the processor or chip.
    pub chip: Option<String>,
    /// Its logical cores.
    pub cores: Option<u32>,
    /// Name of the graphics processor, if it is one of its own.
    pub gpu: Option<String>,
    /// Bytes of memory.
    pub memory_bytes: Option<f64>,
    /// Name and version of the system.
    pub os: Option<String>,
    /// What the system calls its power mode.
    pub power_mode: Option<String>,
    /// `mains` or `battery`.
    pub power_source: Option<String>,
    /// What the system says of heat.
    pub thermal: Option<String>,
    /// Load averages of 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Bytes swapped out.
    pub swap_used_bytes: Option<f64>,
}

/// One run, as measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct MeasuredRun {
    /// Id of the prompt in the set; absent in a comparison.
    pub prompt: Option<String>,
    /// What was asked for.
    pub speculation: SpeculationChoice,
    /// From 1.
    pub repetition: u32,
    /// Place in the order of all runs, from 1.
    pub order: u32,
    /// Tokens in the prompt.
    pub prompt_tokens: u32,
    /// Generated tokens.
    pub tokens: u32,
    /// Milliseconds.
    pub prefill_ms: f64,
    /// Milliseconds to the first token.
    pub ttft_ms: f64,
    /// Milliseconds from the first token to the last.
    pub decode_ms: f64,
    /// Decode rate by its timed rounds; absent where they were too few.
    pub tokens_per_second: Option<f64>,
    /// Rounds.
    pub rounds: u32,
    /// Drafts proposed.
    pub drafted: u32,
    /// Drafts kept.
    pub accepted: u32,
}

/// What a comparison tells while it runs: `started`, then for each run `run`, `prefill`*, `delta`*, `measured`; at the end
/// `done` or `failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "type")]
// One at a time goes through the channel.
#[allow(clippy::large_enum_variant)]
pub enum CompareEvent {
    /// It has begun.
    Started {
        /// Runs there are going to be, warm-ups included.
        runs: u32,
        /// The model's name.
        model: String,
        /// The last message of the prompt.
        prompt: String,
    },
    /// A run begins: the side's text starts anew.
    Run {
        /// Which side.
        side: Side,
        /// From 1; 0 is the warm-up, which is not measured.
        repetition: u32,
    },
    /// The prompt is being read.
    Prefill {
        /// Which side.
        side: Side,
        /// Tokens read.
        done: u32,
        /// Tokens in all.
        total: u32,
    },
    /// More text; at most 30 times a second.
    #[serde(rename_all = "camelCase")]
    Delta {
        /// Which side.
        side: Side,
        /// New text, thinking included.
        text: String,
        /// Tokens up to now.
        tokens: u32,
        /// Rate up to now.
        tokens_per_second: f64,
    },
    /// A run has ended.
    Measured {
        /// Which side.
        side: Side,
        /// Its figures.
        run: MeasuredRun,
    },
    /// All is measured, and stored.
    Done {
        /// Its id in the history; absent where it could not be stored, or there was nothing to keep.
        id: Option<i32>,
        /// What came out.
        comparison: Comparison,
    },
    /// It failed.
    Failed {
        /// Why.
        error: AppError,
    },
}
