//! An unfinished file: written and hashed on a thread of its own, resumed, and given its name when whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;

use bytes::Bytes;
use flate2::write::GzDecoder;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::cache::{Note, RepoCache, io_error, sync_folder};
use super::lock::FileLock;
use super::verify::Hasher;
use super::{CancelToken, HubError};

/// Chunks between network and disk. They bound the memory of a file and keep both busy.
const QUEUE: usize = 16;
const READ_SIZE: usize = 1 << 20;

/// The bytes that are there of a file, and their hash so far.
pub(super) struct Part {
    file: File,
    path: PathBuf,
    hasher: Hasher,
    have: u64,
    note: Note,
    cache: RepoCache,
    /// Nobody else may write as long as this lives, also after the task that began it is gone.
    _lock: FileLock,
}

impl Part {
    /// Opens what an earlier run left, if it begins what is wanted ([`Note::begins`]), and hashes it; else begins anew.
    pub(super) async fn open(
        cache: RepoCache,
        note: Note,
        lock: FileLock,
        cancel: CancelToken,
    ) -> Result<Self, HubError> {
        spawn_blocking(move || Part::open_now(cache, note, lock, &cancel))
            .await
            .map_err(|_| HubError::Task)?
    }

    fn open_now(cache: RepoCache, note: Note, lock: FileLock, cancel: &CancelToken) -> Result<Self, HubError> {
        let path = cache.part(&note.etag);
        let blobs = cache.blobs();
        fs::create_dir_all(&blobs).map_err(|e| io_error(&blobs, &e))?;
        let hasher = Hasher::for_etag(&note.etag, note.size).ok_or_else(|| unverifiable(&note.path))?;
        let old = cache.read_note(&note.etag);
        if !old.as_ref().is_some_and(|old| old.begins(&note)) {
            cache.discard(&note.etag);
        }
        // It belongs to the commit that is fetched now, and goes with it when that is deleted.
        if old.as_ref() != Some(&note) {
            cache.write_note(&note)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|e| io_error(&path, &e))?;
        let mut part = Part {
            file,
            path,
            hasher,
            have: 0,
            note,
            cache,
            _lock: lock,
        };
        let mut buffer = vec![0; READ_SIZE];
        loop {
            if cancel.is_cancelled() {
                return Err(HubError::Cancelled { kept: 0 });
            }
            let count = part.file.read(&mut buffer).map_err(|e| io_error(&part.path, &e))?;
            if count == 0 {
                break;
            }
            part.hasher.update(&buffer[..count]);
            part.have += count as u64;
        }
        if part.have > part.note.size {
            part.restart()?;
        }
        Ok(part)
    }

    /// Bytes that are there.
    pub(super) fn have(&self) -> u64 {
        self.have
    }

    /// Forgets what is there.
    pub(super) fn restart(&mut self) -> Result<(), HubError> {
        self.file.set_len(0).map_err(|e| io_error(&self.path, &e))?;
        self.hasher = Hasher::for_etag(&self.note.etag, self.note.size).ok_or_else(|| unverifiable(&self.note.path))?;
        self.have = 0;
        Ok(())
    }

    /// Starts the thread that writes what is sent to it.
    pub(super) fn writer(mut self, packed: bool) -> (mpsc::Sender<Bytes>, JoinHandle<Written>) {
        let (sender, mut receiver) = mpsc::channel::<Bytes>(QUEUE);
        let thread = spawn_blocking(move || {
            let result = if packed {
                let mut unpacking = GzDecoder::new(&mut self);
                let mut result = Ok(());
                while let Some(bytes) = receiver.blocking_recv() {
                    result = unpacking.write_all(&bytes);
                    if result.is_err() {
                        break;
                    }
                }
                result.and_then(|()| unpacking.finish().map(drop))
            } else {
                let mut result = Ok(());
                while let Some(bytes) = receiver.blocking_recv() {
                    result = self.write_all(&bytes);
                    if result.is_err() {
                        break;
                    }
                }
                result
            };
            Written { part: self, result }
        });
        (sender, thread)
    }

    /// Checks length and hash; if they are right, the file gets its name, else it is thrown away.
    pub(super) async fn finish(self) -> Result<(), HubError> {
        spawn_blocking(move || self.finish_now())
            .await
            .map_err(|_| HubError::Task)?
    }

    fn finish_now(self) -> Result<(), HubError> {
        let Part {
            file,
            path,
            hasher,
            have,
            note,
            cache,
            _lock,
        } = self;
        let found = hasher.finish();
        let wrong = if have != note.size {
            Some(HubError::LengthMismatch {
                file: note.path.clone(),
                expected: note.size,
                found: have,
            })
        } else if found != note.etag {
            Some(HubError::HashMismatch {
                file: note.path.clone(),
                expected: note.etag.clone(),
                found,
            })
        } else {
            None
        };
        if let Some(error) = wrong {
            cache.discard(&note.etag);
            return Err(error);
        }
        // The name must not outlive a loss of power that the bytes do not.
        file.sync_all().map_err(|e| io_error(&path, &e))?;
        let blob = cache.blob(&note.etag);
        fs::rename(&path, &blob).map_err(|e| io_error(&blob, &e))?;
        cache.discard(&note.etag);
        sync_folder(&cache.blobs());
        Ok(())
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Packed bytes could unpack to any length.
        if self.have + bytes.len() as u64 > self.note.size {
            return Err(ErrorKind::InvalidData.into());
        }
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.have += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What the writing thread hands back.
pub(super) struct Written {
    pub(super) part: Part,
    pub(super) result: io::Result<()>,
}

impl Written {
    /// The part, and what the disk, or the unpacking, refused.
    pub(super) fn apart(self) -> (Part, Option<HubError>) {
        let Written { part, result } = self;
        let Err(e) = result else { return (part, None) };
        let unpacking = [
            ErrorKind::InvalidInput,
            ErrorKind::InvalidData,
            ErrorKind::UnexpectedEof,
        ];
        let error = if unpacking.contains(&e.kind()) {
            HubError::Answer {
                what: part.note.path.clone(),
                message: "its packed bytes cannot be unpacked".to_owned(),
            }
        } else {
            match io_error(&part.path, &e) {
                HubError::DiskFull { dir, .. } => HubError::DiskFull {
                    free: super::cache::disk_free(&dir),
                    needed: part.note.size.saturating_sub(part.have),
                    dir,
                },
                other => other,
            }
        };
        (part, Some(error))
    }
}

pub(super) fn unverifiable(path: &str) -> HubError {
    HubError::Answer {
        what: path.to_owned(),
        message: "it names no hash that the file could be checked with".to_owned(),
    }
}
