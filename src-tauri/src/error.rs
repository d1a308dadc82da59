//! Failures of the app, and all their wording. Engine failures bring their own.

use std::fmt;

use crate::hub::HubError;
use crate::ipc::AppError;
use crate::store;

/// Whoever read standard output has seen enough.
pub(crate) const READER_GONE: &str = "reader_gone";

/// A failure anywhere in the app.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine's.
    #[error(transparent)]
    Engine(#[from] models::Error),
    /// The store's.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The system names no place for the app's data.
    #[error("there is no folder for the app's data")]
    NoDataDir,
    /// The built-in model's files were not found.
    #[error("the built-in model is not where it should be")]
    BuiltinMissing,
    /// A message without text.
    #[error("the message is empty")]
    EmptyMessage,
    /// A chat title without text.
    #[error("the title is empty")]
    EmptyTitle,
    /// A reply that was begun with keys and values held otherwise cannot go on.
    #[error("this reply was begun with keys and values held {held}")]
    OtherKv {
        /// How, in words.
        held: &'static str,
    },
    /// A reply goes on only with the model that began it.
    #[error("this reply was begun by another model, `{model}`")]
    OtherModel {
        /// The model that began it.
        model: String,
    },
    /// A file that holds no chats.
    #[error("no chats were found in `{path}`: {message}")]
    Import {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// A file that cannot be read or written.
    #[error("cannot use `{path}`: {source}")]
    File {
        /// Which one.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// What was asked for was stopped before it began.
    #[error("it was stopped before the model was loaded")]
    Stopped,
    /// One turn at a time.
    #[error("the model is busy with another reply or measurement")]
    TurnRunning,
    /// An option out of its range.
    #[error("{option} is {value}, but must be {expected}")]
    BadOption {
        /// Which one.
        option: &'static str,
        /// What was asked for.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// A file that cannot go with a message.
    #[error("cannot attach `{path}`: {message}")]
    Attach {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// A file that nobody picked, or that was read already.
    #[error("this file was picked before the window was loaded")]
    NotPicked,
    /// A file given on the command line cannot be used.
    #[error("cannot use `{path}`: {message}")]
    Input {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// Standard input or output refused.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// The hub's.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A folder that is not there.
    #[error("there is no folder `{path}`")]
    NoFolder {
        /// What was given.
        path: String,
    },
    /// A folder without a checkpoint.
    #[error("no model was found in `{path}`")]
    NoModels {
        /// The folder.
        path: String,
    },
    /// A checkpoint that is not there any more.
    #[error("there is no model in `{path}` any more")]
    ModelGone {
        /// Its folder.
        path: String,
    },
    /// A checkpoint that cannot be deleted now.
    #[error("`{name}` is in use: {by}")]
    InUse {
        /// Its name.
        name: String,
        /// By what.
        by: String,
    },
    /// The built-in model is part of the app.
    #[error("the built-in model is part of the app")]
    BuiltinStays,
    /// A checkpoint in a folder that another program may count on.
    #[error("`{path}` lies in a folder that is not this app's own")]
    ForeignFolder {
        /// Its folder.
        path: String,
    },
    /// A cache whose folders lie elsewhere.
    #[error("`{path}` is a link to another place")]
    OutsideCache {
        /// Which folder.
        path: String,
    },
    /// The disk refused.
    #[error("cannot delete `{path}`: {message}")]
    Delete {
        /// Which file.
        path: String,
        /// What the system says.
        message: String,
    },
    /// A download that is not known.
    #[error("this download is not known any more")]
    NoDownload,
    /// A background task was lost.
    #[error("a task of the app ended unexpectedly: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    fn kind(&self) -> &'static str {
        match self {
            Error::Engine(error) => error.kind(),
            Error::Store(error) => match error {
                store::Error::Folder { .. } => "data_folder",
                store::Error::Newer { .. } => "newer_database",
                store::Error::Migration(_) | store::Error::Sql(_) => "database",
                store::Error::Damaged { .. } => "database_damaged",
                store::Error::NoChat(_) | store::Error::NoMessage(_) | store::Error::NoMeasurement(_) => "not_found",
                store::Error::NotAReply(_) => "not_a_reply",
                store::Error::NotAMessage(_) => "not_a_message",
                store::Error::NotTheLast(_) => "not_the_last",
                store::Error::CannotContinue(_) => "cannot_continue",
                store::Error::ChatBusy => "busy",
                store::Error::Task(_) => "internal",
            },
            Error::NoDataDir => "data_folder",
            Error::BuiltinMissing => "builtin_missing",
            Error::EmptyMessage => "empty_message",
            Error::EmptyTitle => "empty_title",
            Error::Stopped => "stopped",
            Error::TurnRunning => "busy",
            Error::OtherModel { .. } => "other_model",
            Error::OtherKv { .. } => "other_kv",
            Error::Import { .. } => "import",
            Error::File { .. } => "file",
            Error::BadOption { .. } => "bad_option",
            Error::Input { .. } | Error::Attach { .. } | Error::NotPicked => "input",
            Error::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => READER_GONE,
            Error::Output(_) => "output",
            Error::Hub(error) => error.kind(),
            Error::NoFolder { .. } => "no_folder",
            Error::NoModels { .. } => "no_models",
            Error::ModelGone { .. } | Error::NoDownload => "not_found",
            Error::InUse { .. } => "in_use",
            Error::BuiltinStays => "builtin",
            Error::ForeignFolder { .. } => "foreign_folder",
            Error::OutsideCache { .. } => "outside_cache",
            Error::Delete { .. } => "delete",
            Error::Task(_) => "internal",
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Error::Engine(error) => return error.hint(),
            Error::Hub(error) => return error.hint(),
            Error::Store(error) => match error {
                store::Error::Folder { .. } => {
                    "check that you may write there, or set SLIPSTREAM_DATA_DIR to another folder"
                }
                store::Error::Newer { .. } => "update Slipstream; your chats are left as they are",
                store::Error::Migration(_) | store::Error::Sql(_) => {
                    "check that the disk is not full and that the data folder can be written"
                }
                store::Error::Damaged { .. } => {
                    "move history.db out of the data folder to start with an empty history; keep it if you need what it holds"
                }
                store::Error::NoChat(_) | store::Error::NoMessage(_) | store::Error::NoMeasurement(_) => {
                    "it was deleted, perhaps in another window"
                }
                store::Error::NotAReply(_) => "choose a reply of the model",
                store::Error::NotAMessage(_) => "choose a message that you wrote",
                store::Error::NotTheLast(_) => "it has a reply; write that one again",
                store::Error::CannotContinue(_) => "write it again, or ask the model to go on",
                store::Error::ChatBusy => "wait for it to finish; it may run in another window or terminal",
                store::Error::Task(_) => "try again; if it comes back, restart Slipstream",
            },
            Error::NoDataDir => "set SLIPSTREAM_DATA_DIR to a folder that you may write",
            Error::BuiltinMissing => {
                "install Slipstream again, set SLIPSTREAM_ASSETS to its assets folder, or load a model of your own"
            }
            Error::EmptyMessage => "write something first",
            Error::EmptyTitle => "give the chat a name",
            Error::Attach { instead, .. } => *instead,
            Error::NotPicked => "attach it again",
            Error::Stopped => "start it again when the model is there",
            Error::TurnRunning => "wait for it to finish, or stop it",
            Error::OtherKv { .. } => {
                "choose that in the settings, load the model again and continue, or write the reply again as it is now"
            }
            Error::OtherModel { .. } => "load that model first, or write the reply again with this one",
            Error::Import { .. } => {
                "choose a JSON file that was exported by Slipstream, ChatGPT (conversations.json) or Open WebUI"
            }
            Error::File { .. } => "check that the file can be used, and that the disk is not full",
            Error::Task(_) => "try again; if it comes back, restart Slipstream",
            Error::NoFolder { .. } => "check the path; if it is on another disk, connect it",
            Error::NoModels { .. } => "choose the folder of a model, or one that holds folders of models",
            Error::ModelGone { .. } | Error::NoDownload => "look at the list again",
            Error::InUse { .. } => "unload it, or wait until the other program is done",
            Error::BuiltinStays => "it takes little room, and answers when nothing else can",
            Error::ForeignFolder { .. } => "delete it in the program that put it there, or agree to delete it here",
            Error::OutsideCache { .. } => "delete it by hand: only files inside the cache are deleted here",
            Error::Delete { .. } => "check who owns the file, and that the disk can be written",
            Error::BadOption { .. } | Error::Input { .. } | Error::Output(_) => return None,
        };
        Some(text.to_owned())
    }
}

impl<T: Into<Error>> From<T> for AppError {
    fn from(error: T) -> Self {
        let error = error.into();
        AppError {
            kind: error.kind().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{} ({hint})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for AppError {}
