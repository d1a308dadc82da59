//! What the window's commands and the terminal chat share.

use std::path::{Path, PathBuf};

use models::Engine;

use crate::attach::{self, DroppedPaths, Kind, PickedPdfs};
use crate::bench::Benches;
use crate::downloads::Downloads;
use crate::error::Error;
use crate::hub::head;
use crate::hub::token::{self, TokenStore};
use crate::hub::{Hub, HubConfig};
use crate::ipc::{
    AppError, Attachment, ChatConfig, DataFolder, Dropped, ExportFormat, Imported, ModelsView, Picked, TokenSource,
    TokenView,
};
use crate::library::{Assets, Library, Places};
use crate::offers;
use crate::store::{DATA_DIR, Store, data_dir};
use crate::transfer;
use crate::turn::{Turns, check_options};

/// The running app; clones share it.
#[derive(Clone)]
pub struct AppState {
    /// History and settings.
    pub store: Store,
    /// The models and which one is loaded.
    pub library: Library,
    /// The running turn.
    pub turns: Turns,
    /// Comparisons and benchmarks, in the place of a turn.
    pub benches: Benches,
    /// Downloads, or why there can be none.
    downloads: Result<Downloads, AppError>,
    tokens: TokenStore,
    data_dir: PathBuf,
    pdfs: PickedPdfs,
    drops: DroppedPaths,
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
        let places = Places::on_this_machine(config.cache_dir.clone(), head::heads_dir(&config.home));
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
        let catalogue = offers::known_pairs();
        let library = Library::new(engine.clone(), store.clone(), assets, places, catalogue);
        let turns = Turns::new(engine.clone(), store.clone(), library.clone());
        let benches = Benches::new(engine, store.clone(), library.clone(), turns.clone());
        let tokens = TokenStore::new(data_dir, &config.home);
        // Without a hub there are still the models that are here.
        let downloads = match Hub::new(config) {
            Ok(hub) => {
                // The keychain may take its time, and may ask the person: nobody waits for it here.
                let (tokens, with_token) = (tokens.clone(), hub.clone());
                tokio::task::spawn_blocking(move || with_token.set_token(tokens.current()));
                Downloads::open(hub, store.clone(), library.clone(), turns.clone()).await
            }
            Err(error) => Err(error.into()),
        };
        Ok(AppState {
            store,
            library,
            turns,
            benches,
            downloads,
            tokens,
            data_dir: data_dir.to_owned(),
            pdfs: PickedPdfs::default(),
            drops: DroppedPaths::default(),
        })
    }

    /// The downloads, or why there can be none.
    pub fn downloads(&self) -> Result<&Downloads, AppError> {
        self.downloads.as_ref().map_err(Clone::clone)
    }

    /// The models on this machine, and the catalogue as it sees them, by one look at the disk. Nothing is asked of the hub.
    pub async fn models(&self) -> Result<ModelsView, AppError> {
        let shelf = self.library.shelf().await?;
        let limit = self.store.settings().await?.memory_limit();
        let config = match self.downloads() {
            Ok(downloads) => downloads.hub().config().clone(),
            Err(error) => {
                return Ok(ModelsView {
                    shelf,
                    catalog: None,
                    catalog_error: Some(error),
                });
            }
        };
        Ok(tokio::task::spawn_blocking(move || ModelsView {
            catalog: Some(offers::view(&config, &shelf.models, limit)),
            catalog_error: None,
            shelf,
        })
        .await?)
    }

    /// Where chats and settings are, and what of them waits to be removed.
    pub async fn data_folder(&self) -> Result<DataFolder, AppError> {
        Ok(DataFolder {
            path: self.data_dir.display().to_string(),
            variable: DATA_DIR.to_owned(),
            chosen: std::env::var_os(DATA_DIR).is_some_and(|dir| Path::new(&dir) == self.data_dir),
            deleted_chats: self.store.deleted_chats().await?,
        })
    }

    /// Where the access token comes from.
    pub async fn token_status(&self) -> Result<TokenView, AppError> {
        let tokens = self.tokens.clone();
        let status = tokio::task::spawn_blocking(move || tokens.status()).await?;
        let source = match status.source {
            None => TokenSource::None,
            Some(token::TokenSource::Variable { .. }) => TokenSource::Environment,
            Some(token::TokenSource::Shared { .. }) => TokenSource::HubFile,
            Some(token::TokenSource::Keychain) => TokenSource::Keychain,
            Some(token::TokenSource::File) => TokenSource::File,
        };
        Ok(TokenView {
            source,
            switched_off: status.switched_off,
            problems: status.problems,
        })
    }

    /// Keeps an access token and uses it from now on.
    pub async fn set_token(&self, text: &str) -> Result<TokenView, AppError> {
        let (tokens, text) = (self.tokens.clone(), text.to_owned());
        tokio::task::spawn_blocking(move || tokens.set(&text)).await??;
        self.use_token().await
    }

    /// Forgets the token that was kept here. One of the environment or of other tools is used then.
    pub async fn clear_token(&self) -> Result<TokenView, AppError> {
        let tokens = self.tokens.clone();
        tokio::task::spawn_blocking(move || tokens.clear()).await??;
        self.use_token().await
    }

    async fn use_token(&self) -> Result<TokenView, AppError> {
        if let Ok(downloads) = &self.downloads {
            let tokens = self.tokens.clone();
            downloads
                .hub()
                .set_token(tokio::task::spawn_blocking(move || tokens.current()).await?);
        }
        self.token_status().await
    }

    /// Ends a running reply and keeps what there is of it; downloads stop, and go on from there another time.
    pub async fn close(&self) {
        self.turns.stop_and_wait().await;
        if let Ok(downloads) = &self.downloads {
            downloads.close().await;
        }
        // Not in the middle of what is read ahead: MLX must be idle when the process ends. Nothing is left to unload for.
        let _ = self.library.unload().await;
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

    /// Deletes all chats, after the running reply.
    pub async fn delete_all_chats(&self) -> Result<(), AppError> {
        self.turns.stop_and_wait().await;
        self.store.delete_all_chats().await?;
        Ok(())
    }

    /// Sets what holds for one chat alone.
    pub async fn configure_chat(&self, chat_id: i32, config: &ChatConfig) -> Result<(), AppError> {
        if let Some(options) = &config.options {
            check_options(options)?;
        }
        Ok(self.store.configure_chat(chat_id, config).await?)
    }

    /// Writes one chat, or all, to a file.
    pub async fn export_chats(&self, chat_id: Option<i32>, format: ExportFormat, path: &Path) -> Result<(), AppError> {
        let ids = match chat_id {
            Some(chat_id) => vec![chat_id],
            None => self.store.list_chats().await?.iter().map(|chat| chat.id).collect(),
        };
        let mut chats = Vec::new();
        for id in ids {
            chats.push(self.store.export_chat(id).await?);
        }
        let path = path.to_owned();
        let written = tokio::task::spawn_blocking(move || {
            // Beside it first: a full disk must not cost the file that was there.
            let mut part = path.clone().into_os_string();
            part.push(".part");
            std::fs::write(&part, transfer::export(&chats, format))
                .and_then(|()| std::fs::rename(&part, &path))
                .map_err(|source| {
                    // It may not even be there.
                    let _ = std::fs::remove_file(&part);
                    file_error(&path, source)
                })
        });
        Ok(written.await??)
    }

    /// Reads the chats of files that were exported here or elsewhere; of all of them or, where one cannot be read, of none.
    pub async fn import_chats(&self, paths: &[PathBuf]) -> Result<Imported, AppError> {
        let paths = paths.to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let mut all = transfer::Found::default();
            for path in &paths {
                let found = read_chats(path)?;
                all.chats.extend(found.chats);
                all.left_out.extend(found.left_out);
            }
            Ok::<_, Error>(all)
        });
        let found = read.await??;
        let (chats, already) = self.store.import_chats(&found.chats).await?;
        Ok(Imported {
            chats,
            already,
            left_out: found.left_out,
        })
    }

    /// Reads text files that are to go with a message. One that cannot be used does not hold up the others.
    pub async fn attach(&self, paths: &[PathBuf]) -> Result<Picked, AppError> {
        let mut picked = Picked::default();
        for path in paths {
            let at = path.clone();
            match tokio::task::spawn_blocking(move || attach::read(&at)).await? {
                Ok(Kind::Text(text)) => picked.files.push(Attachment {
                    name: attach::name(path),
                    tokens: self.count_tokens(&text).await,
                    text,
                }),
                Ok(Kind::Pdf) => picked.pdfs.push(self.pdfs.add(path)),
                Err(error) => picked.refused.push(error.into()),
            }
        }
        Ok(picked)
    }

    /// Notes what the person let fall on the window.
    pub fn note_drop(&self, paths: &[PathBuf]) {
        self.drops.note(paths);
    }

    /// Tells folders that were dropped from files, and reads the files. What nobody dropped is not looked at.
    pub async fn sort_drop(&self, paths: &[PathBuf]) -> Result<Dropped, AppError> {
        let (folders, files): (Vec<_>, Vec<_>) = self.drops.take(paths).into_iter().partition(|path| path.is_dir());
        Ok(Dropped {
            folders: folders.iter().map(|path| path.display().to_string()).collect(),
            files: self.attach(&files).await?,
        })
    }

    /// The bytes of a PDF that was picked, once.
    pub async fn take_pdf(&self, id: u32) -> Result<Vec<u8>, AppError> {
        let pdfs = self.pdfs.clone();
        Ok(tokio::task::spawn_blocking(move || pdfs.take(id)).await??)
    }

    /// The tokens of a text. Without a model, or while a reply is written, they are not known.
    pub async fn count_tokens(&self, text: &str) -> Option<u32> {
        self.turns.count_tokens(text).await
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

/// More than anyone has written; read whole, it takes some times its size.
const LONGEST_IMPORT: u64 = 1 << 30;

fn read_chats(path: &Path) -> Result<transfer::Found, Error> {
    let refused = |message: String| Error::Import {
        path: path.display().to_string(),
        message,
    };
    let bytes = std::fs::metadata(path)
        .map_err(|source| file_error(path, source))?
        .len();
    if bytes > LONGEST_IMPORT {
        return Err(refused(
            "it is larger than 1 GB: export fewer chats at a time".to_owned(),
        ));
    }
    let bytes = std::fs::read(path).map_err(|source| file_error(path, source))?;
    transfer::decode(&bytes)
        .and_then(|text| transfer::import(&text))
        .map_err(refused)
}

fn file_error(path: &Path, source: std::io::Error) -> Error {
    Error::File {
        path: path.display().to_string(),
        source,
    }
}
