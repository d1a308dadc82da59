use std::path::{Path, PathBuf};

/// Result of every store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data folder cannot be used.
    #[error("cannot use the data folder `{}`: {source}", path.display())]
    Folder {
        /// The folder or the file in it.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A newer version of the app wrote the database.
    #[error("`{}` was written by a newer version (migration {found} is not known here)", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// The migration that is not known.
        found: i64,
    },
    /// The schema could not be brought up to date.
    #[error("the database could not be brought up to date: {0}")]
    Migration(#[source] sqlx::migrate::MigrateError),
    /// SQLite refused.
    #[error("the database answered: {0}")]
    Sql(#[from] sqlx::Error),
    /// A stored value makes no sense.
    #[error("the database is damaged: {what}")]
    Damaged {
        /// Which value and why.
        what: String,
    },
    /// There is no such chat.
    #[error("chat {0} does not exist")]
    NoChat(i32),
    /// There is no such message.
    #[error("message {0} does not exist")]
    NoMessage(i32),
    /// There is no such comparison or benchmark.
    #[error("measurement {0} does not exist")]
    NoMeasurement(i32),
    /// Only replies can be made anew.
    #[error("message {0} is not a reply")]
    NotAReply(i32),
    /// Only the person's messages can be edited.
    #[error("message {0} is not one of yours")]
    NotAMessage(i32),
    /// Only the message that a chat ends with can be answered.
    #[error("message {0} is not the last one shown")]
    NotTheLast(i32),
    /// A reply that ended, or whose tokens are not known, or that others follow.
    #[error("reply {0} cannot go on")]
    CannotContinue(i32),
    /// A reply of this chat is being generated, here or in another process.
    #[error("a reply in this chat is being generated")]
    ChatBusy,
    /// A background task of the store was lost.
    #[error("a database task ended unexpectedly: {0}")]
    Task(String),
}

impl Error {
    pub(super) fn folder(path: &Path, source: std::io::Error) -> Self {
        Error::Folder {
            path: path.to_owned(),
            source,
        }
    }
}
