//! What the window can ask: take it apart, call, hand it back.

pub(crate) mod bench;
pub(crate) mod chats;
pub(crate) mod downloads;
pub(crate) mod library;
pub(crate) mod models;
pub(crate) mod settings;
pub(crate) mod turns;
pub(crate) mod window;

use crate::ipc::AppError;
use crate::state::AppState;

/// The app behind the window, or why it could not start: every command answers that then.
pub(crate) struct App(pub(crate) Result<AppState, AppError>);

impl App {
    pub(crate) fn get(&self) -> Result<&AppState, AppError> {
        self.0.as_ref().map_err(Clone::clone)
    }
}
