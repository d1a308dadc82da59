//! One writer a file, across tasks, windows and programs.
//!
//! The lock is the system's own on the file that the hub's other clients lock too. It goes with the process that holds
//! it, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::cache::io_error;
use super::{CancelToken, HubError};

/// How often a lock that another holds is tried.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Held as long as any clone lives.
#[derive(Debug, Clone)]
pub(super) struct FileLock {
    _file: Arc<File>,
}

/// Takes the lock, waiting for who holds it; `waiting` is called at every try that fails.
pub(super) async fn acquire(path: &Path, cancel: &CancelToken, waiting: impl Fn()) -> Result<FileLock, HubError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| io_error(folder, &e))?;
    }
    loop {
        if let Some(lock) = try_acquire(path)? {
            return Ok(lock);
        }
        waiting();
        tokio::select! {
            () = cancel.cancelled() => return Err(HubError::Cancelled { kept: 0 }),
            () = tokio::time::sleep(TRY_AGAIN) => {}
        }
    }
}

/// Takes the lock if nobody holds it.
pub(super) fn try_acquire(path: &Path) -> Result<Option<FileLock>, HubError> {
    loop {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| io_error(path, &e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Some network disks know no locks; then there is only the care of who uses them.
            Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(io_error(path, &e)),
        }
        // Other clients remove the lock file when they are done: then this lock is on a file that has no name any more.
        if is_at(&file, path) {
            return Ok(Some(FileLock { _file: Arc::new(file) }));
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_taker_waits_until_the_last_clone_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep").join("x.lock");
        let cancel = CancelToken::new();
        let first = acquire(&path, &cancel, || panic!("nobody holds it")).await.unwrap();
        let clone = first.clone();
        drop(first);
        assert!(try_acquire(&path).unwrap().is_none());
        let stop = cancel.clone();
        let told = acquire(&path, &cancel, move || stop.cancel()).await;
        assert_eq!(told.unwrap_err().kind(), "cancelled");
        drop(clone);
        assert!(try_acquire(&path).unwrap().is_some());
    }

    #[test]
    fn a_removed_lock_file_does_not_let_two_in() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let held = try_acquire(&path).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = try_acquire(&path).unwrap().unwrap();
        assert!(try_acquire(&path).unwrap().is_none());
        drop((held, second));
    }
}
