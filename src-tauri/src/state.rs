//! What the window's commands and the terminal chat share.

use std::path::{Path, PathBuf};

use models::Engine;

use crate::downloads::Downloads;
use crate::error::Error;
use crate::hub::{Hub, HubConfig};
use crate::ipc::AppError;
use crate::library::{Assets, Library, Places};
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
    /// Downloads, or why there can be none.
    downloads: Result<Downloads, AppError>,
    hub_home: PathBuf,
}

impl AppState {
    /// Opens the history in the data folder and starts an engine with nothing loaded.
    pub async fn open(resources: Option<&Path>) -> Result<Self, AppError> {
        let dir = data_dir().ok_or(Error::NoDataDir)?;
        Self::open_in(&dir, Assets::find(resources)).await
    }

    /// The same in a folder of choice.
    pub async fn open_in(data_dir: &Path, assets: Assets) -> Result<Self, AppError> {
        let config = HubConfig::from_env();
        let places = Places::on_this_machine(config.cache_dir.clone(), config.heads_dir(data_dir));
        Self::open_with(data_dir, assets, config, places).await
    }

    /// The same with a hub and places of choice.
    pub async fn open_with(
        data_dir: &Path,
        assets: Assets,
        config: HubConfig,
        places: Places,
    ) -> Result<Self, AppError> {
        let store = Store::open(data_dir).await?;
        let engine = Engine::start();
        let catalogue = catalog::pairs();
        let library = Library::new(engine.clone(), store.clone(), assets, places, catalogue);
        let turns = Turns::new(engine, store.clone(), library.clone());
        let hub_home = config.home.clone();
        // Without a hub there are still the models that are here.
        let downloads = match Hub::new(config) {
            Ok(hub) => Downloads::open(hub, store.clone(), library.clone(), turns.clone()).await,
            Err(error) => Err(error.into()),
        };
        Ok(AppState {
            store,
            library,
            turns,
            downloads,
            hub_home,
        })
    }

    /// The downloads, or why there can be none.
    pub fn downloads(&self) -> Result<&Downloads, AppError> {
        self.downloads.as_ref().map_err(Clone::clone)
    }

    /// Ends a running reply and keeps what there is of it; downloads stop, and go on from there another time.
    pub async fn close(&self) {
        self.turns.stop_and_wait().await;
        if let Ok(downloads) = &self.downloads {
            downloads.close().await;
        }
        self.store.close().await;
    }

    /// Deletes a checkpoint; not one that is being downloaded.
    pub async fn delete_model(&self, path: &str, foreign: bool) -> Result<f64, AppError> {
        let repo = self.library.repo_of(path);
        if let (Ok(downloads), Some(repo)) = (&self.downloads, repo)
            && downloads.is_writing(&repo)
        {
            return Err(Error::InUse {
                name: repo,
                by: "it is being downloaded".to_owned(),
            }
            .into());
        }
        Ok(self.library.delete(path, foreign).await? as f64)
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
