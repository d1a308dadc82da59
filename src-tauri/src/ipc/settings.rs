//! Single settings, and where they are kept.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Settings;

impl Settings {
    /// The limit in bytes, where it is one.
    #[must_use]
    pub fn memory_limit(&self) -> Option<f64> {
        self.memory_limit_gb.map(|gb| gb * 1e9).filter(|bytes| *bytes >= 1.0)
    }
}

/// How keys and values are held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum KvChoice {
    /// As they are.
    #[default]
    Plain,
    /// Packed in 8 bits: about half the memory, and other text.
    Eight,
    /// Packed in 4 bits: about a quarter of the memory, and other text.
    Four,
}

impl KvChoice {
    /// How that is, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            KvChoice::Plain => "as they are",
            KvChoice::Eight => "in 8 bits",
            KvChoice::Four => "in 4 bits",
        }
    }
}

/// Where chats and settings are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct DataFolder {
    /// The folder.
    pub path: String,
    /// The environment variable that names another one.
    pub variable: String,
    /// Whether it does so now.
    pub chosen: bool,
    /// Deleted chats that can still be taken back.
    pub deleted_chats: u32,
}
