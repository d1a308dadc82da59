//! Fetching a planned head: each file of it grows in a folder beside its place, and all move there at once.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::journal::{self, Part};
use super::{HeadPlan, Output, Source, record};
use crate::hub::cache::io_error;
use crate::hub::verify::{Hasher, hex};
use crate::hub::{CancelToken, HubError, WaitReason, lock};

/// The unfinished folder and what belongs to it.
struct Work {
    dir: PathBuf,
    /// What moves to its place in the end.
    files: PathBuf,
    /// Says of which plan the files are.
    mark: PathBuf,
}

impl Work {
    fn of(plan: &HeadPlan) -> Self {
        let dir = plan.repo_dir().join(format!(".{}.part", plan.commit));
        Work {
            files: dir.join("files"),
            mark: dir.join("plan"),
            dir,
        }
    }

    fn journal(&self, at: usize) -> PathBuf {
        self.dir.join(format!("{at}.journal"))
    }

    fn is_of(&self, plan: &HeadPlan) -> bool {
        std::fs::read_to_string(&self.mark).is_ok_and(|mark| mark == fingerprint(plan))
    }
}

/// Tells plans apart: other files, hashes, ranges or names make another one.
fn fingerprint(plan: &HeadPlan) -> String {
    hex(Sha256::digest(format!("{} {:?}", plan.repo, plan.outputs)))
}

/// Bytes that are there, as far as they are vouched for.
pub(super) fn present(plan: &HeadPlan) -> u64 {
    if is_whole(plan) {
        return plan.total();
    }
    let work = Work::of(plan);
    if !work.is_of(plan) {
        return 0;
    }
    let noted = plan.outputs.iter().enumerate().map(|(at, output)| {
        let file = std::fs::metadata(work.files.join(&output.path)).map_or(0, |found| found.len());
        journal::noted(&work.journal(at)).min(file)
    });
    noted.sum()
}

/// Whether the head is in its place.
fn is_whole(plan: &HeadPlan) -> bool {
    let dir = plan.dir();
    let is_there = |output: &Output| std::fs::metadata(dir.join(&output.path)).is_ok_and(|f| f.len() == output.len());
    dir.join(record::NAME).is_file() && plan.outputs.iter().all(is_there)
}

pub(super) async fn fetch<S: Source>(
    source: &S,
    plan: &HeadPlan,
    progress: &(dyn Fn(u64) + Send + Sync),
    cancel: &CancelToken,
) -> Result<PathBuf, HubError> {
    let (dir, work) = (plan.dir(), Work::of(plan));
    if is_whole(plan) {
        return Ok(dir);
    }
    let lock = plan.repo_dir().join(format!(".{}.lock", plan.commit));
    let held = lock::acquire(&lock, cancel, || source.waiting(WaitReason::OtherProcess)).await?;
    // Another window may have been at it.
    if !is_whole(plan) {
        begin(plan, &work)?;
        fill(source, plan, &work, progress, cancel).await.map_err(|e| match e {
            HubError::Cancelled { .. } => HubError::Cancelled { kept: present(plan) },
            e => e,
        })?;
        put_in_place(&work, &dir)?;
    }
    // Still held: who waits for it sees that it is gone. Left behind it is an empty file.
    let _ = std::fs::remove_file(&lock);
    drop(held);
    Ok(dir)
}

/// Makes the folder, and clears away what is of no use: of another plan, or in the place and not whole.
fn begin(plan: &HeadPlan, work: &Work) -> Result<(), HubError> {
    remove(&plan.dir())?;
    if !work.is_of(plan) {
        remove(&work.dir)?;
    }
    for output in &plan.outputs {
        let folder = work.files.join(&output.path);
        let folder = folder.parent().unwrap_or(&work.files);
        std::fs::create_dir_all(folder).map_err(|e| io_error(folder, &e))?;
    }
    std::fs::write(&work.mark, fingerprint(plan)).map_err(|e| io_error(&work.mark, &e))
}

async fn fill<S: Source>(
    source: &S,
    plan: &HeadPlan,
    work: &Work,
    progress: &(dyn Fn(u64) + Send + Sync),
    cancel: &CancelToken,
) -> Result<(), HubError> {
    let (mut before, mut written) = (0, Vec::new());
    for (at, output) in plan.outputs.iter().enumerate() {
        let path = work.files.join(&output.path);
        let mut part = reopen(output, path.clone(), work.journal(at)).await?;
        progress(before + part.len());
        let told = |there: u64| progress(before + there);
        let fetched = complete(source, output, &mut part, &path, &told, cancel).await;
        if let Err(e) = fetched {
            // The failure is the one to tell; without the note these bytes are fetched again.
            let _ = part.note();
            return Err(e);
        }
        // The disk may take its time.
        let finished = tokio::task::spawn_blocking(move || part.finish()).await;
        let (sha256, hub) = finished.map_err(|_| HubError::Task)?.map_err(|e| io_error(&path, &e))?;
        if let Err(e) = check(output, &path, hub.as_deref()) {
            remove_file(&path)?;
            remove_file(&work.journal(at))?;
            return Err(e);
        }
        before += output.len();
        written.push((output, sha256, hub.is_some()));
    }
    let text = record::text(plan, &written);
    let path = work.files.join(record::NAME);
    std::fs::write(&path, text).map_err(|e| io_error(&path, &e))
}

/// What is there is hashed, which takes a while for a large file.
async fn reopen(output: &Output, path: PathBuf, journal: PathBuf) -> Result<Part, HubError> {
    let (etag, len) = (output.etag.clone(), output.len());
    let opening = tokio::task::spawn_blocking(move || {
        let hasher = etag.and_then(|etag| Hasher::for_etag(&etag, len));
        let part = Part::open(&path, &journal, hasher.clone()).map_err(|e| io_error(&path, &e))?;
        if part.len() <= len {
            return Ok(part);
        }
        // Longer than it can be: begun anew.
        remove_file(&path)?;
        remove_file(&journal)?;
        Part::open(&path, &journal, hasher).map_err(|e| io_error(&path, &e))
    });
    opening.await.map_err(|_| HubError::Task)?
}

/// Appends what is missing.
async fn complete<S: Source>(
    source: &S,
    output: &Output,
    part: &mut Part,
    path: &Path,
    progress: &(dyn Fn(u64) + Send + Sync),
    cancel: &CancelToken,
) -> Result<(), HubError> {
    let own = output.prefix.len() as u64;
    if part.len() < own {
        let rest = &output.prefix[part.len() as usize..];
        part.write(rest).map_err(|e| io_error(path, &e))?;
    }
    let mut begin = own;
    for piece in &output.pieces {
        let end = begin + (piece.bytes.end - piece.bytes.start);
        let missing = piece.bytes.start + part.len().saturating_sub(begin);
        if missing < piece.bytes.end {
            if cancel.is_cancelled() {
                return Err(HubError::Cancelled { kept: 0 });
            }
            let mut sink = |bytes: &[u8]| {
                if part.len() + bytes.len() as u64 > end {
                    return Err(wrong_length(
                        piece.file.path.clone(),
                        end - begin,
                        part.len() + bytes.len() as u64 - begin,
                    ));
                }
                part.write(bytes).map_err(|e| io_error(path, &e))?;
                progress(part.len());
                Ok(())
            };
            source.read(&piece.file, missing..piece.bytes.end, &mut sink).await?;
            if part.len() != end {
                return Err(wrong_length(piece.file.path.clone(), end - begin, part.len() - begin));
            }
        }
        begin = end;
    }
    Ok(())
}

fn wrong_length(file: String, expected: u64, found: u64) -> HubError {
    HubError::LengthMismatch { file, expected, found }
}

/// What can be checked: the hub's hash of a whole file; of one put together, its length and its own header.
fn check(output: &Output, path: &Path, hub: Option<&str>) -> Result<(), HubError> {
    if let (Some(expected), Some(found)) = (&output.etag, hub)
        && expected != found
    {
        return Err(HubError::HashMismatch {
            file: output.path.clone(),
            expected: expected.clone(),
            found: found.to_owned(),
        });
    }
    let found = std::fs::metadata(path).map_err(|e| io_error(path, &e))?.len();
    if found != output.len() {
        return Err(wrong_length(output.path.clone(), output.len(), found));
    }
    Ok(())
}

fn put_in_place(work: &Work, dir: &Path) -> Result<(), HubError> {
    std::fs::rename(&work.files, dir).map_err(|e| io_error(dir, &e))?;
    // What is left is empty or of no use, and cleared away by the next one too.
    let _ = std::fs::remove_dir_all(&work.dir);
    Ok(())
}

fn remove(dir: &Path) -> Result<(), HubError> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io_error(dir, &e)),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> Result<(), HubError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io_error(path, &e)),
        _ => Ok(()),
    }
}
