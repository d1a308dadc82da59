//! Where checkpoints lie: folders with a config or weights, found without opening a file.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::ipc::ModelPlace;

/// How deep below a folder checkpoints are looked for: `OWNER/NAME/VARIANT`.
const DEPTH: usize = 3;
/// A folder that is no model folder at all must not be walked for minutes.
const MOST_FOLDERS: usize = 20_000;

/// A folder to look through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub dir: PathBuf,
    /// What it is.
    pub kind: ModelPlace,
    /// Whether the person added it.
    pub added: bool,
}

/// A checkpoint's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) dir: PathBuf,
    pub(super) place: ModelPlace,
    pub(super) name: String,
    /// `OWNER/NAME`, where the folder tells.
    pub(super) repo: Option<String>,
    pub(super) commit: Option<String>,
    /// In a cache: the `models--OWNER--NAME` folder.
    pub(super) cached_in: Option<PathBuf>,
    /// Nothing but the beginnings of files.
    pub(super) bare: bool,
}

/// Repository and commit of a head's folder below the folder of all heads, and whether it is unfinished:
/// `OWNER--NAME/COMMIT`, and `OWNER--NAME/.COMMIT.part` while it is fetched.
pub(super) fn head_of(heads: &Path, dir: &Path) -> Option<(String, String, bool)> {
    let below = dir.strip_prefix(heads).ok()?;
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    let [folder, last] = parts.as_slice() else { return None };
    let begun = last.strip_prefix('.').and_then(|name| name.strip_suffix(".part"));
    Some((
        folder.replacen("--", "/", 1),
        begun.unwrap_or(last).to_owned(),
        begun.is_some(),
    ))
}

/// What a place holds, or nothing where the place itself is not there.
pub(super) fn find(place: &Place) -> Option<Vec<Found>> {
    if !place.dir.is_dir() {
        return None;
    }
    let mut found = Vec::new();
    if place.kind == ModelPlace::Cache {
        cached(&place.dir, &mut found);
    } else {
        let mut walk = Walk {
            place,
            seen: HashSet::new(),
            found: &mut found,
        };
        walk.look(&place.dir, DEPTH);
    }
    Some(found)
}

/// A single folder, as if it was found.
pub(super) fn alone(dir: &Path) -> Found {
    let is_repo = |dir: &&Path| name_of(dir).starts_with("models--");
    let bare = is_repo(&dir);
    // The snapshot itself, or a variant's folder in it.
    let snapshot = dir.ancestors().take(2).find(|dir| {
        let snapshots = dir.parent().filter(|parent| name_of(parent) == "snapshots");
        snapshots.and_then(Path::parent).is_some_and(|repo| is_repo(&repo))
    });
    let snapshot_of = snapshot.and_then(Path::parent).and_then(Path::parent);
    let cached_in = snapshot_of.or(Some(dir).filter(is_repo));
    let repo = cached_in.and_then(repo_of);
    let variant = snapshot.filter(|snapshot| *snapshot != dir).map(|_| name_of(dir));
    let name = repo.clone().map(|repo| match &variant {
        Some(variant) => format!("{repo}/{variant}"),
        None => repo,
    });
    Found {
        dir: dir.to_owned(),
        place: match cached_in {
            Some(_) => ModelPlace::Cache,
            None => ModelPlace::Folder,
        },
        name: name.unwrap_or_else(|| name_of(dir)),
        repo,
        commit: snapshot.map(name_of),
        cached_in: cached_in.map(Path::to_owned),
        bare,
    }
}

/// Whether a folder holds a checkpoint, or a part of one, itself.
pub(super) fn is_checkpoint(dir: &Path) -> bool {
    entries(dir).any(|path| {
        let name = name_of(&path);
        name == "config.json" || name.ends_with(".safetensors")
    })
}

/// Whether a folder inside a snapshot is a checkpoint of its own, and not the part of one.
pub(super) fn is_variant(dir: &Path) -> bool {
    dir.is_dir() && name_of(dir) != "mtp" && is_checkpoint(dir)
}

struct Walk<'a> {
    place: &'a Place,
    /// Links may lead in circles.
    seen: HashSet<(u64, u64)>,
    found: &'a mut Vec<Found>,
}

impl Walk<'_> {
    fn look(&mut self, dir: &Path, depth: usize) {
        let Ok(meta) = dir.metadata() else { return };
        if !self.seen.insert((meta.dev(), meta.ino())) || self.seen.len() > MOST_FOLDERS {
            return;
        }
        if is_checkpoint(dir) {
            self.found.push(self.describe(dir));
            return;
        }
        let folders: Vec<PathBuf> = entries(dir).filter(|path| path.is_dir()).collect();
        // A cache on another disk, given by its own folder or by the home above it.
        if folders.iter().any(|path| name_of(path).starts_with("models--")) {
            return cached(dir, self.found);
        }
        if self.place.kind == ModelPlace::Heads {
            let is_begun = |path: &&PathBuf| head_of(&self.place.dir, path).is_some_and(|(_, _, begun)| begun);
            let begun: Vec<Found> = folders
                .iter()
                .filter(is_begun)
                .map(|path| self.describe(path))
                .collect();
            self.found.extend(begun);
        }
        if depth > 0 {
            for path in folders.iter().filter(|path| !name_of(path).starts_with('.')) {
                self.look(path, depth - 1);
            }
        }
    }

    /// Other programs keep `OWNER/NAME` folders.
    fn describe(&self, dir: &Path) -> Found {
        let below = dir.strip_prefix(&self.place.dir).unwrap_or(Path::new(""));
        let parts: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let head = head_of(&self.place.dir, dir).filter(|_| self.place.kind == ModelPlace::Heads);
        if let Some((repo, commit, bare)) = head {
            return Found {
                dir: dir.to_owned(),
                place: ModelPlace::Heads,
                name: repo.clone(),
                repo: Some(repo),
                commit: Some(commit),
                cached_in: None,
                bare,
            };
        }
        let repo = match parts.as_slice() {
            [owner, name, ..] => Some(format!("{owner}/{name}")),
            _ => None,
        };
        Found {
            dir: dir.to_owned(),
            place: self.place.kind,
            name: match parts.is_empty() {
                true => name_of(dir),
                false => parts.join("/"),
            },
            repo,
            commit: None,
            cached_in: None,
            bare: false,
        }
    }
}

/// The snapshots of a Hugging Face cache; of each repository the one that `main` names comes first.
fn cached(cache: &Path, found: &mut Vec<Found>) {
    let mut repos: Vec<PathBuf> = entries(cache)
        .filter(|path| name_of(path).starts_with("models--") && path.is_dir())
        .collect();
    repos.sort();
    for repo_dir in repos {
        let Some(repo) = repo_of(&repo_dir) else { continue };
        let named = refs(&repo_dir);
        let mut commits: Vec<PathBuf> = entries(&repo_dir.join("snapshots"))
            .filter(|path| path.is_dir())
            .collect();
        commits.sort_by_key(|dir| {
            (
                named
                    .get(&name_of(dir))
                    .is_none_or(|refs| !refs.contains(&"main".to_owned())),
                dir.clone(),
            )
        });
        let before = found.len();
        let mut any_file = false;
        for snapshot in &commits {
            any_file |= entries(snapshot).next().is_some();
            let variants = entries(snapshot).filter(|path| is_variant(path));
            let dirs = std::iter::once(snapshot.clone())
                .filter(|dir| is_checkpoint(dir))
                .chain(variants);
            for dir in dirs {
                let commit = name_of(snapshot);
                let mut name = repo.clone();
                if dir != *snapshot {
                    name = format!("{name}/{}", name_of(&dir));
                }
                if commits.len() > 1 && found.len() > before {
                    name = format!("{name} @ {}", commit.chars().take(7).collect::<String>());
                }
                found.push(Found {
                    dir,
                    place: ModelPlace::Cache,
                    name,
                    repo: Some(repo.clone()),
                    commit: Some(commit),
                    cached_in: Some(repo_dir.clone()),
                    bare: false,
                });
            }
        }
        if !any_file && entries(&repo_dir.join("blobs")).next().is_some() {
            found.push(Found {
                dir: repo_dir.clone(),
                place: ModelPlace::Cache,
                name: repo.clone(),
                repo: Some(repo),
                commit: None,
                cached_in: Some(repo_dir),
                bare: true,
            });
        }
    }
}

/// Which refs name a commit, by commit.
pub(super) fn refs(repo_dir: &Path) -> HashMap<String, Vec<String>> {
    let mut all: HashMap<String, Vec<String>> = HashMap::new();
    let mut open = vec![repo_dir.join("refs")];
    let root = repo_dir.join("refs");
    while let Some(dir) = open.pop() {
        for path in entries(&dir) {
            if path.is_dir() {
                open.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
                all.entry(text.trim().to_owned()).or_default().push(name);
            }
        }
    }
    all
}

/// `models--OWNER--NAME` as `OWNER/NAME`.
fn repo_of(dir: &Path) -> Option<String> {
    name_of(dir)
        .strip_prefix("models--")
        .map(|name| name.replacen("--", "/", 1))
}

pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// What is in a folder; nothing where it cannot be read.
pub(super) fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}
