//! What the app asks of the engine: plain data.

use std::path::PathBuf;

use crate::cache::KvFormat;

/// Which checkpoint pair to load and how.
#[derive(Debug, Clone, Default)]
pub struct LoadRequest {
    /// Folder of the target.
    pub target: PathBuf,
    /// Folder of a standalone drafter; without one the target's own head is used if it has one.
    pub drafter: Option<PathBuf>,
    /// Whether to look for a drafter at all.
    pub draft_kind: DraftKind,
    /// Type of the activations; without one, f32 on the CPU and the checkpoint's own on a GPU.
    pub dtype: Option<ActivationDtype>,
    /// What was measured before of the drafter's wirings, if it has several.
    pub wirings: Vec<super::WiringTally>,
    /// What was measured before on this machine, so that it need not be again.
    pub measured: super::Measured,
    /// Where automatic depth begins, by what earlier runs of this pair showed.
    pub prior: super::Prior,
    /// Whether costs are measured, for automatic depth.
    pub calibration: super::Calibration,
    /// How the target's keys and values are held.
    pub kv: KvFormat,
    /// Bytes that conversations may hold between generations; without a number, a share of the memory there is.
    pub cache_bytes: Option<u64>,
    /// Bytes that MLX is told to get along with; without a number, what it takes for granted itself. A guideline: beyond it
    /// freed memory is not kept for later and work waits for other work, but nothing fails.
    pub memory_limit: Option<u64>,
}

/// Which kind of drafter a load may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DraftKind {
    /// An MTP head if there is one.
    #[default]
    Auto,
    /// An MTP head; its absence is an error.
    Mtp,
    /// No drafter, even if there is one.
    None,
}

/// Type of the activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivationDtype {
    /// 32-bit floats.
    Float32,
    /// IEEE half precision.
    Float16,
    /// bfloat16.
    BFloat16,
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name chat templates use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said, thinking apart.
    pub content: String,
    /// An assistant message's thinking, if any; templates see it as `reasoning_content`.
    pub reasoning: Option<String>,
}

/// What to continue.
#[derive(Debug, Clone)]
pub enum Prompt {
    /// A conversation, rendered through the checkpoint's chat template.
    Messages(Vec<Message>),
    /// A conversation in the field's JSON form (roles, tool calls and all), rendered likewise.
    Json(serde_json::Value),
    /// Text, tokenized as it is.
    Raw(String),
    /// Token ids, used as they are.
    Ids(Vec<u32>),
}

/// How the next token is chosen.
///
/// Filters apply in this order: logit bias, repetition, presence and frequency penalty, top-p,
/// min-p, top-k, temperature. The filters look at the distribution before temperature.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// 0 takes the most likely token; otherwise logits are divided by it.
    pub temperature: f32,
    /// Keeps the most likely tokens while the mass ranked above them is less; off at 1 and above.
    pub top_p: f32,
    /// Keeps this many tokens; off at 0.
    pub top_k: usize,
    /// Keeps tokens at least this share as likely as the best; off at 0.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens already there; off at 1.
    pub repetition_penalty: f32,
    /// Subtracted once from tokens already there; off at 0.
    pub presence_penalty: f32,
    /// Subtracted for each occurrence; off at 0.
    pub frequency_penalty: f32,
    /// Added to single tokens' logits.
    pub logit_bias: Vec<(u32, f32)>,
    /// Fixes all randomness: position `i` of the sequence always draws with `(seed, i)`.
    pub seed: u64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

/// What speculation to use for one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speculation {
    /// Plain decoding.
    Off,
    /// With as many drafts a round as give the most tokens a second, by what rounds cost and how often drafts are right;
    /// with none where plain decoding is faster.
    #[default]
    Auto,
    /// With this block size, the bonus token included: 2..=16.
    Block(usize),
}

/// What speculation may do to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exactness {
    /// Nothing: operations whose rows depend on their neighbours here run in parts.
    #[default]
    Exact,
    /// Change it now and then, like another rounding would: everything runs as fast as it can.
    Fast,
}

impl Exactness {
    /// The name in settings and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Exactness::Exact => "exact",
            Exactness::Fast => "fast",
        }
    }
}

/// When a draft is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acceptance {
    /// When it equals the target's own choice. The text is the same with speculation on and off.
    #[default]
    Equality,
    /// By chance, so that each token follows the target's distribution exactly. Drafts are kept more often; the text is
    /// another than without speculation, of the same distribution. At temperature 0 it is equality.
    Rejection,
}

impl Acceptance {
    /// The name in options and figures.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Acceptance::Equality => "equality",
            Acceptance::Rejection => "rejection",
        }
    }
}

/// The largest block size a request may ask for, bonus included.
pub const MAX_BLOCK_SIZE: usize = 16;

/// One generation.
#[derive(Debug, Clone)]
pub struct GenerateRequest {
    /// What to continue.
    pub prompt: Prompt,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Most tokens to generate; without a limit, until the context is full.
    pub max_tokens: Option<usize>,
    /// Strings that end the text and are not part of it.
    pub stop: Vec<String>,
    /// Generate on past end tokens.
    pub ignore_eos: bool,
    /// Whether and how to speculate.
    pub speculation: Speculation,
    /// When a draft is kept.
    pub accept: Acceptance,
    /// How the drafter is wired, by name; without one the engine chooses by what it measured.
    pub wiring: Option<String>,
    /// The template's `enable_thinking`; without a value the template decides.
    pub thinking: Option<bool>,
    /// After this many tokens of thinking it is ended in the model's place; without a number the model ends it.
    pub thinking_budget: Option<usize>,
    /// What speculation may do to the text.
    pub exactness: Exactness,
    /// Reads the whole prompt anew and keeps nothing of it: for measurements.
    pub fresh: bool,
    /// What there is already of the reply, as generated: it is run again the way it was, so that the reply goes on as if
    /// it had never been interrupted. The result holds the whole reply.
    pub continued: Vec<u32>,
}

impl GenerateRequest {
    /// A request with default settings.
    #[must_use]
    pub fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            sampling: SamplingParams::default(),
            max_tokens: None,
            stop: Vec::new(),
            ignore_eos: false,
            speculation: Speculation::default(),
            accept: Acceptance::default(),
            wiring: None,
            thinking: None,
            thinking_budget: None,
            exactness: Exactness::default(),
            fresh: false,
            continued: Vec::new(),
        }
    }
}
