//! What benchmarks say, and the history of measurements.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{
    AppError, ContextAcceptance, Cost, MeasuredRun, Ratio, RowCost, Setup, SideFigures, SpeculationChoice, Spread,
};

/// A kind of prompt in the benchmark's set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum PromptKind {
    /// Source code to write.
    Code,
    /// Questions with short, known answers.
    Facts,
    /// Free text.
    Prose,
    /// Lists and counting.
    List,
    /// Text of the prompt said again in other words.
    Rewrite,
    /// A long prompt.
    Long,
    /// A control: hardly anything to guess.
    Predictable,
    /// A control: hardly anything that can be guessed.
    Unpredictable,
}

/// How a benchmark is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct BenchRequest {
    /// Kinds of prompts; none means all.
    pub kinds: Vec<PromptKind>,
    /// What to measure; off is added where it is missing.
    pub arms: Vec<SpeculationChoice>,
    /// Runs of each prompt with each of them.
    pub repetitions: u32,
    /// Most tokens a run.
    pub max_tokens: u32,
}

/// One way to speculate over the whole prompt set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Arm {
    /// Its figures; a value for each repetition of the whole set.
    pub figures: SideFigures,
    /// Decode rate by that without speculation; absent for off itself, and for what did not speculate.
    pub speedup: Option<Ratio>,
    /// Short runs before the measured ones, until two in a row took about the same time.
    #[serde(default)]
    pub warm_ups: u32,
    /// Whether they came to that.
    #[serde(default)]
    pub settled: bool,
    /// By the length of the sequence.
    pub acceptance_by_context: Vec<ContextAcceptance>,
    /// Tokens that were compared with those without speculation; 0 for what did not speculate.
    pub checked_tokens: u32,
    /// Prompts whose tokens are others than without speculation.
    pub differing: Vec<String>,
}

/// One way to speculate on one prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PromptFigures {
    /// Its id in the set.
    pub prompt: String,
    /// Its kind.
    pub kind: PromptKind,
    /// What ran.
    pub speculation: SpeculationChoice,
    /// Decode rate; absent where runs were too short to have one.
    pub tokens_per_second: Option<Spread>,
    /// By that without speculation.
    pub speedup: Option<Ratio>,
    /// Kept by proposed; absent without drafts.
    pub acceptance_rate: Option<f64>,
}

/// What a benchmark says in the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "verdict")]
pub enum Winner {
    /// This is faster than no speculation, beyond the noise. Others may be as fast.
    Fastest {
        /// What ran.
        speculation: SpeculationChoice,
        /// By how much.
        ratio: Ratio,
    },
    /// Everything that could be told apart is slower than no speculation.
    Off,
    /// Nothing could be told apart from no speculation.
    Noise,
    /// There is nothing to compare.
    Unknown,
}

/// A benchmark that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct BenchReport {
    /// Version of this format.
    pub version: u32,
    /// What was run, where, with which versions.
    pub setup: Setup,
    /// Ids of the prompts.
    pub prompt_ids: Vec<String>,
    /// Runs of each prompt with each way.
    pub repetitions: u32,
    /// Most tokens a run.
    pub max_tokens: u32,
    /// 0 is greedy.
    pub temperature: f64,
    /// The seed of all runs.
    pub seed: f64,
    /// Whether it was stopped before the end.
    pub stopped: bool,
    /// What may be said.
    pub winner: Winner,
    /// Over all prompts.
    pub arms: Vec<Arm>,
    /// Prompt by prompt.
    pub prompts: Vec<PromptFigures>,
    /// What whole rounds cost.
    pub costs: Vec<Cost>,
    /// What the target's forward pass alone costs by its tokens, T(K); measured when the pair was loaded, and empty where it
    /// was not.
    #[serde(default)]
    pub passes: Vec<RowCost>,
    /// One step of the drafter alone, in milliseconds; measured likewise.
    #[serde(default)]
    pub draft_ms: Option<f64>,
    /// Each run.
    pub runs: Vec<MeasuredRun>,
}

/// What became worse since the last benchmark of the same pair on the same machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Regression {
    /// What, in words: `tokens/s, block 3`.
    pub what: String,
    /// It was.
    pub before: f64,
    /// It is.
    pub after: f64,
    /// After by before, where both were measured more than once.
    pub ratio: Option<Ratio>,
    /// What changed between the two, in words.
    pub changes: Vec<String>,
}

/// What a benchmark tells while it runs; `done` or `failed` is the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "type")]
#[allow(clippy::large_enum_variant)]
pub enum BenchEvent {
    /// It has begun.
    Started {
        /// Runs there are going to be, warm-ups included.
        runs: u32,
        /// The model's name.
        model: String,
    },
    /// A run begins.
    Run {
        /// Runs that are over.
        done: u32,
        /// Id of the prompt.
        prompt: String,
        /// What is asked for.
        speculation: SpeculationChoice,
        /// From 1; 0 is the warm-up.
        repetition: u32,
    },
    /// A run has ended.
    Measured {
        /// Its figures.
        run: MeasuredRun,
    },
    /// All is measured, and stored.
    Done {
        /// Its id in the history; absent where it could not be stored, or there was nothing to keep.
        id: Option<i32>,
        /// What came out.
        report: BenchReport,
        /// Against the last benchmark of this pair on this machine.
        regressions: Vec<Regression>,
    },
    /// It failed.
    Failed {
        /// Why.
        error: AppError,
    },
}

/// What has to be the same for a measurement to hold. What cannot be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Circumstances {
    /// This app's version.
    pub app_version: String,
    /// MLX's.
    pub mlx_version: String,
    /// Activation type; absent where any would do.
    pub dtype: Option<String>,
    /// What the system calls its power mode.
    pub power_mode: Option<String>,
    /// `mains` or `battery`.
    pub power_source: Option<String>,
}

/// What a verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum VerdictSource {
    /// A whole benchmark.
    Benchmark {
        /// Its prompts.
        prompts: u32,
        /// Runs of each with each way to speculate.
        repetitions: u32,
    },
    /// No benchmark: what automatic depth worked out in replies. An estimate.
    Replies {
        /// How many.
        replies: u32,
        /// Drafts a round that most of them found best.
        depth: u32,
    },
}

/// What speculation is worth for a pair on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PairVerdict {
    /// The drafter's folder, if it is one of its own.
    pub drafter: Option<String>,
    /// What may be said; never `unknown`.
    pub says: Winner,
    /// Whether a way to speculate was slower than none, beyond the noise.
    pub some_slower: bool,
    /// By what.
    pub source: VerdictSource,
    /// Unix milliseconds.
    pub measured_at: f64,
    /// Under which versions and power.
    pub under: Circumstances,
    /// What changed since, in words: the verdict is stale where anything did.
    pub changes: Vec<String>,
}

/// A comparison or benchmark in the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// Its id among those of its kind.
    pub id: i32,
    /// Unix milliseconds.
    pub created_at: f64,
    /// The model's name.
    pub model: String,
    /// This app's version then.
    pub app_version: String,
    /// MLX's version then.
    pub mlx_version: String,
    /// Whether all texts were the same; absent where that was not found out.
    pub identical: Option<bool>,
    /// Speed-up, only where it is beyond the noise.
    pub speedup: Option<f64>,
}

/// A benchmark as text to paste.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct BenchTexts {
    /// For people.
    pub markdown: String,
    /// For programs, with raw numbers.
    pub json: String,
}

/// The history, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Measurements {
    /// Comparisons.
    pub comparisons: Vec<Measurement>,
    /// Benchmarks.
    pub benches: Vec<Measurement>,
}

/// A benchmark of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct OpenBench {
    /// What came out.
    pub report: BenchReport,
    /// Against the one before it of the same pair on the same machine.
    pub regressions: Vec<Regression>,
}
