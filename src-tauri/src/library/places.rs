use std::path::{Path, PathBuf};

use super::find::Place;
use crate::ipc::ModelPlace;

/// Where models are looked for without being told.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The Hugging Face cache.
    pub cache: Option<PathBuf>,
    /// Heads that were cut out of larger checkpoints.
    pub heads: Option<PathBuf>,
    /// Folders of other programs.
    pub others: Vec<PathBuf>,
}

impl Places {
    /// The cache and the heads' folder, and where other programs keep models in safetensors.
    #[must_use]
    pub fn on_this_machine(cache: PathBuf, heads: PathBuf) -> Self {
        let home = dirs::home_dir().unwrap_or_default();
        Places {
            cache: Some(cache),
            heads: Some(heads),
            others: [".lmstudio/models", ".cache/lm-studio/models"]
                .iter()
                .map(|path| home.join(path))
                .collect(),
        }
    }

    /// All of them, and the folders that the person added. Other programs' folders only where they are.
    pub(super) fn with(&self, added: &[String]) -> Vec<Place> {
        let place = |dir: &PathBuf, kind| Place {
            dir: dir.clone(),
            kind,
            added: false,
        };
        let cache = self.cache.iter().map(|dir| place(dir, ModelPlace::Cache));
        let heads = self
            .heads
            .iter()
            .filter(|dir| dir.is_dir())
            .map(|dir| place(dir, ModelPlace::Heads));
        let others = self
            .others
            .iter()
            .filter(|dir| dir.is_dir())
            .map(|dir| place(dir, ModelPlace::Folder));
        let added = added.iter().map(|path| Place::added(Path::new(path)));
        cache.chain(heads).chain(others).chain(added).collect()
    }
}

impl Place {
    /// A folder of the person's.
    #[must_use]
    pub fn added(dir: &Path) -> Self {
        Place {
            dir: dir.to_owned(),
            kind: ModelPlace::Folder,
            added: true,
        }
    }
}
