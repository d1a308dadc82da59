//! Which processes are alive: each holds a lock on a file of its own, and the system drops the
//! lock when the process ends, however it ends.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use super::{Error, Result};

/// This process's mark on the replies that it generates.
pub(super) struct Owner {
    id: String,
    dir: PathBuf,
    /// Held for the life of the process.
    _lock: File,
}

impl Owner {
    /// Call it under the setup lock.
    pub(super) fn new(data_dir: &Path) -> Result<Self> {
        let dir = data_dir.join("owners");
        std::fs::create_dir_all(&dir).map_err(|source| Error::folder(&dir, source))?;
        // The process id alone comes again one day, and a process may open the store twice.
        let id = format!(
            "{}-{:016x}",
            std::process::id(),
            RandomState::new().hash_one(std::process::id())
        );
        let path = lock_path(&dir, &id);
        let lock = File::create(&path).map_err(|source| Error::folder(&path, source))?;
        lock.lock().map_err(|source| Error::folder(&path, source))?;
        Ok(Owner { id, dir, _lock: lock })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether the process with this id lives.
    pub(super) fn is_alive(&self, id: &str) -> bool {
        id == self.id || is_locked(&lock_path(&self.dir, id))
    }

    /// Removes lock files of dead processes. Call it under the setup lock.
    pub(super) fn clear_abandoned(&self) {
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "lock") && !is_locked(&path) {
                // A file that stays is looked at again at the next start.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(lock_path(&self.dir, &self.id));
    }
}

/// Waits for, then holds, the lock under which a process sets up the data folder.
pub(super) fn setup_lock(data_dir: &Path) -> Result<File> {
    let path = data_dir.join("setup.lock");
    let file = File::create(&path).map_err(|source| Error::folder(&path, source))?;
    file.lock().map_err(|source| Error::folder(&path, source))?;
    Ok(file)
}

fn lock_path(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("{id}.lock"))
}

fn is_locked(path: &Path) -> bool {
    match File::open(path).map(|file| file.try_lock()) {
        Ok(Err(TryLockError::WouldBlock)) => true,
        Ok(Ok(()) | Err(TryLockError::Error(_))) | Err(_) => false,
    }
}
