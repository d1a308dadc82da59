//! What the engine tells the app: plain data.

use std::ops::ControlFlow;

/// Receives a generation's events on the engine thread. `Break` stops it within one round or one
/// prefill chunk; that answer and the wish for an answer are all that flows back.
pub trait Sink: Send {
    /// Takes one event. Blocking here holds the generation back.
    fn event(&mut self, event: GenerationEvent) -> ControlFlow<()>;

    /// Whether the model is to stop thinking and answer. Asked after each round.
    fn wants_answer(&self) -> bool {
        false
    }
}

impl<F: FnMut(GenerationEvent) -> ControlFlow<()> + Send> Sink for F {
    fn event(&mut self, event: GenerationEvent) -> ControlFlow<()> {
        self(event)
    }
}

/// One step of a generation.
#[derive(Debug, Clone)]
// Rounds are almost all there is; a box would cost each of them an allocation.
#[allow(clippy::large_enum_variant)]
pub enum GenerationEvent {
    /// The prompt is being read.
    Prefill {
        /// Tokens read so far, of the prompt and of what there is of the reply.
        done: usize,
        /// All of them.
        total: usize,
    },
    /// A decode round ended; plain decoding has one token a round.
    Round {
        /// New visible text of the thinking block; never taken back.
        reasoning: String,
        /// New visible text of the answer; never taken back.
        answer: String,
        /// What the round did.
        round: RoundStats,
        /// Figures up to now.
        stats: GenerationStats,
    },
}

/// What one round did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoundStats {
    /// Tokens the drafter proposed.
    pub drafted: usize,
    /// Leading drafts that were kept.
    pub accepted: usize,
    /// Ids the round added to the sequence, end token included.
    pub tokens: Vec<u32>,
    /// How many of these belong to the reply; those behind a stop string do not.
    pub kept: usize,
    /// The first draft that was rejected, as it would have read in its place, which the last token took; the id where
    /// there is no tokenizer.
    pub rejected: Option<String>,
    /// What became visible with this round, cut by token: the event's texts, reasoning first.
    pub pieces: Vec<Piece>,
    /// Milliseconds since the round before was read; `None` for the first, whose time is the prompt's.
    pub ms: Option<f64>,
    /// Whether the ids were said in the model's place, to end its thinking. Such a round counts in no figure.
    pub said: bool,
}

/// A run of visible text that came from one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The token's place among those of the reply, what it goes on from included. The text of one that came before may
    /// have been held back.
    pub token: usize,
    /// Whether it is reasoning, not answer.
    pub thinking: bool,
    /// Its length.
    pub bytes: usize,
}

/// What a reply thought before its answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thought {
    /// Tokens of it that the model chose.
    pub tokens: usize,
    /// Wall-clock milliseconds of decoding it, in this generation.
    pub ms: f64,
    /// Whether the model is still at it.
    pub is_open: bool,
    /// Who ended it, if not the model. It ended after `tokens`: the same number as a budget ends it there again.
    pub ended: Option<ThinkingEnd>,
}

/// Who ended a reply's thinking in the model's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingEnd {
    /// The thinking budget.
    Budget,
    /// The person, who wanted the answer.
    Person,
}

impl ThinkingEnd {
    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ThinkingEnd::Budget => "budget",
            ThinkingEnd::Person => "person",
        }
    }
}

/// Figures of a generation. Times are wall-clock milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerationStats {
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Of these, how many were still held from an earlier generation and not read again.
    pub cached_tokens: usize,
    /// Tokens generated.
    pub tokens: usize,
    /// Reading the prompt.
    pub prefill_ms: f64,
    /// From the request to the first token.
    pub ttft_ms: f64,
    /// From the first token to the last.
    pub decode_ms: f64,
    /// Tokens after the first, by decode time; 0 until there are two.
    pub decode_tokens_per_second: f64,
    /// What it thought.
    pub thought: Thought,
    /// Speculation's part.
    pub speculation: SpeculationStats,
}

/// What speculation did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpeculationStats {
    /// Whether the MTP decoder ran.
    pub enabled: bool,
    /// What it does at the moment, and why.
    pub state: super::SpeculationState,
    /// Why it did not run, why it ran to no avail, or why its figures mislead, in one sentence.
    pub reason: Option<String>,
    /// What it may do to the text.
    pub exactness: super::Exactness,
    /// Tokens verified a round, bonus included, as it is at the moment; 1 when off or parked.
    pub block_size: usize,
    /// When a draft was kept; `None` when off.
    pub accept: Option<super::Acceptance>,
    /// How the drafter was wired, where there is a choice. It changes how often drafts are right, never the text.
    pub wiring: Option<String>,
    /// Rounds with drafts; all rounds when off.
    pub rounds: usize,
    /// Rounds without drafts while it was on: parked, or a look at what plain steps cost. The first token is in none.
    pub plain_rounds: usize,
    /// Tokens proposed.
    pub drafted: usize,
    /// Proposals kept.
    pub accepted: usize,
    /// `accepted / drafted`; 0 without drafts.
    pub acceptance_rate: f64,
    /// Tokens by rounds of both kinds, the prefill's first token apart; 1 when off.
    pub tokens_per_round: f64,
    /// Drafts of each round that had any, in order; those behind the end of the text do not count.
    pub drafted_per_round: Vec<usize>,
    /// Accepted drafts of these rounds.
    pub accepted_per_round: Vec<usize>,
    /// For each draft position, first draft first: kept by proposed.
    pub acceptance_by_position: Vec<f64>,
}

impl SpeculationStats {
    /// Whether every round asked for the same number of drafts.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        matches!(self.state, super::SpeculationState::Fixed { .. })
    }
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// An end token or a stop string.
    Stop,
    /// The token limit or the end of the context.
    Length,
    /// The sink answered `Break`.
    Cancelled,
}

impl FinishReason {
    /// The name the field uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Cancelled => "cancelled",
        }
    }
}

/// A finished generation.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Generated ids. An end token is not among them unless `ignore_eos` let it pass; the token
    /// that completed a stop string is.
    pub tokens: Vec<u32>,
    /// The whole text as generated, thinking and its tags included, end token and stop string apart.
    pub text: String,
    /// Text of the thinking block.
    pub reasoning: String,
    /// Text of the answer.
    pub answer: String,
    /// What became visible only at the end, cut by token, reasoning first: the rest of `reasoning` and `answer`.
    pub late: Vec<Piece>,
    /// Whether thinking used up the token limit, so that there is no answer.
    pub thinking_used_budget: bool,
    /// Why it ended.
    pub finish: FinishReason,
    /// Its figures.
    pub stats: GenerationStats,
}

/// A loaded pair.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Family name, e.g. `qwen3_5`.
    pub family: String,
    /// Where the target was read from.
    pub target: std::path::PathBuf,
    /// Whether a drafter is ready.
    pub drafter: DrafterState,
    /// Most tokens the context holds.
    pub context: usize,
    /// Whether the checkpoint brings a tokenizer and a chat template.
    pub can_chat: bool,
    /// Whether its output has blocks of thinking that can be ended.
    pub can_think: bool,
    /// Sampling defaults of the checkpoint's generation_config.json over the engine's own.
    pub defaults: super::request::SamplingParams,
    /// Where the arithmetic runs: `cpu`, `metal` or `cuda`.
    pub device: &'static str,
    /// Type of the activations, e.g. `float32`.
    pub dtype: &'static str,
    /// How long loading took, in milliseconds.
    pub load_ms: f64,
    /// Bytes MLX holds after the load.
    pub memory_bytes: u64,
    /// Names of the ways the drafter can be wired, the default first; empty without one.
    pub wirings: Vec<String>,
    /// Whether rows of a block equal single rows here, operation by operation; `None` without a drafter.
    pub self_check: Option<super::SelfCheck>,
    /// What the self-check depends on: device, versions, checkpoint and type of the activations.
    pub check_key: String,
    /// What target passes and draft steps cost here; `None` without a drafter or a calibration.
    pub costs: Option<super::Costs>,
    /// What they depend on: as the self-check, and the head and the machine's conditions.
    pub costs_key: String,
    /// Drafts a round that automatic depth begins with; 0 without a drafter, and where drafts would not pay.
    pub auto_depth: usize,
    /// What is odd about the checkpoint but no reason to refuse it.
    pub warnings: Vec<String>,
}

/// Whether a loaded pair can speculate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrafterState {
    /// It can.
    Ready {
        /// Where the head was found, in words.
        source: String,
        /// The drafter's default block size, bonus included.
        block_size: usize,
    },
    /// It cannot.
    Unavailable {
        /// Why, in one sentence.
        reason: String,
    },
}
