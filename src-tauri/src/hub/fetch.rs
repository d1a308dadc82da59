//! One file: resumed, retried, checked.

use std::time::{Duration, Instant};

use reqwest::Method;
use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE};

use super::cache::{Note, RepoCache};
use super::headers::{self, ContentRange, Metadata};
use super::http::{Answer, Failure, Question, cause};
use super::part::{Part, unverifiable};
use super::progress::FileReport;
use super::retry::{Miss, Patience};
use super::{CancelToken, FileState, Hub, HubError, PartFile, RemoteFile, RepoId, WaitReason, lock};

/// How often a file is fetched whose bytes turn out wrong.
const CONTENT_TRIES: u32 = 2;

/// A file to be fetched.
pub(super) struct Job<'a> {
    pub(super) repo: &'a RepoId,
    pub(super) commit: &'a str,
    pub(super) file: &'a RemoteFile,
    pub(super) report: FileReport<'a>,
}

/// How an attempt at the bytes ended.
enum Ended {
    /// All are there.
    Whole,
    /// Some may be there; the rest may come another time.
    Missed(Miss),
    /// The range was not answered as it should: without one it may go.
    NoRanges(HubError),
    /// What is there is worthless.
    Wrong(HubError),
}

impl Hub {
    /// Fetches one file, unless it is there.
    pub(super) async fn fetch(&self, job: &Job<'_>, cancel: &CancelToken) -> Result<(), HubError> {
        if cancel.is_cancelled() {
            return Err(HubError::Cancelled { kept: 0 });
        }
        let cache = RepoCache::new(&self.config().cache_dir, job.repo);
        let path = &job.file.path;
        let (etag, size) = match (job.file.etag(), job.file.size) {
            (Some(etag), Some(size)) => (etag.to_owned(), size),
            _ => return Err(unverifiable(path)),
        };
        if !cache.is_whole(job.commit, path, &etag, size) {
            let lock = lock::acquire(&cache.lock(&etag), cancel, || {
                job.report.state(FileState::Waiting {
                    reason: WaitReason::OtherProcess,
                });
                // The other one's progress is this one's too.
                if let Ok(meta) = std::fs::metadata(cache.part(&etag)) {
                    job.report.found(meta.len().min(size));
                }
            })
            .await?;
            // Who held the lock may have finished it.
            if !cache.is_whole(job.commit, path, &etag, size) {
                cache.discard_outdated(path, &etag);
                let note = Note {
                    commit: job.commit.to_owned(),
                    etag: etag.clone(),
                    size,
                    path: path.clone(),
                };
                self.complete(job, &cache, &note, lock, cancel).await?;
            }
        }
        let (commit, name) = (job.commit.to_owned(), path.clone());
        // The disk may take its time.
        let linked = tokio::task::spawn_blocking(move || cache.link(&commit, &name, &etag)).await;
        linked.map_err(|_| HubError::Task)??;
        job.report.found(size);
        job.report.state(FileState::Done);
        Ok(())
    }

    async fn complete(
        &self,
        job: &Job<'_>,
        cache: &RepoCache,
        note: &Note,
        lock: lock::FileLock,
        cancel: &CancelToken,
    ) -> Result<(), HubError> {
        let mut tries = 1;
        let mut patience = Patience::default();
        loop {
            job.report.state(FileState::Verifying);
            let part = Part::open(cache.clone(), note.clone(), lock.clone(), cancel.clone()).await?;
            job.report.found(part.have());
            job.report.state(FileState::Fetching);
            let wrong = match self.receive(job, note, part, &mut patience, cancel).await? {
                Ok(part) => {
                    job.report.state(FileState::Verifying);
                    let finished = tokio::select! {
                        // It goes on to its end without us.
                        () = cancel.cancelled() => return Err(HubError::Cancelled { kept: 0 }),
                        finished = part.finish() => finished,
                    };
                    match finished {
                        Ok(()) => return Ok(()),
                        Err(e @ (HubError::HashMismatch { .. } | HubError::LengthMismatch { .. })) => e,
                        Err(other) => return Err(other),
                    }
                }
                Err(wrong) => wrong,
            };
            cache.discard(&note.etag);
            job.report.found(0);
            if tries >= CONTENT_TRIES {
                return Err(wrong);
            }
            tries += 1;
        }
    }

    /// Receives bytes until all are there. The inner error says that what came is worthless and was thrown away.
    async fn receive(
        &self,
        job: &Job<'_>,
        note: &Note,
        mut part: Part,
        patience: &mut Patience,
        cancel: &CancelToken,
    ) -> Result<Result<Part, HubError>, HubError> {
        let mut ranges = true;
        while part.have() < note.size {
            if !ranges && part.have() > 0 {
                part.restart()?;
                job.report.found(0);
            }
            let before = part.have();
            let (back, ended) = self.attempt(job, note, part, cancel).await?;
            part = back;
            patience.moved(part.have().saturating_sub(before));
            job.report.found(part.have());
            let miss = match ended {
                Ended::Whole => continue,
                Ended::Wrong(error) => return Ok(Err(error)),
                Ended::NoRanges(error) => {
                    ranges = false;
                    // Asked otherwise at once; only the count goes on.
                    let wait = Some(Duration::ZERO);
                    Miss {
                        error,
                        wait,
                        gone: None,
                    }
                }
                Ended::Missed(miss) => miss,
            };
            let reason = WaitReason::of(&miss);
            let pause = patience.missed(self.config(), miss)?;
            job.report.state(FileState::Waiting { reason });
            tokio::select! {
                () = cancel.cancelled() => return Err(HubError::Cancelled { kept: 0 }),
                () = tokio::time::sleep(pause) => {}
            }
            job.report.state(FileState::Fetching);
        }
        Ok(Ok(part))
    }

    /// One request and its bytes.
    async fn attempt(
        &self,
        job: &Job<'_>,
        note: &Note,
        mut part: Part,
        cancel: &CancelToken,
    ) -> Result<(Part, Ended), HubError> {
        let have = part.have();
        let question = Question {
            method: Method::GET,
            url: self.http().resolve_url(job.repo, job.commit, &note.path)?,
            repo: job.repo,
            what: &note.path,
            range: (have > 0).then(|| format!("bytes={have}-")),
        };
        let answer = match self.http().ask(self.config(), cancel, &question).await {
            Ok(answer) => answer,
            Err(Failure::Fatal(error) | Failure::Refused(error)) => return Err(error),
            Err(Failure::Miss(miss)) => return Ok((part, Ended::Missed(miss))),
            Err(Failure::Unsatisfiable(Some(total))) if total != note.size => {
                return Ok((part, Ended::Wrong(wrong_length(note, total))));
            }
            Err(Failure::Unsatisfiable(_)) => {
                return Ok((part, Ended::NoRanges(no_ranges(note, "it refuses the range"))));
            }
        };
        unchanged(&answer.metadata, &note.path, &note.etag, &note.commit)?;
        let packed = match headers::text(answer.response.headers(), CONTENT_ENCODING.as_str()) {
            None | Some("identity" | "") => false,
            Some("gzip" | "x-gzip") => true,
            Some(other) => {
                let error = HubError::Answer {
                    what: note.path.clone(),
                    message: format!("it is packed as `{other}`, though it was asked for unpacked"),
                };
                return Ok((part, missed(error)));
            }
        };
        if answer.response.status() == reqwest::StatusCode::PARTIAL_CONTENT {
            let range = headers::text(answer.response.headers(), CONTENT_RANGE.as_str());
            match range.and_then(headers::content_range) {
                Some(ContentRange { total: Some(total), .. }) if total != note.size => {
                    return Ok((part, Ended::Wrong(wrong_length(note, total))));
                }
                // Packed bytes cannot be put behind unpacked ones.
                Some(range) if range.first == have && have > 0 && !packed => {}
                _ => {
                    return Ok((
                        part,
                        Ended::NoRanges(no_ranges(note, "it sends another range than asked for")),
                    ));
                }
            }
        } else {
            if have > 0 {
                part.restart()?;
                job.report.found(0);
            }
            let length = headers::content_length(answer.response.headers());
            if let Some(length) = length.filter(|length| !packed && *length != note.size) {
                return Ok((part, Ended::Wrong(wrong_length(note, length))));
            }
        }
        self.pump(job, note, part, answer, packed, cancel).await
    }

    /// Hands bytes from the network to the disk.
    async fn pump(
        &self,
        job: &Job<'_>,
        note: &Note,
        part: Part,
        mut answer: Answer,
        packed: bool,
        cancel: &CancelToken,
    ) -> Result<(Part, Ended), HubError> {
        let mut left = note.size - part.have();
        let (sender, thread) = part.writer(packed);
        let mut floor = Floor::new(self.config().floor, self.config().floor_window);
        let host = answer.host.clone();
        let stalled = || HubError::Stalled {
            host: host.clone(),
            what: note.path.clone(),
        };
        let mut ended = loop {
            let chunk = tokio::select! {
                biased;
                () = cancel.cancelled() => break None,
                chunk = tokio::time::timeout(self.config().stall, answer.response.chunk()) => chunk,
            };
            let chunk = match chunk {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break Some(Ended::Whole),
                Ok(Err(error)) if error.is_timeout() => break Some(missed(stalled())),
                Ok(Err(error)) => {
                    break Some(missed(HubError::Network {
                        host: host.clone(),
                        what: note.path.clone(),
                        message: cause(&error),
                    }));
                }
                Err(_elapsed) => break Some(missed(stalled())),
            };
            let length = chunk.len() as u64;
            if !packed && length > left {
                break Some(Ended::Wrong(wrong_length(note, note.size + length - left)));
            }
            left = left.saturating_sub(length);
            job.report.add(length);
            let blocked = Instant::now();
            let sent = tokio::select! {
                biased;
                () = cancel.cancelled() => break None,
                sent = sender.send(chunk) => sent,
            };
            if sent.is_err() {
                // The writer ended: its own result says why.
                break Some(Ended::Whole);
            }
            if floor.is_too_slow(length, blocked.elapsed(), Instant::now()) {
                break Some(missed(stalled()));
            }
        };
        drop(sender);
        let written = thread.await.map_err(|_| HubError::Task)?;
        let (mut part, refused) = written.apart();
        match refused {
            None => {}
            Some(error @ HubError::Answer { .. }) if ended.is_some() => {
                // Unpacking cannot go on in the middle.
                part.restart()?;
                return Ok((part, missed(error)));
            }
            Some(HubError::Answer { .. }) => part.restart()?,
            Some(error) => return Err(error),
        }
        if matches!(ended, Some(Ended::Whole)) && part.have() < note.size {
            ended = Some(missed(HubError::Network {
                host,
                what: note.path.clone(),
                message: format!("the connection ended at byte {} of {}", part.have(), note.size),
            }));
        }
        match ended {
            Some(ended) => Ok((part, ended)),
            None => Err(HubError::Cancelled { kept: 0 }),
        }
    }

    /// Asks for a file's size and hash, where the listing does not tell.
    pub(super) async fn head(&self, file: &PartFile, cancel: &CancelToken) -> Result<Metadata, HubError> {
        let mut patience = Patience::default();
        let config = self.impatient().clone();
        loop {
            let question = Question {
                method: Method::HEAD,
                url: self.http().resolve_url(&file.repo, &file.commit, &file.path)?,
                repo: &file.repo,
                what: &file.path,
                range: None,
            };
            let miss = match self.http().ask(&config, cancel, &question).await {
                Ok(answer) => return Ok(answer.metadata),
                Err(Failure::Fatal(error) | Failure::Refused(error)) => return Err(error),
                Err(Failure::Unsatisfiable(_)) => return Err(HubError::Task),
                Err(Failure::Miss(miss)) => miss,
            };
            let pause = patience.missed(&config, miss)?;
            tokio::select! {
                () = cancel.cancelled() => return Err(HubError::Cancelled { kept: 0 }),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

/// Refuses an answer about another content than the one that was planned. The same content in another commit is fine.
pub(super) fn unchanged(told: &Metadata, path: &str, etag: &str, commit: &str) -> Result<(), HubError> {
    let checkable = |etag: &&String| super::verify::Hasher::for_etag(etag, 0).is_some();
    let same = match told.etag.as_ref().filter(checkable) {
        Some(told) => told == etag,
        None => told.commit.as_ref().is_none_or(|told| told == commit),
    };
    if same {
        return Ok(());
    }
    Err(HubError::Changed { file: path.to_owned() })
}

fn missed(error: HubError) -> Ended {
    Ended::Missed(Miss {
        error,
        wait: None,
        gone: None,
    })
}

fn wrong_length(note: &Note, found: u64) -> HubError {
    HubError::LengthMismatch {
        file: note.path.clone(),
        expected: note.size,
        found,
    }
}

fn no_ranges(note: &Note, message: &str) -> HubError {
    HubError::Range {
        file: note.path.clone(),
        message: message.to_owned(),
    }
}

impl WaitReason {
    pub(super) fn of(miss: &Miss) -> Self {
        match (&miss.error, miss.wait) {
            (_, Some(wait)) if !wait.is_zero() => WaitReason::RateLimit {
                seconds: wait.as_secs_f64().ceil() as u64,
            },
            (HubError::Network { .. } | HubError::Stalled { .. }, _) => WaitReason::Network,
            _ => WaitReason::Server,
        }
    }
}

/// Notices a connection that trickles. What the disk holds up does not count.
pub(super) struct Floor {
    rate: u64,
    window: Duration,
    since: Instant,
    bytes: u64,
}

impl Floor {
    pub(super) fn new(rate: u64, window: Duration) -> Self {
        Floor {
            rate,
            window,
            since: Instant::now(),
            bytes: 0,
        }
    }

    pub(super) fn is_too_slow(&mut self, bytes: u64, blocked: Duration, now: Instant) -> bool {
        self.bytes += bytes;
        self.since += blocked;
        let passed = now.saturating_duration_since(self.since);
        if passed < self.window {
            return false;
        }
        let slow = (self.bytes as f64) < self.rate as f64 * passed.as_secs_f64();
        self.since = now;
        self.bytes = 0;
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_content_counts_as_changed() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let told = |etag: Option<&str>, commit: Option<&str>| Metadata {
            etag: etag.map(str::to_owned),
            commit: commit.map(str::to_owned),
            size: None,
        };
        let same = |told: &Metadata| unchanged(told, "f", &a, "c0").is_ok();
        assert!(same(&told(Some(&a), Some("c1"))));
        assert!(!same(&told(Some(&b), Some("c0"))));
        assert!(same(&told(None, Some("c0"))) && !same(&told(None, Some("c1"))));
        assert!(same(&told(Some("no-hash"), Some("c0"))) && same(&told(None, None)));
    }

    #[test]
    fn a_trickle_is_noticed_but_not_a_slow_disk() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let floor = || Floor {
            rate: 100,
            window: 10 * second,
            since: start,
            bytes: 0,
        };
        let zero = Duration::ZERO;
        let mut slow = floor();
        assert!(!slow.is_too_slow(500, zero, start + 9 * second));
        assert!(slow.is_too_slow(100, zero, start + 10 * second));
        let mut steady = floor();
        assert!(!steady.is_too_slow(1000, zero, start + 10 * second));
        assert!(!steady.is_too_slow(1000, zero, start + 20 * second));
        assert!(steady.is_too_slow(999, zero, start + 30 * second));
        assert!(!floor().is_too_slow(100, 9 * second, start + 10 * second));
    }
}
