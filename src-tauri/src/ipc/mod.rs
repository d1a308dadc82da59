//! What crosses between the window and the app: our own plain types, exported to `ui/src/bindings.ts`.
//!
//! A stream ends with its `done` or `failed` event, never with the command's promise: the promise
//! can resolve before the last messages of the channel arrive.

mod bench;
mod chats;
mod compare;
mod hub;
mod model;
mod settings;

use serde::{Deserialize, Serialize};
use ts_rs::{Config, TS};

pub use bench::*;
pub use chats::*;
pub use compare::*;
pub use hub::*;
pub use model::*;
pub use settings::*;

/// The text of `ui/src/bindings.ts`: every type of this folder, for the window's code.
#[must_use]
pub fn bindings() -> String {
    fn declare<T: TS>(config: &Config) -> String {
        format!("\n{}export {}\n", T::docs().unwrap_or_default(), T::decl(config))
    }
    let config = Config::new();
    let types = [
        declare::<AppError>(&config),
        declare::<ChatSummary>(&config),
        declare::<Chat>(&config),
        declare::<Role>(&config),
        declare::<MessageStatus>(&config),
        declare::<Thought>(&config),
        declare::<Message>(&config),
        declare::<SpeculationChoice>(&config),
        declare::<ExactnessChoice>(&config),
        declare::<Run>(&config),
        declare::<TurnOptions>(&config),
        declare::<TurnEvent>(&config),
        declare::<LocalModel>(&config),
        declare::<ModelStatus>(&config),
        declare::<Speculating>(&config),
        declare::<RowCost>(&config),
        declare::<SamplingDefaults>(&config),
        declare::<Settings>(&config),
        declare::<KvChoice>(&config),
        declare::<DataFolder>(&config),
        declare::<Verdict>(&config),
        declare::<Need>(&config),
        declare::<Machine>(&config),
        declare::<WantedPart>(&config),
        declare::<Wanted>(&config),
        declare::<CatalogPair>(&config),
        declare::<CatalogView>(&config),
        declare::<PlannedFile>(&config),
        declare::<PlannedPart>(&config),
        declare::<DownloadPlan>(&config),
        declare::<DownloadPhase>(&config),
        declare::<Fetched>(&config),
        declare::<WaitReason>(&config),
        declare::<Download>(&config),
        declare::<Cancelled>(&config),
        declare::<FoundRepo>(&config),
        declare::<TokenSource>(&config),
        declare::<TokenView>(&config),
        declare::<ModelRole>(&config),
        declare::<ModelPlace>(&config),
        declare::<ModelHealth>(&config),
        declare::<Shelved>(&config),
        declare::<ModelFolder>(&config),
        declare::<ShelfView>(&config),
        declare::<ModelsView>(&config),
        declare::<Deletion>(&config),
        declare::<Spread>(&config),
        declare::<Call>(&config),
        declare::<Ratio>(&config),
        declare::<Side>(&config),
        declare::<Cost>(&config),
        declare::<ContextAcceptance>(&config),
        declare::<SideFigures>(&config),
        declare::<ScoredToken>(&config),
        declare::<Difference>(&config),
        declare::<Recheck>(&config),
        declare::<Agreement>(&config),
        declare::<CompareRequest>(&config),
        declare::<Comparison>(&config),
        declare::<Setup>(&config),
        declare::<Conditions>(&config),
        declare::<MeasuredRun>(&config),
        declare::<CompareEvent>(&config),
        declare::<PromptKind>(&config),
        declare::<BenchRequest>(&config),
        declare::<Arm>(&config),
        declare::<PromptFigures>(&config),
        declare::<Winner>(&config),
        declare::<BenchReport>(&config),
        declare::<Regression>(&config),
        declare::<BenchEvent>(&config),
        declare::<Circumstances>(&config),
        declare::<VerdictSource>(&config),
        declare::<PairVerdict>(&config),
        declare::<Measurement>(&config),
        declare::<BenchTexts>(&config),
        declare::<Measurements>(&config),
        declare::<OpenBench>(&config),
        declare::<ChatConfig>(&config),
        declare::<Preset>(&config),
        declare::<SnippetPiece>(&config),
        declare::<SearchHit>(&config),
        declare::<RoundText>(&config),
        declare::<PaceBin>(&config),
        declare::<Provenance>(&config),
        declare::<ProvenanceNews>(&config),
        declare::<Attachment>(&config),
        declare::<PickedPdf>(&config),
        declare::<Picked>(&config),
        declare::<Dropped>(&config),
        declare::<ExportFormat>(&config),
        declare::<Imported>(&config),
    ];
    format!(
        "// Generated from src-tauri/src/ipc: npm run bindings\n{}",
        types.concat()
    )
}

/// A failure as the window sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct AppError {
    /// Stable name of the kind, in snake case.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A chat in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ChatSummary {
    /// Its id.
    pub id: i32,
    /// Its title; made from the first message until renamed.
    pub title: String,
    /// Unix milliseconds.
    pub created_at: f64,
    /// Unix milliseconds of the last message.
    pub updated_at: f64,
    /// Whether it stays at the top of the list.
    pub pinned: bool,
    /// Words that the person gave it.
    pub tags: Vec<String>,
}

/// A chat with its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Chat {
    /// The list entry.
    pub summary: ChatSummary,
    /// The branch that is shown, oldest first.
    pub messages: Vec<Message>,
    /// What holds for this chat alone.
    pub config: ChatConfig,
    /// What was written and not sent.
    pub draft: String,
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// How a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum MessageStatus {
    /// Being generated.
    Streaming,
    /// Ended by itself.
    Complete,
    /// Ended by the token limit or the context.
    Length,
    /// Stopped by the person; what there was is kept.
    Stopped,
    /// Ended by an error; what there was is kept.
    Failed,
    /// The app ended while it was generated; what there was is kept.
    Interrupted,
}

/// How long a reply thought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Thought {
    /// Tokens that the model chose.
    pub tokens: u32,
    /// Milliseconds.
    pub ms: f64,
    /// Whether the model was still at it.
    pub open: bool,
    /// `budget` or `person`, where the model did not end it by itself.
    pub ended: Option<String>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id.
    pub id: i32,
    /// Its chat.
    pub chat_id: i32,
    /// Who said it.
    pub role: Role,
    /// Markdown.
    pub content: String,
    /// The thinking block, if there was one.
    pub reasoning: Option<String>,
    /// How long it thought; `None` without thinking, and where that was not kept.
    pub thought: Option<Thought>,
    /// How it stands.
    pub status: MessageStatus,
    /// Unix milliseconds.
    pub created_at: f64,
    /// Figures of the generation; assistant messages only.
    pub run: Option<Run>,
    /// Why it failed, if it did.
    pub error: Option<AppError>,
    /// All versions of this message in the order they were made, itself among them.
    pub versions: Vec<i32>,
    /// Whether the reply broke off and can go on from there.
    pub can_continue: bool,
}

/// Speculation as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "mode")]
pub enum SpeculationChoice {
    /// Plain decoding.
    Off,
    /// As many drafts a round as pay, by what was measured.
    Auto,
    /// A fixed block size.
    #[serde(rename_all = "camelCase")]
    Block {
        /// 2..=16, bonus included.
        size: u32,
    },
}

/// What speculation may do to the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ExactnessChoice {
    /// Nothing.
    #[default]
    Exact,
    /// Change it now and then, for speed.
    Fast,
}

impl ExactnessChoice {
    /// As it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Fast => "fast",
        }
    }

    /// From how it is stored.
    #[must_use]
    pub fn read(text: &str) -> Self {
        if text == "fast" { Self::Fast } else { Self::Exact }
    }
}

/// Figures of one generation: what the engine did, not what was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Display name of the target.
    pub model: String,
    /// Whether the MTP decoder ran.
    pub speculating: bool,
    /// `off`, `unavailable`, `fixed`, `on`, `parked` or `probing`; empty for replies of earlier versions.
    pub state: String,
    /// The state in one plain sentence, with its numbers.
    pub sentence: String,
    /// Why it did not, or why it ran to no avail.
    pub reason: Option<String>,
    /// What speculation may have done to the text.
    pub exactness: ExactnessChoice,
    /// What that rests on, in one plain sentence.
    pub exactness_sentence: String,
    /// Tokens verified a round, bonus included, as it was last; 1 when off or parked.
    pub block_size: u32,
    /// How the drafter was wired, where there is a choice.
    pub wiring: Option<String>,
    /// Prompt tokens.
    pub prompt_tokens: u32,
    /// Generated tokens.
    pub tokens: u32,
    /// Milliseconds.
    pub prefill_ms: f64,
    /// Milliseconds to the first token.
    pub ttft_ms: f64,
    /// Milliseconds from the first token to the last.
    pub decode_ms: f64,
    /// Decode rate, prefill apart.
    pub tokens_per_second: f64,
    /// Rounds with drafts; all rounds when off.
    pub rounds: u32,
    /// Rounds without drafts while it was on.
    pub plain_rounds: u32,
    /// Drafts proposed.
    pub drafted: u32,
    /// Drafts kept.
    pub accepted: u32,
    /// 0..=1.
    pub acceptance_rate: f64,
    /// Tokens by rounds.
    pub tokens_per_round: f64,
    /// For each draft position: kept by proposed.
    pub acceptance_by_position: Vec<f64>,
    /// Accepted drafts of each round with drafts, in order.
    pub accepted_per_round: Vec<u32>,
    /// Drafts of each of these rounds; empty for replies of earlier versions, whose rounds had `block_size - 1`.
    pub drafted_per_round: Vec<u32>,
    /// The seed that reproduces it. Below 2^53.
    pub seed: f64,
}

/// Options of one message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct TurnOptions {
    /// Speculation for this reply.
    pub speculation: SpeculationChoice,
    /// What it may do to the text.
    #[serde(default)]
    pub exactness: ExactnessChoice,
    /// 0 is greedy; without a value the model's default.
    pub temperature: Option<f64>,
    /// Without a value the model's default.
    pub top_p: Option<f64>,
    /// Without a value the model's default.
    pub top_k: Option<u32>,
    /// Without a value the model's default.
    pub min_p: Option<f64>,
    /// Without a value a fresh one. Below 2^53.
    pub seed: Option<f64>,
    /// Most tokens of the reply; without a value, what the context holds.
    pub max_tokens: Option<u32>,
    /// The template's thinking switch; without a value the template decides.
    pub thinking: Option<bool>,
    /// Tokens of thinking after which the model is made to answer; without a value it ends by itself.
    #[serde(default)]
    pub thinking_budget: Option<u32>,
}

/// What a turn tells the window, in order: `started`, `prefill`*, `delta`*, then `done` or `failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "type")]
// One at a time goes through the channel; a box would not make it smaller there.
#[allow(clippy::large_enum_variant)]
pub enum TurnEvent {
    /// Both messages are on disk; generation starts.
    Started {
        /// The chat, new or not.
        chat: ChatSummary,
        /// The person's message.
        user: Message,
        /// The reply, empty as yet.
        assistant: Message,
    },
    /// The prompt is being read.
    Prefill {
        /// Tokens read.
        done: u32,
        /// Tokens in all.
        total: u32,
    },
    /// More of the reply; sent at most 30 times a second.
    Delta {
        /// New text of the thinking block.
        reasoning: String,
        /// New text of the answer.
        answer: String,
        /// How long it thought up to now.
        thought: Option<Thought>,
        /// Figures up to now, at most four times a second: they grow with the reply.
        run: Option<Run>,
        /// How it came, at most four times a second and with the last text.
        origin: Option<ProvenanceNews>,
    },
    /// The reply is complete and stored.
    Done {
        /// The stored reply.
        message: Message,
        /// The chat, with its new title and time.
        chat: ChatSummary,
    },
    /// The reply failed; what there was of it is stored.
    Failed {
        /// Why.
        error: AppError,
        /// The stored reply, if one was begun.
        message: Option<Message>,
    },
}

/// What the person chose; kept in the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Options of the next message.
    pub options: TurnOptions,
    /// `system`, `light` or `dark`.
    pub theme: String,
    /// Whether the first-run explanation was closed.
    pub welcomed: bool,
    /// Whether the side bar is open.
    pub sidebar: bool,
    /// `builtin` or a folder, loaded at start.
    pub model: String,
    /// Drafter folder for `model`, if it is one of its own.
    pub drafter: Option<String>,
    /// Named configurations for chats.
    pub presets: Vec<Preset>,
    /// `system` or the tag of a language that the window has.
    pub language: String,
    /// How the next load holds keys and values.
    pub kv: KvChoice,
    /// Most memory for models, in billions of bytes; without a value what the machine lends.
    pub memory_limit_gb: Option<f64>,
    /// Whether Enter sends a message; else it is a new line, and Enter with Command or Control sends.
    pub enter_sends: bool,
}

impl Default for TurnOptions {
    fn default() -> Self {
        Self {
            speculation: SpeculationChoice::Auto,
            exactness: ExactnessChoice::Exact,
            temperature: None,
            top_p: None,
            top_k: None,
            min_p: None,
            seed: None,
            max_tokens: None,
            thinking: None,
            thinking_budget: None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            options: TurnOptions::default(),
            theme: "system".to_owned(),
            welcomed: false,
            sidebar: true,
            model: "builtin".to_owned(),
            drafter: None,
            presets: Vec::new(),
            language: "system".to_owned(),
            kv: KvChoice::Plain,
            memory_limit_gb: None,
            enter_sends: true,
        }
    }
}
