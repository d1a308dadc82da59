//! Deleting a checkpoint: what nothing else uses, and nothing outside its place.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::find::{Found, entries, is_checkpoint, is_variant, name_of, refs};
use crate::error::Error;
use crate::ipc::{Deletion, ModelPlace};

/// What deleting would do.
pub(super) fn weigh(found: &Found) -> Result<Deletion, Error> {
    let plan = plan(found)?;
    Ok(Deletion {
        frees: plan.remove.iter().map(|path| freed(path)).sum::<u64>() as f64,
        shared: plan.shared as f64,
        foreign: plan.foreign,
    })
}

/// Deletes it and gives the bytes that came free. Another program's folder only if `foreign` was agreed to.
pub(super) fn delete(found: &Found, foreign: bool) -> Result<u64, Error> {
    let plan = plan(found)?;
    if plan.foreign && !foreign {
        return Err(Error::ForeignFolder {
            path: found.dir.display().to_string(),
        });
    }
    let mut bytes = 0;
    for path in &plan.remove {
        let size = freed(path);
        match fs::remove_file(path) {
            Ok(()) => bytes += size,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path, error)),
        }
    }
    for dir in &plan.empty {
        remove_empty(dir, plan.whole).map_err(|error| failed(dir, error))?;
    }
    Ok(bytes)
}

struct Plan {
    /// Files and links.
    remove: Vec<PathBuf>,
    /// Folders that go when nothing is left in them.
    empty: Vec<PathBuf>,
    /// Whether the folders belong to the checkpoint alone.
    whole: bool,
    shared: u64,
    foreign: bool,
}

fn plan(found: &Found) -> Result<Plan, Error> {
    match (&found.cached_in, found.place) {
        (_, ModelPlace::Builtin) => Err(Error::BuiltinStays),
        (Some(repo_dir), _) => cached(found, repo_dir),
        // Anything else that lies there was put there by somebody.
        (None, ModelPlace::Heads) if found.commit.is_some() => head(found),
        (None, _) => folder(found),
    }
}

/// A folder of the person's, which may hold more: only what makes a checkpoint goes.
fn folder(found: &Found) -> Result<Plan, Error> {
    if found.dir.is_symlink() {
        return Err(Error::OutsideCache {
            path: found.dir.display().to_string(),
        });
    }
    let mtp = found.dir.join("mtp");
    // Behind a link lies the head of another model.
    let own_head = if mtp.is_symlink() { Vec::new() } else { files(&mtp, 0) };
    let parts = [files(&found.dir, 0), own_head].concat();
    Ok(Plan {
        remove: parts
            .into_iter()
            .filter(|path| is_part(path))
            .chain(notes(&found.dir))
            .collect(),
        empty: vec![found.dir.clone()],
        whole: false,
        shared: 0,
        foreign: true,
    })
}

/// What the hub's own tool notes beside files that it fetched into a folder. Where anything else lies with it, it is the home
/// of that tool, with its cache and its token, and stays.
fn notes(dir: &Path) -> Vec<PathBuf> {
    let home = dir.join(".cache/huggingface");
    let is_note = |path: PathBuf| ["download", ".gitignore", "CACHEDIR.TAG"].contains(&&*name_of(&path));
    let is_link = [dir.join(".cache"), home.clone(), home.join("download")]
        .iter()
        .any(|path| path.is_symlink());
    if is_link || !entries(&home).all(is_note) {
        return Vec::new();
    }
    files(&home, 4)
}

/// A head's folder is the app's own, with all that is in it; so is the lock beside it.
fn head(found: &Found) -> Result<Plan, Error> {
    let beside = found.dir.parent().unwrap_or(&found.dir);
    for dir in [&found.dir, beside] {
        if dir.is_symlink() {
            return Err(Error::OutsideCache {
                path: dir.display().to_string(),
            });
        }
    }
    let lock = beside.join(format!(".{}.lock", found.commit.as_deref().unwrap_or_default()));
    if is_held(&lock) {
        return Err(in_use(found, &lock));
    }
    let mut remove = files(&found.dir, 8);
    remove.extend(Some(lock).filter(|lock| lock.exists()));
    Ok(Plan {
        remove,
        empty: vec![found.dir.clone(), beside.to_owned()],
        whole: false,
        shared: 0,
        foreign: false,
    })
}

fn cached(found: &Found, repo_dir: &Path) -> Result<Plan, Error> {
    let blobs = repo_dir.join("blobs");
    // A cache whose folders are links to elsewhere is not one that we know our way about in.
    for dir in [repo_dir, &blobs, &repo_dir.join("snapshots")] {
        if dir.is_symlink() {
            return Err(Error::OutsideCache {
                path: dir.display().to_string(),
            });
        }
    }
    if let Some(lock) = held_lock(repo_dir) {
        return Err(in_use(found, &lock));
    }
    let snapshots = repo_dir.join("snapshots");
    let commit = found.commit.clone().unwrap_or_default();
    let own = snapshots.join(&commit);
    // A snapshot may hold variants beside each other; each is a checkpoint of its own. What lies above them goes with the
    // last one.
    let is_last = !is_checkpoint(&own) && !entries(&own).any(|dir| dir != found.dir && is_variant(&dir));
    let (remove, rest): (Vec<PathBuf>, Vec<PathBuf>) = files(&snapshots, 9)
        .into_iter()
        .partition(|link| checkpoint_of(link, &own) == found.dir || (is_last && link.starts_with(&own)));
    if commit.is_empty() || rest.is_empty() {
        return Ok(Plan {
            remove: files(repo_dir, 8),
            empty: vec![repo_dir.to_owned()],
            whole: true,
            shared: 0,
            foreign: false,
        });
    }
    let used: HashSet<PathBuf> = rest.iter().filter_map(|link| blob_of(link)).collect();
    let is_last_of_commit = !rest.iter().any(|link| link.starts_with(&own));
    let mut remove = remove;
    let mut shared = 0;
    let mine: HashSet<PathBuf> = remove
        .iter()
        .filter_map(|link| blob_of(link))
        .filter(|blob| blob.starts_with(&blobs))
        .collect();
    for blob in mine {
        if used.contains(&blob) {
            shared += blob.symlink_metadata().map_or(0, |meta| meta.len());
        } else {
            remove.push(blob);
        }
    }
    if !is_last_of_commit {
        return Ok(Plan {
            remove,
            empty: vec![found.dir.clone()],
            whole: false,
            shared,
            foreign: false,
        });
    }
    remove.extend(parts_of(&blobs, &commit));
    for name in refs(repo_dir).remove(&commit).unwrap_or_default() {
        remove.push(repo_dir.join("refs").join(name));
    }
    let absent = repo_dir.join(".no_exist").join(&commit);
    remove.extend(files(&absent, 8));
    remove.extend(Some(repo_dir.join("trees").join(format!("{commit}.json"))).filter(|path| path.exists()));
    Ok(Plan {
        remove,
        empty: vec![own, absent],
        whole: true,
        shared,
        foreign: false,
    })
}

/// The folder of the checkpoint that a file of a snapshot belongs to: the snapshot, or a variant's folder in it.
fn checkpoint_of(file: &Path, snapshot: &Path) -> PathBuf {
    let below = file.strip_prefix(snapshot).ok().and_then(|below| below.iter().next());
    match below.map(|first| snapshot.join(first)) {
        Some(variant) if is_variant(&variant) => variant,
        Some(_) => snapshot.to_owned(),
        None => PathBuf::new(),
    }
}

/// Beginnings of files, and the notes beside them, that were fetched for a commit.
fn parts_of(blobs: &Path, commit: &str) -> Vec<PathBuf> {
    let notes = entries(blobs).filter(|path| name_of(path).ends_with(".slipstream-part.json"));
    let own = notes.filter(|note| {
        let text = fs::read_to_string(note).unwrap_or_default();
        let note = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
        note.get("commit").and_then(serde_json::Value::as_str) == Some(commit)
    });
    own.flat_map(|note| [note.with_extension(""), note]).collect()
}

/// Where a snapshot's link leads, without asking the disk: a dangling one still names its blob.
fn blob_of(link: &Path) -> Option<PathBuf> {
    let to = fs::read_link(link).ok()?;
    let mut path = link.parent()?.to_owned();
    for part in to.components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::RootDir => path = PathBuf::from("/"),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(path)
}

/// A lock file of the repository that somebody holds.
fn held_lock(repo_dir: &Path) -> Option<PathBuf> {
    let locks = repo_dir.parent()?.join(".locks").join(repo_dir.file_name()?);
    entries(&locks).find(|path| is_held(path))
}

fn is_held(lock: &Path) -> bool {
    let file = fs::File::open(lock);
    // The lock is given back when the file is closed.
    file.is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

fn in_use(found: &Found, lock: &Path) -> Error {
    Error::InUse {
        name: found.name.clone(),
        by: format!("another program downloads it ({})", name_of(lock)),
    }
}

/// Files and links below a folder. Links to folders are links: they are not followed.
fn files(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in entries(dir) {
        let is_dir = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if !is_dir {
            all.push(path);
        } else if depth > 0 {
            all.extend(files(&path, depth - 1));
        }
    }
    all
}

/// Bytes that removing one name gives back: none while another hard link keeps the file.
fn freed(path: &Path) -> u64 {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() && meta.nlink() == 1 => meta.len(),
        _ => 0,
    }
}

/// Whether a file is one that a downloaded checkpoint is made of.
fn is_part(path: &Path) -> bool {
    let name = name_of(path).to_lowercase();
    let stems = [
        "config",
        "tokenizer",
        "generation_config",
        "special_tokens",
        "added_tokens",
        "vocab",
        "merges",
        "chat_template",
        "preprocessor",
        "processor",
        "video_preprocessor",
    ];
    let of_text = [".json", ".txt", ".jinja"].iter().any(|end| name.ends_with(end))
        && stems.iter().any(|stem| name.starts_with(stem));
    of_text
        || [
            ".safetensors",
            ".safetensors.index.json",
            ".tiktoken",
            "tokenizer.model",
        ]
        .iter()
        .any(|end| name.ends_with(end))
        || [
            "readme.md",
            "license",
            "license.txt",
            "license.md",
            "notice",
            // Whoever took a head's folder elsewhere took this with it.
            crate::hub::head::RECORD,
            ".gitattributes",
        ]
        .contains(&&*name)
}

fn remove_empty(dir: &Path, whole: bool) -> io::Result<()> {
    let removed = if whole {
        fs::remove_dir_all(dir)
    } else {
        remove_if_empty(dir)
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The folder and its empty subfolders; a file that is left keeps it.
fn remove_if_empty(dir: &Path) -> io::Result<()> {
    for path in entries(dir) {
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            remove_if_empty(&path)?;
        }
    }
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        other => other,
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::Delete {
        path: path.display().to_string(),
        message: error.to_string(),
    }
}
