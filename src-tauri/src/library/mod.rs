//! Which models there are and which one is loaded.

mod delete;
mod find;
mod footprint;
mod local;
mod measured;
mod pairs;
mod places;
mod shelf;
mod status;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use models::{Calibration, Engine, KvFormat, LoadRequest, Loaded, Prior};
use tokio::sync::{Mutex, watch};

use crate::error::Error;
use crate::ipc::{AppError, Deletion, KvChoice, LocalModel, ModelStatus, ShelfView, Shelved};
use crate::power::power_mode;
use crate::store::Store;

pub use find::Place;
pub use local::{Assets, BUILTIN};
pub use places::Places;

use measured::Here;
use shelf::Shelf;

/// The models on this machine and the one in the engine; clones share it.
#[derive(Clone)]
pub struct Library {
    engine: Engine,
    store: Store,
    assets: Arc<Assets>,
    state: Arc<watch::Sender<State>>,
    /// Held by the load that is running: the next one waits, so that states come in order.
    loading: Arc<Mutex<()>>,
    places: Arc<Places>,
    shelf: Shelf,
    /// Targets and heads, by repository, that are known to go together.
    catalogue: Arc<Vec<(String, String)>>,
}

/// A model in the engine.
#[derive(Debug)]
pub struct Ready {
    /// What the window shows.
    pub model: LocalModel,
    /// What the engine says.
    pub loaded: Loaded,
    /// Why the drafter that was asked for is not there: it belongs to another model.
    pub mismatch: Option<AppError>,
    /// How it holds keys and values.
    pub kv: KvChoice,
    /// The machine, as measurements know it.
    pub machine: String,
}

#[derive(Debug, Clone)]
enum State {
    None,
    Loading(LocalModel),
    Ready(Arc<Ready>),
    Failed(LocalModel, AppError),
}

impl Library {
    /// Nothing is loaded yet.
    #[must_use]
    pub fn new(engine: Engine, store: Store, assets: Assets, places: Places, catalogue: Vec<(String, String)>) -> Self {
        Library {
            engine,
            store,
            assets: Arc::new(assets),
            state: Arc::new(watch::Sender::new(State::None)),
            loading: Arc::default(),
            places: Arc::new(places),
            shelf: Shelf::default(),
            catalogue: Arc::new(catalogue),
        }
    }

    /// Starts to load the model of the settings in the background.
    pub async fn start(&self) -> Result<(), AppError> {
        let settings = self.store.settings().await?;
        match self.assets.describe(&settings.model, settings.drafter.as_deref()) {
            Ok(model) => self.load_in_background(model),
            Err(error) => {
                self.state
                    .send_replace(State::Failed(local::unknown(&settings.model), error.into()));
            }
        }
        Ok(())
    }

    /// Loads a model in place of the one that is loaded, and remembers it for the next start.
    pub async fn load(&self, path: &str, drafter: Option<&str>) -> Result<ModelStatus, AppError> {
        let model = self.assets.describe(path, drafter)?;
        self.run_load(model.clone()).await?;
        self.store
            .choose_model(&model.id, drafter.and(model.drafter_path.as_deref()))
            .await?;
        Ok(self.status())
    }

    /// Loads a model for this process alone.
    pub async fn load_once(&self, path: &str, drafter: Option<&str>) -> Result<ModelStatus, AppError> {
        let model = self.assets.describe(path, drafter)?;
        self.run_load(model).await?;
        Ok(self.status())
    }

    /// Loads what was loaded once more: the engine lost it.
    pub fn reload(&self) {
        let current = self.state.borrow().clone();
        if let State::Ready(ready) = current {
            self.load_in_background(ready.model.clone());
        }
    }

    /// Frees the model's memory.
    pub async fn unload(&self) -> Result<(), AppError> {
        let _one_at_a_time = self.loading.lock().await;
        let engine = self.engine.clone();
        tokio::task::spawn_blocking(move || engine.unload()).await??;
        self.state.send_replace(State::None);
        Ok(())
    }

    /// The loaded model; waits for a load that is running.
    pub async fn ready(&self) -> Result<Arc<Ready>, AppError> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Loading(_))).await;
        match settled.as_deref() {
            Ok(State::Ready(ready)) => Ok(ready.clone()),
            Ok(State::Failed(_, error)) => Err(error.clone()),
            Ok(State::None | State::Loading(_)) | Err(_) => Err(models::Error::NotLoaded.into()),
        }
    }

    /// What is loaded now.
    #[must_use]
    pub fn status(&self) -> ModelStatus {
        ModelStatus::from(&*self.state.borrow())
    }

    /// Tells `listener` the status now and at each change, until it answers `false`.
    pub async fn watch(&self, mut listener: impl FnMut(ModelStatus) -> bool) {
        let mut state = self.state.subscribe();
        loop {
            let status = ModelStatus::from(&*state.borrow_and_update());
            if !listener(status) || state.changed().await.is_err() {
                return;
            }
        }
    }

    /// All checkpoints on this machine, each as the loader judges it.
    pub async fn shelf(&self) -> Result<ShelfView, AppError> {
        let places = self.all_places().await?;
        let remembered = self.store.remembered_models().await?;
        let limit = self.store.settings().await?.memory_limit();
        let here = tokio::task::spawn_blocking(Here::read).await?;
        // What was measured is told besides.
        let pairs = self.store.measured_pairs(&here.machine, None).await.unwrap_or_default();
        let library = self.clone();
        Ok(tokio::task::spawn_blocking(move || {
            let mut view = library.shelf.view(&places, &remembered, &library.catalogue, limit);
            if let Ok(builtin) = library.assets.describe(BUILTIN, None) {
                view.models.insert(0, library.shelf.builtin(builtin, limit));
            }
            for model in &mut view.models {
                model.measured = here.verdicts(model, &pairs);
            }
            view
        })
        .await?)
    }

    /// One folder, as the loader judges it.
    pub async fn look_at(&self, dir: &Path) -> Result<Shelved, AppError> {
        let limit = self.store.settings().await?.memory_limit();
        let (shelf, dir) = (self.shelf.clone(), dir.to_owned());
        Ok(tokio::task::spawn_blocking(move || shelf.one(&dir, limit)).await?)
    }

    /// Has a further folder looked through from now on.
    pub async fn add_folder(&self, path: &str) -> Result<ShelfView, AppError> {
        let dir = local::absolute(path);
        if !dir.is_dir() {
            return Err(Error::NoFolder { path: path.to_owned() }.into());
        }
        let shelf = self.shelf.clone();
        let place = Place::added(&dir);
        if tokio::task::spawn_blocking(move || shelf.is_empty(&place)).await? {
            return Err(Error::NoModels { path: path.to_owned() }.into());
        }
        let mut folders = self.store.model_folders().await?;
        let text = dir.to_string_lossy().into_owned();
        if !folders.contains(&text) {
            folders.push(text);
            self.store.set_model_folders(&folders).await?;
        }
        self.shelf().await
    }

    /// Has a folder looked through no more. Its files stay.
    pub async fn remove_folder(&self, path: &str) -> Result<ShelfView, AppError> {
        let mut folders = self.store.model_folders().await?;
        folders.retain(|folder| folder != path);
        self.store.set_model_folders(&folders).await?;
        self.shelf().await
    }

    /// `OWNER/NAME` of a folder in a cache, or of a head.
    #[must_use]
    pub fn repo_of(&self, path: &str) -> Option<String> {
        let dir = Path::new(path);
        let head = self.places.heads.as_ref().and_then(|heads| find::head_of(heads, dir));
        head.map(|(repo, ..)| repo).or_else(|| find::alone(dir).repo)
    }

    /// What deleting a checkpoint would free.
    pub async fn weigh(&self, path: &str) -> Result<Deletion, AppError> {
        let (places, shelf, dir) = (self.all_places().await?, self.shelf.clone(), PathBuf::from(path));
        Ok(tokio::task::spawn_blocking(move || shelf.weigh(&places, &dir)).await??)
    }

    /// Deletes a checkpoint that is not loaded, and gives the bytes that came free. One in another program's folder
    /// only if `foreign` was agreed to.
    pub async fn delete(&self, path: &str, foreign: bool) -> Result<u64, AppError> {
        let used = match &*self.state.borrow() {
            State::Ready(ready) => Some(ready.model.clone()),
            State::Loading(model) => Some(model.clone()),
            State::None | State::Failed(..) => None,
        };
        if let Some(model) = used
            && (model.path == path || model.drafter_path.as_deref() == Some(path))
        {
            return Err(Error::InUse {
                name: model.name,
                by: "it is loaded".to_owned(),
            }
            .into());
        }
        let (places, shelf, dir) = (self.all_places().await?, self.shelf.clone(), PathBuf::from(path));
        let freed = tokio::task::spawn_blocking(move || shelf.delete(&places, &dir, foreign)).await??;
        self.store.forget_model(path).await?;
        // The next start must not look for what is gone.
        let settings = self.store.settings().await?;
        if settings.model == path {
            self.store.choose_model(BUILTIN, None).await?;
        } else if settings.drafter.as_deref() == Some(path) {
            self.store.choose_model(&settings.model, None).await?;
        }
        Ok(freed)
    }

    async fn all_places(&self) -> Result<Vec<Place>, AppError> {
        let added = self.store.model_folders().await?;
        Ok(self.places.with(&added))
    }

    fn load_in_background(&self, model: LocalModel) {
        self.set_loading(&model);
        let library = self.clone();
        tokio::spawn(async move {
            // The state holds the failure for whoever looks.
            let _ = library.run_load(model).await;
        });
    }

    fn set_loading(&self, model: &LocalModel) {
        self.state.send_if_modified(|state| {
            let is_new = !matches!(state, State::Loading(loading) if loading == model);
            if is_new {
                *state = State::Loading(model.clone());
            }
            is_new
        });
    }

    async fn run_load(&self, model: LocalModel) -> Result<(), AppError> {
        let _one_at_a_time = self.loading.lock().await;
        self.set_loading(&model);
        // Nothing known is no reason not to load: it is then measured and tried anew.
        let known = self.store.wirings(&model.path, model.drafter_path.as_deref()).await;
        // Nor are settings that cannot be read.
        let settings = self.store.settings().await.unwrap_or_default();
        let here = tokio::task::spawn_blocking(Here::read).await.unwrap_or_default();
        let request = LoadRequest {
            target: PathBuf::from(&model.path),
            drafter: model.drafter_path.as_ref().map(PathBuf::from),
            wirings: known.unwrap_or_default(),
            measured: self.store.measured().await.unwrap_or_default(),
            prior: here.prior(&self.store, &model).await,
            calibration: Calibration::On {
                conditions: tokio::task::spawn_blocking(power_mode).await.unwrap_or_default(),
            },
            kv: match settings.kv {
                KvChoice::Plain => KvFormat::Plain,
                KvChoice::Eight => KvFormat::Packed(8),
                KvChoice::Four => KvFormat::Packed(4),
            },
            memory_limit: settings.memory_limit().map(|bytes| bytes as u64),
            ..LoadRequest::default()
        };
        let mut mismatch = None;
        let loaded = match self.load_held(request.clone()).await {
            // The model can chat all the same, and says why it is slower.
            Err(Error::Engine(error @ models::Error::PairMismatch { .. })) if request.drafter.is_some() => {
                mismatch = Some(AppError::from(Error::Engine(error)));
                let alone = LoadRequest {
                    drafter: None,
                    // It was measured with the other one.
                    prior: Prior::default(),
                    ..request
                };
                self.load_held(alone).await
            }
            loaded => loaded,
        };
        match loaded {
            Ok((loaded, is_packed)) => {
                // Without it the next load measures again.
                let _ = self.store.keep_measured(&loaded).await;
                let ready = Ready {
                    model,
                    loaded,
                    mismatch,
                    kv: if is_packed { settings.kv } else { KvChoice::Plain },
                    machine: here.machine,
                };
                self.state.send_replace(State::Ready(Arc::new(ready)));
                Ok(())
            }
            Err(error) => {
                let error = AppError::from(error);
                self.state.send_replace(State::Failed(model, error.clone()));
                Err(error)
            }
        }
    }

    /// Loads with packed keys and values if that was asked for and can be, and tells whether it was. A model whose rows
    /// cannot be packed can chat all the same, and says so.
    async fn load_held(&self, request: LoadRequest) -> Result<(Loaded, bool), Error> {
        let is_packed = request.kv != KvFormat::Plain;
        match self.load_in_engine(request.clone()).await {
            Err(Error::Engine(error @ models::Error::Usage { .. })) if is_packed => {
                let plain = LoadRequest {
                    kv: KvFormat::Plain,
                    ..request
                };
                let mut loaded = self.load_in_engine(plain).await?;
                loaded
                    .warnings
                    .push(format!("keys and values are held as they are: {error}"));
                Ok((loaded, false))
            }
            loaded => Ok((loaded?, is_packed)),
        }
    }

    async fn load_in_engine(&self, request: LoadRequest) -> Result<Loaded, Error> {
        let engine = self.engine.clone();
        Ok(tokio::task::spawn_blocking(move || engine.load(request)).await??)
    }
}
