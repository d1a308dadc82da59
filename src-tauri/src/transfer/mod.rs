//! Chats as files: written as text, as a page or whole, and read from the exports of this app and of others. Texts go in
//! and come out; nothing here knows the database or the disk.

mod export;
mod import;
mod import_chatgpt;
mod import_open_webui;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::ipc::{AppError, ChatConfig, MessageStatus, Role, Run};

pub use export::{export, file_name};
pub use import::{Found, decode, import};

/// A chat with all its branches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Conversation {
    /// Its title.
    pub title: String,
    /// Unix milliseconds.
    pub created_at: f64,
    /// Unix milliseconds of the last message.
    pub updated_at: f64,
    /// Whether it stays at the top of the list.
    pub pinned: bool,
    /// Words that the person gave it.
    pub tags: Vec<String>,
    /// What holds for it alone.
    pub config: ChatConfig,
    /// All messages; each after the one that it follows.
    pub messages: Vec<Entry>,
    /// The place in `messages` of the last one that is shown.
    pub shown: Option<usize>,
}

/// One message of a [`Conversation`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The place of the message that it follows.
    #[serde(default)]
    pub parent: Option<usize>,
    /// Who said it.
    pub role: Role,
    /// Markdown.
    pub content: String,
    /// The thinking block.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// How it stands.
    pub status: MessageStatus,
    /// Unix milliseconds.
    #[serde(default)]
    pub created_at: f64,
    /// Figures of the generation.
    #[serde(default, deserialize_with = "if_readable")]
    pub run: Option<Run>,
    /// Why it failed, if it did.
    #[serde(default, deserialize_with = "if_readable")]
    pub error: Option<AppError>,
    /// How it came: JSON as the database has it, since as lists it would be most of the file.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_readable")]
    pub origin: Option<String>,
    /// How it was made and from where it can go on. Belongs to this computer's models, so it is in no file.
    #[serde(skip)]
    pub making: Making,
}

/// Columns of a reply, as the database has them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Making {
    /// Ids, little-endian, of one that broke off.
    pub token_ids: Option<Vec<u8>>,
    /// JSON of what it was made with.
    pub made: Option<String>,
    /// JSON of what the ids had shown.
    pub shown: Option<String>,
}

impl Conversation {
    /// The messages that are shown, oldest first.
    #[must_use]
    pub fn branch(&self) -> Vec<&Entry> {
        let mut branch = Vec::new();
        let mut at = self.shown;
        // What is not whole must not lead around in circles.
        while let Some(entry) = at
            .and_then(|at| self.messages.get(at))
            .filter(|_| branch.len() < self.messages.len())
        {
            branch.push(entry);
            at = entry.parent;
        }
        branch.reverse();
        branch
    }
}

impl Entry {
    /// A message that is complete.
    #[must_use]
    pub fn new(parent: Option<usize>, role: Role, content: String, created_at: f64) -> Self {
        Entry {
            parent,
            role,
            content,
            reasoning: None,
            status: MessageStatus::Complete,
            created_at,
            run: None,
            error: None,
            origin: None,
            making: Making::default(),
        }
    }
}

/// Figures of another version of the app are worth less than the chat.
fn if_readable<'de, D: Deserializer<'de>, T: for<'a> Deserialize<'a>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}
