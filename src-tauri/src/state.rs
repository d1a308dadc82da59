//! What the window's commands and the terminal chat share.

use std::path::Path;

use models::Engine;

use crate::error::Error;
use crate::ipc::AppError;
use crate::library::{Assets, Library};
use crate::store::{Store, data_dir};
use crate::turn::Turns;

/// The running app; clones share it.
#[derive(Clone)]
pub struct AppState {
    /// History and settings.
    pub store: Store,
    /// The models and which one is loaded.
    pub library: Library,
    /// The running turn.
    pub turns: Turns,
}

impl AppState {
    /// Opens the history in the data folder and starts an engine with nothing loaded.
    pub async fn open(resources: Option<&Path>) -> Result<Self, AppError> {
        let dir = data_dir().ok_or(Error::NoDataDir)?;
        Self::open_in(&dir, Assets::find(resources)).await
    }

    /// The same in a folder of choice.
    pub async fn open_in(data_dir: &Path, assets: Assets) -> Result<Self, AppError> {
        let store = Store::open(data_dir).await?;
        let engine = Engine::start();
        let library = Library::new(engine.clone(), store.clone(), assets);
        let turns = Turns::new(engine, store.clone(), library.clone());
        Ok(AppState { store, library, turns })
    }

    /// Ends a running reply and keeps what there is of it.
    pub async fn close(&self) {
        self.turns.stop_and_wait().await;
        self.store.close().await;
    }

    /// Loads another model; not under a running reply, which would wait in the engine's way.
    pub async fn load_model(&self, path: &str, drafter: Option<&str>) -> Result<crate::ipc::ModelStatus, AppError> {
        if self.turns.is_running() {
            return Err(Error::TurnRunning.into());
        }
        self.library.load(path, drafter).await
    }

    /// Frees the model; not under a running reply.
    pub async fn unload_model(&self) -> Result<(), AppError> {
        if self.turns.is_running() {
            return Err(Error::TurnRunning.into());
        }
        self.library.unload().await
    }

    /// Deletes a chat, after its running reply if it has one.
    pub async fn delete_chat(&self, chat_id: i32) -> Result<(), AppError> {
        self.turns.stop_chat(chat_id).await;
        Ok(self.store.delete_chat(chat_id).await?)
    }

    /// Gives a chat another title.
    pub async fn rename_chat(&self, chat_id: i32, title: &str) -> Result<crate::ipc::ChatSummary, AppError> {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if title.is_empty() {
            return Err(Error::EmptyTitle.into());
        }
        Ok(self.store.rename_chat(chat_id, &title).await?)
    }
}
