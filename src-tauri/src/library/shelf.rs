//! All checkpoints on this machine, each judged by the loader's own check.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::delete;
use super::find::{self, Found, Place, entries, name_of, text};
use super::footprint::{Footprint, fingerprint, size};
use super::pairs;
use crate::error::Error;
use crate::ipc::{AppError, Deletion, LocalModel, ModelFolder, ModelHealth, ModelPlace, ModelRole, ShelfView, Shelved};
use crate::machine::{self, Memory};
use crate::offers;
use crate::store::RememberedModel;
use crate::words::list;

/// The checkpoints found so far; clones share it. Every call reads the disk: none belongs on the window's thread.
#[derive(Clone, Default)]
pub(super) struct Shelf {
    known: Arc<Mutex<HashMap<PathBuf, Known>>>,
}

/// What the loader said of a folder, for as long as its files stay as they are.
struct Known {
    fingerprint: Vec<(String, u64, i64, i64)>,
    verdict: Verdict,
}

#[derive(Debug, Clone)]
struct Verdict {
    role: ModelRole,
    health: ModelHealth,
    problems: Vec<AppError>,
    warnings: Vec<String>,
    family: Option<String>,
    quantization: Option<String>,
    has_head: bool,
}

impl Shelf {
    /// Looks through the places.
    pub(super) fn view(
        &self,
        places: &[Place],
        remembered: &[RememberedModel],
        catalogue: &[(String, String)],
        limit: Option<f64>,
    ) -> ShelfView {
        let mut folders = Vec::new();
        let mut all: Vec<Found> = Vec::new();
        for place in places {
            let found = find::find(place);
            folders.push(ModelFolder {
                path: text(&place.dir),
                present: found.is_some(),
                added: place.added,
                models: found
                    .as_ref()
                    .map_or(0, |found| found.len().try_into().unwrap_or(u32::MAX)),
            });
            all.extend(found.unwrap_or_default());
        }
        // What was loaded from anywhere stays known, and its drafter.
        let paths = remembered
            .iter()
            .flat_map(|pair| [Some(&pair.path), pair.drafter.as_ref()])
            .flatten();
        all.extend(paths.map(Path::new).filter(|dir| dir.is_dir()).map(find::alone));
        let mut seen = std::collections::HashSet::new();
        all.retain(|found| seen.insert(found.dir.canonicalize().unwrap_or_else(|_| found.dir.clone())));

        let judged: Vec<(Found, Verdict)> = all
            .into_iter()
            .map(|found| (found.clone(), self.judge(&found)))
            .collect();
        let mut footprint = Footprint::default();
        let bytes: u64 = judged.iter().map(|(found, _)| footprint.add(&found.dir)).sum();
        let around = Around {
            all: &judged,
            remembered,
            catalogue,
            memory: machine::memory(limit),
        };
        let mut models: Vec<Shelved> = judged
            .iter()
            .map(|(found, verdict)| shelved(found, verdict, &around))
            .collect();
        models.sort_by_key(|model| (order(model), model.model.name.to_lowercase()));
        ShelfView {
            models,
            folders,
            bytes: bytes as f64,
        }
    }

    /// One folder, with what goes with it among the others.
    pub(super) fn one(&self, dir: &Path, limit: Option<f64>) -> Shelved {
        let found = find::alone(dir);
        let verdict = self.judge(&found);
        shelved(&found, &verdict, &Around::nothing(limit))
    }

    /// The built-in pair, which is not looked for.
    pub(super) fn builtin(&self, model: LocalModel, limit: Option<f64>) -> Shelved {
        let found = Found {
            place: ModelPlace::Builtin,
            name: model.name.clone(),
            ..find::alone(Path::new(&model.path))
        };
        let verdict = self.judge(&found);
        Shelved {
            model,
            ..shelved(&found, &verdict, &Around::nothing(limit))
        }
    }

    /// Whether there is no checkpoint in a place.
    pub(super) fn is_empty(&self, place: &Place) -> bool {
        find::find(place).is_none_or(|found| found.is_empty())
    }

    /// The folder's entry among the places, so that its kind and its rights are known.
    pub(super) fn find(&self, places: &[Place], dir: &Path) -> Option<Found> {
        places
            .iter()
            .filter_map(find::find)
            .flatten()
            .find(|found| found.dir == dir)
            .or_else(|| find::is_checkpoint(dir).then(|| find::alone(dir)))
    }

    /// What deleting it would free.
    pub(super) fn weigh(&self, places: &[Place], dir: &Path) -> Result<Deletion, Error> {
        delete::weigh(&self.find(places, dir).ok_or_else(|| gone(dir))?)
    }

    /// Deletes it.
    pub(super) fn delete(&self, places: &[Place], dir: &Path, foreign: bool) -> Result<u64, Error> {
        let found = self.find(places, dir).ok_or_else(|| gone(dir))?;
        let freed = delete::delete(&found, foreign)?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(dir);
        Ok(freed)
    }

    fn judge(&self, found: &Found) -> Verdict {
        if found.bare {
            return Verdict::incomplete(problem(
                "partial",
                "only the beginnings of files are here: a download broke off".to_owned(),
                "start the download again: it goes on from there",
            ));
        }
        let now = fingerprint(&found.dir);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&found.dir).filter(|known| known.fingerprint == now) {
            return known.verdict.clone();
        }
        // Not held while the files are read: other windows ask too.
        drop(known);
        let verdict = inspect(&found.dir);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(
            found.dir.clone(),
            Known {
                fingerprint: now,
                verdict: verdict.clone(),
            },
        );
        verdict
    }
}

impl Verdict {
    fn incomplete(problem: AppError) -> Self {
        Verdict {
            role: ModelRole::Unknown,
            health: ModelHealth::Incomplete,
            problems: vec![problem],
            warnings: Vec::new(),
            family: None,
            quantization: None,
            has_head: false,
        }
    }
}

/// The loader's own check, and what a chat needs besides.
fn inspect(dir: &Path) -> Verdict {
    let mut verdict = match models::inspect(dir) {
        Ok(inspection) => Verdict {
            role: match inspection.role {
                "drafter" => ModelRole::Drafter,
                "both" => ModelRole::Both,
                _ => ModelRole::Target,
            },
            health: ModelHealth::Whole,
            problems: inspection
                .problems
                .into_iter()
                .map(|problem| AppError {
                    kind: problem.kind.to_owned(),
                    message: problem.message,
                    hint: problem.hint,
                })
                .collect(),
            warnings: inspection.warnings,
            family: inspection.family,
            quantization: inspection.quantization,
            has_head: inspection.mtp.present,
        },
        Err(error) => Verdict::incomplete(error.into()),
    };
    let lost: Vec<String> = entries(dir)
        .filter(|path| path.is_symlink() && !path.exists())
        .map(|path| name_of(&path))
        .collect();
    if !lost.is_empty() {
        verdict.problems.insert(
            0,
            problem(
                "file_missing",
                format!(
                    "{} {} not here",
                    list(&lost, 3),
                    if lost.len() == 1 { "is" } else { "are" }
                ),
                "download it again: only what is missing is fetched",
            ),
        );
    }
    let chats = matches!(verdict.role, ModelRole::Target | ModelRole::Both) && verdict.family.is_some();
    if chats && verdict.problems.is_empty() && !dir.join("tokenizer.json").is_file() {
        verdict.problems.push(problem(
            "tokenizer",
            "`tokenizer.json` is not here".to_owned(),
            "download it again: only what is missing is fetched",
        ));
    }
    verdict.health = match verdict.problems.first() {
        None => ModelHealth::Whole,
        Some(_)
            if verdict
                .problems
                .iter()
                .all(|problem| IS_MISSING.contains(&&*problem.kind)) =>
        {
            ModelHealth::Incomplete
        }
        Some(_) => ModelHealth::Refused,
    };
    verdict
}

/// Kinds of problems that a download mends.
const IS_MISSING: [&str; 8] = [
    "config_missing",
    "file_corrupt",
    "file_missing",
    "io",
    "partial",
    "shard_missing",
    "tensor_missing",
    "tokenizer",
];

/// What a checkpoint is compared with.
struct Around<'a> {
    all: &'a [(Found, Verdict)],
    remembered: &'a [RememberedModel],
    catalogue: &'a [(String, String)],
    memory: Memory,
}

impl Around<'_> {
    /// For one that is looked at alone.
    fn nothing(limit: Option<f64>) -> Self {
        Around {
            all: &[],
            remembered: &[],
            catalogue: &[],
            memory: machine::memory(limit),
        }
    }
}

fn shelved(found: &Found, verdict: &Verdict, around: &Around<'_>) -> Shelved {
    let Around {
        all,
        remembered,
        catalogue,
        memory,
    } = *around;
    let path = text(&found.dir);
    let origin = |found: &Found| found.repo.clone().unwrap_or_else(|| found.name.clone());
    let is_target = matches!(verdict.role, ModelRole::Target | ModelRole::Both);
    let goes_with = |(target, of_target): &(&Found, &Verdict), (head, of_head): &(&Found, &Verdict)| -> Option<u32> {
        let (target_path, head_path) = (text(&target.dir), text(&head.dir));
        if remembered
            .iter()
            .any(|pair| pair.path == target_path && pair.drafter.as_ref() == Some(&head_path))
        {
            return Some(4);
        }
        let fits =
            of_head.health == ModelHealth::Whole && of_target.family == of_head.family && of_head.family.is_some();
        fits.then(|| pairs::rank(&origin(target), &origin(head), catalogue))
            .flatten()
    };
    let heads = all.iter().filter(|(_, of_head)| of_head.role == ModelRole::Drafter);
    let mut ranked: Vec<(u32, &Found)> = heads
        .filter(|_| is_target)
        .filter_map(|(head, of_head)| Some((goes_with(&(found, verdict), &(head, of_head))?, head)))
        .collect();
    ranked.sort_by_key(|(rank, head)| (std::cmp::Reverse(*rank), head.name.clone()));
    let drafters: Vec<LocalModel> = ranked.iter().map(|(_, head)| model(head, None)).collect();
    // A head of its own is taken before another one, unless the person chose.
    let chosen = ranked
        .first()
        .filter(|(rank, _)| !verdict.has_head || *rank == 4)
        .map(|(_, head)| *head);
    let targets = match verdict.role {
        ModelRole::Drafter => all
            .iter()
            .filter(|(_, of_target)| matches!(of_target.role, ModelRole::Target | ModelRole::Both))
            .filter(|(target, of_target)| goes_with(&(target, of_target), &(found, verdict)).is_some())
            .map(|(target, _)| target.name.clone())
            .collect(),
        _ => Vec::new(),
    };
    let model_here = LocalModel {
        id: path,
        ..model(found, chosen)
    };
    let head = chosen.and_then(|head| head.repo.as_deref());
    Shelved {
        memory: offers::memory_of_model(found.repo.as_deref(), head, model_here.bytes, memory),
        model: model_here,
        role: verdict.role,
        place: found.place,
        health: verdict.health.clone(),
        problems: verdict.problems.clone(),
        warnings: verdict.warnings.clone(),
        repo: found.repo.clone(),
        commit: found.commit.clone(),
        family: verdict.family.clone(),
        quantization: verdict.quantization.clone(),
        drafters,
        targets,
        measured: Vec::new(),
    }
}

fn model(found: &Found, drafter: Option<&Found>) -> LocalModel {
    let path = text(&found.dir);
    LocalModel {
        id: path.clone(),
        name: found.name.clone(),
        path,
        drafter_path: drafter.map(|head| text(&head.dir)),
        note: None,
        bytes: (size(&found.dir) + drafter.map_or(0, |head| size(&head.dir))) as f64,
    }
}

/// Chat models, then heads, then what does not load.
fn order(model: &Shelved) -> u8 {
    match (&model.health, model.role) {
        (ModelHealth::Whole, ModelRole::Target | ModelRole::Both) => 0,
        (ModelHealth::Whole, _) => 1,
        (ModelHealth::Incomplete, _) => 2,
        (ModelHealth::Refused, _) => 3,
    }
}

fn problem(kind: &str, message: String, hint: &str) -> AppError {
    AppError {
        kind: kind.to_owned(),
        message,
        hint: Some(hint.to_owned()),
    }
}

fn gone(dir: &Path) -> Error {
    Error::ModelGone { path: text(dir) }
}
