//! Types of the library of chats.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{AppError, ChatSummary, Role, TurnOptions};

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

/// What one round added to a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct RoundText {
    /// The length of its text in the answer, in UTF-16 units as JavaScript counts them.
    pub length: u32,
    /// Its tokens; none if it is not known how the text came.
    pub tokens: u32,
    /// Drafts proposed.
    pub drafted: u32,
    /// Drafts kept: its first tokens. Behind them is one of the model's own, unless the reply ended before.
    pub accepted: u32,
    /// The part of `length` that each token showed, none for one without text; empty for replies of earlier versions.
    pub pieces: Vec<u32>,
    /// Likewise of the thinking block; empty where no token showed any of it.
    pub thinking: Vec<u32>,
    /// The first draft that was rejected, as text; the last token took its place.
    pub rejected: Option<String>,
    /// Whether its tokens were said in the model's place, to end its thinking.
    #[serde(default)]
    pub said: bool,
}

/// How long some rounds in a row took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PaceBin {
    /// How many they are.
    pub rounds: u32,
    /// Their tokens.
    pub tokens: u32,
    /// Milliseconds from the read before the first of them to that of the last.
    pub ms: f64,
}

/// How a reply came.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// Its rounds in order; without drafts, one for each token.
    pub rounds: Vec<RoundText>,
    /// Its pace while it was written, reading the prompt apart; at most 200.
    pub pace: Vec<PaceBin>,
}

/// What is new of how a reply comes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ProvenanceNews {
    /// The place of the first of `rounds`: they take that of all from there on.
    pub from: u32,
    /// Rounds that are new, or of which more was shown.
    pub rounds: Vec<RoundText>,
    /// The pace up to now.
    pub pace: Vec<PaceBin>,
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

/// A PDF that was picked; the window reads its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PickedPdf {
    /// To ask for its bytes, once.
    pub id: u32,
    /// The file's name, without its folder.
    pub name: String,
}

/// What became of the files that were picked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Picked {
    /// Those that are text.
    pub files: Vec<Attachment>,
    /// Those that are still to be read.
    pub pdfs: Vec<PickedPdf>,
    /// One failure for each of the others.
    pub refused: Vec<AppError>,
}

/// What was dropped on the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// Folders, which may hold models.
    pub folders: Vec<String>,
    /// What became of the files.
    pub files: Picked,
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
