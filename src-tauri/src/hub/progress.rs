//! How far a download is.

use std::time::Duration;

use serde::Serialize;

use super::RepoId;

/// How far a download is, of all its files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    /// Bytes that are there, those of earlier runs among them.
    pub done: u64,
    /// Bytes of the whole.
    pub total: u64,
    /// Bytes that this run fetched.
    pub fetched: u64,
    /// Bytes a second over the last seconds.
    pub speed: Option<f64>,
    /// What is left, once the speed is steady enough to tell.
    pub eta: Option<Duration>,
    /// Why nothing moves, when nothing does.
    pub waiting: Option<WaitReason>,
    /// Each file, in the plan's order.
    pub files: Vec<FileProgress>,
}

/// How far one file is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileProgress {
    /// Its repository.
    pub repo: RepoId,
    /// Its path.
    pub path: String,
    /// Bytes that are there.
    pub done: u64,
    /// Bytes of the whole.
    pub total: u64,
    /// What is being done with it.
    pub state: FileState,
}

/// What is being done with a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum FileState {
    /// It has not begun.
    Queued,
    /// Bytes come.
    Fetching,
    /// Its bytes are hashed.
    Verifying,
    /// Nothing can be done now.
    Waiting {
        /// Why.
        reason: WaitReason,
    },
    /// It is there.
    Done,
}

/// Why nothing can be done now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum WaitReason {
    /// The network, or the hub, does not answer.
    Network,
    /// The hub asked to wait.
    RateLimit {
        /// So long.
        seconds: u64,
    },
    /// The hub has trouble of its own.
    Server,
    /// Another window or program fetches the same file.
    OtherProcess,
}

impl WaitReason {
    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            WaitReason::Network => "waiting for the network".to_owned(),
            WaitReason::RateLimit { seconds } => format!("the hub asks to wait {seconds} s"),
            WaitReason::Server => "the hub has trouble; trying again".to_owned(),
            WaitReason::OtherProcess => "another program is fetching it".to_owned(),
        }
    }
}
