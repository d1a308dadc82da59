//! What was measured of pairs on this machine, as the shelf shows it and a load begins with it.

use std::path::Path;

use models::Prior;

use super::footprint::changed_at;
use crate::bench::conditions::{self, machine_key};
use crate::bench::{Now, PairHistory, judge};
use crate::ipc::{Circumstances, LocalModel, PairVerdict, Shelved};
use crate::store::Store;

/// This machine, as measurements know it.
#[derive(Debug, Clone, Default)]
pub(super) struct Here {
    /// What makes measurements comparable.
    pub(super) machine: String,
    under: Circumstances,
}

impl Here {
    /// Reads it; may ask the system's own programs.
    pub(super) fn read() -> Self {
        let device = models::device();
        // On a GPU the checkpoint chooses.
        let dtype = (device == "cpu").then(|| "float32".to_owned());
        Here {
            machine: machine_key(&conditions::read(), device),
            under: conditions::circumstances(dtype),
        }
    }

    fn judge(&self, pair: &PairHistory) -> Option<(PairVerdict, Prior)> {
        let folders = std::iter::once(&pair.target).chain(&pair.drafter);
        let now = Now {
            under: self.under.clone(),
            files_changed_at: folders.map(|dir| changed_at(Path::new(dir))).fold(0.0, f64::max),
        };
        judge(pair, &now)
    }

    /// The verdicts on a model with each head that it was measured with.
    pub(super) fn verdicts(&self, model: &Shelved, pairs: &[PairHistory]) -> Vec<PairVerdict> {
        let of_it = PairHistory::all_of(pairs, &model.model.path, model.model.drafter_path.as_deref());
        of_it.iter().filter_map(|pair| Some(self.judge(pair)?.0)).collect()
    }

    /// Where automatic depth of a model begins. Nothing known is no reason not to load.
    pub(super) async fn prior(&self, store: &Store, model: &LocalModel) -> Prior {
        let pairs = store.measured_pairs(&self.machine, Some(&model.path)).await;
        let pairs = pairs.unwrap_or_default();
        let mut pairs = PairHistory::all_of(&pairs, &model.path, model.drafter_path.as_deref()).into_iter();
        let pair = pairs.find(|pair| pair.drafter == model.drafter_path);
        pair.and_then(|pair| Some(self.judge(&pair)?.1)).unwrap_or_default()
    }
}
