//! The cache of the hub's own clients: `blobs` by hash, `snapshots` by commit with links into them, `refs` by branch.
//!
//! A blob has its name only when it is whole and its hash was checked. What is unfinished is called `<hash>.slipstream-part`
//! with a note beside it: other clients' `.incomplete` files are neither read nor touched, and ours are not theirs.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::{HubError, Presence, RemoteFile, RepoId, lock};

const PART: &str = "slipstream-part";
const SHA256_HEX: usize = 64;

/// A repository's folder in the cache.
#[derive(Debug, Clone)]
pub(super) struct RepoCache {
    root: PathBuf,
    locks: PathBuf,
}

/// What an unfinished file is a part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The commit it was begun for.
    pub(super) commit: String,
    /// The content's hash.
    pub(super) etag: String,
    /// Bytes of the whole.
    pub(super) size: u64,
    /// The path in the repository.
    pub(super) path: String,
}

impl Note {
    /// Whether what was begun for this is a beginning of `wanted` too. SHA-256 names a content whatever commit it is in:
    /// of a large file that did not change with the commit, nothing is fetched twice. Git's own hash is no such name: it
    /// is SHA-1, of which two contents can be made, and the files are small.
    pub(super) fn begins(&self, wanted: &Note) -> bool {
        (&self.etag, self.size) == (&wanted.etag, wanted.size)
            && (self.commit == wanted.commit || wanted.etag.len() == SHA256_HEX)
    }
}

impl RepoCache {
    pub(super) fn new(cache_dir: &Path, repo: &RepoId) -> Self {
        let folder = format!("models--{}--{}", repo.owner(), repo.name());
        RepoCache {
            root: cache_dir.join(&folder),
            locks: cache_dir.join(".locks").join(folder),
        }
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.blobs().join(etag)
    }

    pub(super) fn part(&self, etag: &str) -> PathBuf {
        self.blobs().join(format!("{etag}.{PART}"))
    }

    pub(super) fn note(&self, etag: &str) -> PathBuf {
        self.blobs().join(format!("{etag}.{PART}.json"))
    }

    pub(super) fn lock(&self, etag: &str) -> PathBuf {
        self.locks.join(format!("{etag}.lock"))
    }

    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join("snapshots").join(commit)
    }

    /// Where a file of a commit appears.
    pub(super) fn pointer(&self, commit: &str, path: &str) -> Result<PathBuf, HubError> {
        below(&self.snapshot(commit), path)
    }

    /// What is there of a file.
    pub(super) fn presence(&self, commit: &str, file: &RemoteFile) -> Presence {
        let Some((etag, size)) = file.etag().zip(file.size).filter(|(etag, _)| is_name(etag)) else {
            return Presence::Absent;
        };
        if self.is_whole(commit, &file.path, etag, size) {
            return Presence::Whole;
        }
        let wanted = Note {
            commit: commit.to_owned(),
            etag: etag.to_owned(),
            size,
            path: file.path.clone(),
        };
        match (self.read_note(etag), fs::metadata(self.part(etag))) {
            (Some(note), Ok(part)) if note.begins(&wanted) && part.len() <= size => Presence::Partial(part.len()),
            _ => Presence::Absent,
        }
    }

    /// Whether the content is there, as a blob or, on disks without links, under its own name.
    pub(super) fn is_whole(&self, commit: &str, path: &str, etag: &str, size: u64) -> bool {
        let long = |meta: io::Result<fs::Metadata>| meta.is_ok_and(|meta| meta.is_file() && meta.len() == size);
        long(fs::metadata(self.blob(etag)))
            || self
                .pointer(commit, path)
                .is_ok_and(|pointer| long(fs::symlink_metadata(pointer)))
    }

    pub(super) fn read_note(&self, etag: &str) -> Option<Note> {
        serde_json::from_slice(&fs::read(self.note(etag)).ok()?).ok()
    }

    pub(super) fn write_note(&self, note: &Note) -> Result<(), HubError> {
        let text = serde_json::to_vec(note).map_err(|_| HubError::Task)?;
        replace(&self.note(&note.etag), &text)
    }

    /// Removes an unfinished file.
    pub(super) fn discard(&self, etag: &str) {
        // The note goes last: without it a part is not resumed, without a part a note says nothing.
        let _ = fs::remove_file(self.part(etag));
        let _ = fs::remove_file(self.note(etag));
    }

    /// Removes unfinished files of the same path but another content: nobody will finish them.
    pub(super) fn discard_outdated(&self, path: &str, etag: &str) {
        let Ok(entries) = fs::read_dir(self.blobs()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(other) = name
                .strip_suffix(&format!(".{PART}.json"))
                .filter(|other| *other != etag)
            else {
                continue;
            };
            let outdated = self.read_note(other).is_some_and(|note| note.path == path);
            // Whoever holds the lock is still at work on it.
            if outdated && let Ok(Some(_held)) = lock::try_acquire(&self.lock(other)) {
                self.discard(other);
            }
        }
    }

    /// Lets a file appear in its snapshot.
    pub(super) fn link(&self, commit: &str, path: &str, etag: &str) -> Result<(), HubError> {
        let pointer = self.pointer(commit, path)?;
        let blob = self.blob(etag);
        let up = path.split('/').count() + 1;
        let target = PathBuf::from("../".repeat(up)).join("blobs").join(etag);
        match fs::symlink_metadata(&pointer) {
            Ok(meta) if meta.is_symlink() && fs::read_link(&pointer).is_ok_and(|there| there == target) => {
                return Ok(());
            }
            // A disk without links: the content itself is there.
            Ok(meta) if meta.is_file() && !blob.exists() => return Ok(()),
            _ => {}
        }
        let folder = pointer.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(|e| io_error(folder, &e))?;
        let fresh = beside(&pointer);
        let linked = symlink(&target, &fresh).and_then(|()| fs::rename(&fresh, &pointer));
        if linked.is_err() {
            let _ = fs::remove_file(&fresh);
            fs::rename(&blob, &pointer).map_err(|e| io_error(&pointer, &e))?;
        }
        sync_folder(folder);
        Ok(())
    }

    /// Remembers what a branch or tag stands for.
    pub(super) fn write_ref(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if revision == commit {
            return Ok(());
        }
        let path = below(&self.root.join("refs"), revision)?;
        if fs::read_to_string(&path).is_ok_and(|there| there == commit) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(|e| io_error(folder, &e))?;
        replace(&path, commit.as_bytes())
    }

    /// The commit of a revision, without asking the hub.
    pub(super) fn commit_of(&self, revision: &str) -> Option<String> {
        if let Ok(text) = fs::read_to_string(below(&self.root.join("refs"), revision).ok()?) {
            return Some(text.trim().to_owned()).filter(|commit| is_name(commit));
        }
        (is_commit(revision) && self.snapshot(revision).is_dir()).then(|| revision.to_owned())
    }

    /// The files of a commit that are there.
    pub(super) fn snapshot_files(&self, commit: &str) -> Vec<RemoteFile> {
        let root = self.snapshot(commit);
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(meta) = fs::metadata(&path) else { continue };
                if meta.is_dir() {
                    folders.push(path);
                    continue;
                }
                let Ok(name) = path.strip_prefix(&root) else { continue };
                let blob = fs::read_link(&path).ok();
                let etag = blob
                    .as_deref()
                    .and_then(Path::file_name)
                    .map(|name| name.to_string_lossy().into_owned());
                files.push(RemoteFile {
                    path: name.to_string_lossy().replace('\\', "/"),
                    size: Some(meta.len()),
                    sha256: etag.clone().filter(|etag| etag.len() == 64),
                    git_oid: etag.filter(|etag| etag.len() == 40),
                });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }
}

/// A path below a folder, or an error: nothing from outside may lead elsewhere.
fn below(folder: &Path, path: &str) -> Result<PathBuf, HubError> {
    let plain = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty()
        || !plain
        || path.contains(['\\', '\0'])
        || path.split('/').any(|part| part.is_empty() || part == ".")
    {
        return Err(HubError::UnsafePath { path: path.to_owned() });
    }
    Ok(folder.join(path))
}

/// Whether a hash can be a file's name.
pub(super) fn is_name(etag: &str) -> bool {
    !etag.is_empty() && etag.len() <= 128 && etag.bytes().all(|b| b.is_ascii_alphanumeric())
}

pub(super) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A name of its own for each writer, in the same folder.
fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{number}.tmp", std::process::id()));
    path.with_file_name(name)
}

/// Writes a small file whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    let fresh = beside(path);
    let written = fs::write(&fresh, bytes).and_then(|()| fs::rename(&fresh, path));
    written.map_err(|e| {
        let _ = fs::remove_file(&fresh);
        io_error(path, &e)
    })
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(_target: &Path, _link: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Makes a rename outlive a loss of power; disks that cannot are as good as they are.
pub(super) fn sync_folder(folder: &Path) {
    let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
}

/// A failure of the disk, by what can be done about it.
pub(super) fn io_error(path: &Path, error: &io::Error) -> HubError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => HubError::DiskFull {
            dir: path.parent().unwrap_or(path).to_owned(),
            needed: 0,
            free: None,
        },
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => HubError::Permission { path: path.to_owned() },
        _ => HubError::Io {
            path: path.to_owned(),
            message: error.to_string(),
        },
    }
}

/// The free bytes of the disk that a path is or will be on.
#[must_use]
pub fn disk_free(path: &Path) -> Option<u64> {
    let there = path.ancestors().find(|path| path.exists())?;
    #[cfg(unix)]
    {
        let stat = rustix::fs::statvfs(there).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = there;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "c0ffee0000000000000000000000000000000000";

    fn cache() -> (tempfile::TempDir, RepoCache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = RepoCache::new(dir.path(), &"o/n".parse().unwrap());
        fs::create_dir_all(cache.blobs()).unwrap();
        (dir, cache)
    }

    fn file(etag: &str, size: u64) -> RemoteFile {
        RemoteFile {
            path: "sub/a.json".to_owned(),
            size: Some(size),
            sha256: None,
            git_oid: Some(etag.to_owned()),
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let (_dir, cache) = cache();
        for bad in [
            "", "/etc/x", "../x", "a/../x", "a//x", "./x", "a/./x", "a\\x", "a/", "x\0",
        ] {
            assert_eq!(cache.pointer(COMMIT, bad).unwrap_err().kind(), "unsafe_path", "{bad:?}");
            assert!(cache.write_ref(bad, COMMIT).is_err(), "{bad:?}");
        }
        assert!(cache.pointer(COMMIT, "a/b.json").is_ok());
    }

    #[test]
    fn a_file_is_whole_partial_or_absent() {
        let (_dir, cache) = cache();
        let etag = "a".repeat(40);
        let note = Note {
            commit: COMMIT.to_owned(),
            etag: etag.clone(),
            size: 3,
            path: "sub/a.json".to_owned(),
        };
        assert_eq!(cache.presence(COMMIT, &file(&etag, 3)), Presence::Absent);
        fs::write(cache.part(&etag), "ab").unwrap();
        assert_eq!(cache.presence(COMMIT, &file(&etag, 3)), Presence::Absent, "no note");
        cache.write_note(&note).unwrap();
        assert_eq!(cache.presence(COMMIT, &file(&etag, 3)), Presence::Partial(2));
        assert_eq!(
            cache.presence(&"b".repeat(40), &file(&etag, 3)),
            Presence::Absent,
            "another commit, and SHA-1 does not name the content"
        );
        fs::write(cache.blob(&etag), "abcd").unwrap();
        assert_eq!(
            cache.presence(COMMIT, &file(&etag, 3)),
            Presence::Partial(2),
            "wrong length"
        );
        fs::write(cache.blob(&etag), "abc").unwrap();
        assert_eq!(cache.presence(COMMIT, &file(&etag, 3)), Presence::Whole);
    }

    #[test]
    fn a_sha256_names_a_content_in_any_commit() {
        let note = |commit: &str, etag: &str, size| Note {
            commit: commit.repeat(40),
            etag: etag.to_owned(),
            size,
            path: "p".to_owned(),
        };
        let (sha256, git) = ("a".repeat(64), "a".repeat(40));
        let begun = note("1", &sha256, 3);
        assert!(begun.begins(&note("1", &sha256, 3)) && begun.begins(&note("2", &sha256, 3)));
        assert!(!begun.begins(&note("1", &sha256, 4)) && !begun.begins(&note("1", &"b".repeat(64), 3)));
        let begun = note("1", &git, 3);
        assert!(begun.begins(&note("1", &git, 3)) && !begun.begins(&note("2", &git, 3)));
    }

    #[test]
    fn links_are_relative_and_replace_what_pointed_elsewhere() {
        let (_dir, cache) = cache();
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        fs::write(cache.blob(&old), "old").unwrap();
        fs::write(cache.blob(&new), "new").unwrap();
        let pointer = cache.pointer(COMMIT, "sub/a.json").unwrap();
        for (etag, text) in [(&old, "old"), (&new, "new"), (&new, "new")] {
            cache.link(COMMIT, "sub/a.json", etag).unwrap();
            assert_eq!(fs::read_link(&pointer).unwrap(), Path::new("../../../blobs").join(etag));
            assert_eq!(fs::read_to_string(&pointer).unwrap(), text);
        }
        let files = cache.snapshot_files(COMMIT);
        assert_eq!(files, [file(&new, 3)]);
    }

    #[test]
    fn refs_lead_to_commits() {
        let (_dir, cache) = cache();
        assert_eq!(cache.commit_of("main"), None);
        cache.write_ref("refs/pr/1", COMMIT).unwrap();
        assert_eq!(cache.commit_of("refs/pr/1").as_deref(), Some(COMMIT));
        assert_eq!(cache.commit_of(COMMIT), None);
        fs::create_dir_all(cache.snapshot(COMMIT)).unwrap();
        assert_eq!(cache.commit_of(COMMIT).as_deref(), Some(COMMIT));
    }

    #[test]
    fn outdated_parts_go_unless_somebody_works_on_them() {
        let (_dir, cache) = cache();
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        let note = Note {
            commit: COMMIT.to_owned(),
            etag: old.clone(),
            size: 3,
            path: "p".to_owned(),
        };
        fs::write(cache.part(&old), "ab").unwrap();
        cache.write_note(&note).unwrap();
        fs::create_dir_all(cache.lock(&old).parent().unwrap()).unwrap();
        let held = lock::try_acquire(&cache.lock(&old)).unwrap();
        cache.discard_outdated("p", &new);
        assert!(cache.part(&old).exists());
        drop(held);
        cache.discard_outdated("q", &new);
        cache.discard_outdated("p", &old);
        assert!(cache.part(&old).exists());
        cache.discard_outdated("p", &new);
        assert!(!cache.part(&old).exists() && !cache.note(&old).exists());
    }

    #[test]
    fn the_disk_tells_its_room_also_for_folders_to_be_made() {
        let dir = tempfile::tempdir().unwrap();
        assert!(disk_free(&dir.path().join("not/yet")).unwrap() > 0);
    }
}
