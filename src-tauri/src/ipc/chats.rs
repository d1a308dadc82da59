//! Types of the library of chats.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ChatSummary, Role, TurnOptions};

/// What holds for one chat alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", default)]
pub struct ChatConfig {
    /// Instructions before the first message; empty for none.
    pub system_prompt: String,
    /// The chat's own options; without them the settings' options hold.
    pub options: Option<TurnOptions>,
}

/// A configuration with a name, to be used again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it sets.
    pub config: ChatConfig,
}

/// A stretch of text around what was searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SnippetPiece {
    /// The text.
    pub text: String,
    /// Whether it is what was searched for.
    pub hit: bool,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// Its chat.
    pub chat_id: i32,
    /// The chat's title.
    pub title: String,
    /// The message; it may lie on a branch that is not shown.
    pub message_id: i32,
    /// Who said it.
    pub role: Role,
    /// Unix milliseconds.
    pub created_at: f64,
    /// The words and what is around the first of them.
    pub pieces: Vec<SnippetPiece>,
}

/// What one round added to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct RoundText {
    /// The length of its text, in UTF-16 units as JavaScript counts them.
    pub length: u32,
    /// Its tokens; none if it is not known how the text came.
    pub tokens: u32,
    /// Drafts proposed.
    pub drafted: u32,
    /// Drafts kept; the last token of the round is the model's own.
    pub accepted: u32,
}

/// A text file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// The file's name, without its folder.
    pub name: String,
    /// All of it.
    pub text: String,
    /// Its length for the model that is loaded, if that could be asked.
    pub tokens: Option<u32>,
}

/// What chats can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ExportFormat {
    /// What is shown, as text with headings.
    Markdown,
    /// All branches with their figures; can be imported.
    Json,
    /// What is shown, as a page.
    Html,
}

/// What an import brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The new chats.
    pub chats: Vec<ChatSummary>,
    /// How many were here already.
    pub already: u32,
    /// One sentence for each chat that could not be read.
    pub left_out: Vec<String>,
}
