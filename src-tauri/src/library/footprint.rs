//! Bytes on disk, each file counted once however many links lead to it.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::find::entries;

/// Files counted so far.
#[derive(Debug, Default)]
pub(super) struct Footprint {
    seen: HashSet<(u64, u64)>,
}

impl Footprint {
    /// Bytes below a folder that were not counted before.
    pub(super) fn add(&mut self, dir: &Path) -> u64 {
        entries(dir).map(|path| self.add_entry(&path, 4)).sum()
    }

    fn add_entry(&mut self, path: &Path, depth: usize) -> u64 {
        // Through links: a cache's files are links to blobs. A link that leads nowhere has no bytes.
        let Ok(meta) = path.metadata() else { return 0 };
        if !self.seen.insert((meta.dev(), meta.ino())) {
            return 0;
        }
        if meta.is_dir() && depth > 0 {
            return entries(path).map(|path| self.add_entry(&path, depth - 1)).sum();
        }
        if meta.is_file() { meta.len() } else { 0 }
    }
}

/// Bytes below a folder.
pub(super) fn size(dir: &Path) -> u64 {
    Footprint::default().add(dir)
}

/// When a file of a checkpoint's folder was written or put there last, in Unix milliseconds.
pub(super) fn changed_at(dir: &Path) -> f64 {
    let inside = dir.join("mtp");
    let files = entries(dir).chain(entries(&inside));
    let seconds = files
        .filter_map(|path| path.metadata().ok())
        .map(|meta| meta.mtime().max(meta.ctime()));
    seconds.max().unwrap_or_default() as f64 * 1e3
}

/// A mark that changes when files of a checkpoint's folder do.
pub(super) fn fingerprint(dir: &Path) -> Vec<(String, u64, i64, i64)> {
    let mut files: Vec<_> = entries(dir)
        .chain(entries(&dir.join("mtp")))
        .map(|path| {
            let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
            match path.metadata() {
                Ok(meta) => (name, meta.len(), meta.mtime(), meta.mtime_nsec()),
                Err(_) => (name, 0, 0, -1),
            }
        })
        .collect();
    files.sort();
    files
}
