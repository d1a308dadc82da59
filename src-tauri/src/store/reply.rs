//! What is kept of a reply beside its text, and how.

use serde::{Deserialize, Serialize};

use crate::ipc::{AppError, ChatSummary, KvChoice, Message, MessageStatus, Provenance, Run, Thought, TurnOptions};

/// A turn that has begun: both messages are on disk.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The chat, new or not.
    pub chat: ChatSummary,
    /// The person's message.
    pub user: Message,
    /// The reply: empty as yet, or what it goes on from.
    pub assistant: Message,
    /// All messages before the reply, the person's last.
    pub history: Vec<Message>,
    /// The chat's instructions; empty for none.
    pub system_prompt: String,
    /// What the reply goes on from, if it does.
    pub continued: Option<Continued>,
}

/// A reply that broke off.
#[derive(Debug, Clone)]
pub struct Continued {
    /// Its ids.
    pub tokens: Vec<u32>,
    /// How it was made.
    pub made: Made,
    /// What the engine did for it, if that is known.
    pub run: Option<Run>,
    /// How it came, as far as that is known.
    pub origin: Provenance,
}

/// What a reply is made with, and must be made with to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The model's id.
    pub model: String,
    /// Sampling as it was, the seed that was drawn among it.
    pub options: TurnOptions,
    /// The chat's instructions at that time; `None` for replies of earlier versions.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// How long it thought, once it has ended or broken off. What the person ended is in the options as a budget.
    #[serde(default)]
    pub thought: Option<Thought>,
    /// How the model held keys and values: packed ones give other text.
    #[serde(default)]
    pub kv: KvChoice,
}

impl Made {
    /// The same when it is known how it thought: as a budget, what the person ended comes out the same again.
    #[must_use]
    pub fn after(mut self, thought: Thought) -> Self {
        if thought.ended.as_deref() == Some("person") {
            self.options.thinking_budget = Some(thought.tokens);
        }
        self.thought = Some(thought);
        self
    }

    /// Whether the person ended its thinking.
    #[must_use]
    pub fn was_ended_by_the_person(&self) -> bool {
        let ended = self.thought.as_ref().and_then(|thought| thought.ended.as_deref());
        ended == Some("person")
    }
}

/// From where a reply can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// Its ids.
    pub tokens: Vec<u32>,
    /// Bytes of the answer that they had shown; what was held back may still become something else.
    pub answer: usize,
    /// Likewise of the thinking block.
    pub reasoning: usize,
}

/// How a reply ended.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The whole answer.
    pub content: String,
    /// The whole thinking block; empty if there was none.
    pub reasoning: String,
    /// How it stands.
    pub status: MessageStatus,
    /// What the engine did, if it did anything.
    pub run: Option<Run>,
    /// Why it failed, if it did.
    pub error: Option<AppError>,
    /// From where it can go on, if it broke off.
    pub resume: Option<Resume>,
    /// How it came.
    pub origin: Provenance,
}

/// Little-endian; nothing for none.
pub(super) fn blob(tokens: &[u32]) -> Option<Vec<u8>> {
    (!tokens.is_empty()).then(|| tokens.iter().flat_map(|id| id.to_le_bytes()).collect())
}

/// What [`blob`] made.
pub(super) fn ids(blob: &[u8]) -> Vec<u32> {
    blob.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id)).collect()
}
