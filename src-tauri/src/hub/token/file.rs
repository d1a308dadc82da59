//! Small files that hold a token.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Result, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::Secret;

/// Far more than any token has; no device or wrong file is read to its end.
pub(super) const LONGEST: usize = 4096;
const PRIVATE: u32 = 0o600;

/// The text of a file; nothing where there is no file.
pub(super) fn read(path: &Path) -> std::result::Result<Option<String>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("`{}` cannot be read: {why}", path.display());
    match std::fs::metadata(path) {
        // Opening a pipe would wait for its writer.
        Ok(found) if !found.is_file() => return Err(failed(&"it is not a file")),
        Ok(_) => {}
        Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => return Ok(None),
        Err(e) => return Err(failed(&e)),
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|e| failed(&e))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Writes a token to a file that nobody but its owner could read at any moment, in place of what is there.
pub(super) fn write(path: &Path, secret: &Secret) -> Result<()> {
    let unfinished = path.with_extension("new");
    remove(&unfinished)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(&unfinished)?;
    file.write_all(secret.reveal().as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)
}

/// Takes back the rights that others have on a file of ours.
pub(super) fn make_private(path: &Path) {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return;
    };
    if found.is_file() && found.permissions().mode() & 0o077 != 0 {
        // Where this fails, the file is not ours to change, and reading it is no worse than before.
        let _ = std::fs::set_permissions(path, Permissions::from_mode(PRIVATE));
    }
}

/// Deletes a file; one that is not there is no failure.
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
