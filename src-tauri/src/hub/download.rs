//! Plans and whole downloads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::Semaphore;

use super::cache::RepoCache;
use super::fetch::Job;
use super::progress::Tracker;
use super::{
    CancelToken, FetchedPart, FileProgress, FileState, Hub, HubError, Listing, PartRequest, Plan, PlanFile, PlanPart,
    Presence, Progress, head, select,
};

/// How often bytes are told.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// How the head's tensors are called among the files.
const HEAD_NAME: &str = "MTP tensors";

impl Hub {
    pub(super) async fn make_plan(&self, requests: &[PartRequest], cancel: &CancelToken) -> Result<Plan, HubError> {
        let mut parts = Vec::new();
        for request in requests {
            let listing = self.list(&request.repo, request.revision.as_deref(), cancel).await?;
            parts.push(self.make_part(request, listing, cancel).await?);
        }
        Ok(Plan {
            parts,
            disk_free: match requests.iter().all(|request| request.head_only) {
                true => (self.config().disk_free)(&head::heads_dir(&self.config().home)),
                false => (self.config().disk_free)(&self.config().cache_dir),
            },
        })
    }

    async fn make_part(
        &self,
        request: &PartRequest,
        listing: Listing,
        cancel: &CancelToken,
    ) -> Result<PlanPart, HubError> {
        let (mut files, mut plan) = (Vec::new(), None);
        if request.head_only {
            plan = Some(head::plan_head(self, &listing, cancel).await?);
        } else {
            let cache = RepoCache::new(&self.config().cache_dir, &listing.repo);
            for chosen in select::select(&listing.files, &request.include, &request.exclude)? {
                let mut file = chosen.clone();
                if !listing.offline && (file.size.is_none() || file.etag().is_none()) {
                    let told = self.head(&listing.part_file(&file), cancel).await?;
                    file.size = file.size.or(told.size);
                    match told.etag {
                        Some(etag) if etag.len() == 64 => file.sha256 = Some(etag),
                        etag => file.git_oid = file.git_oid.or(etag),
                    }
                }
                let presence = match listing.offline {
                    true => Presence::Whole,
                    false => cache.presence(&listing.commit, &file),
                };
                files.push(PlanFile { file, presence });
            }
        }
        Ok(PlanPart {
            repo: listing.repo,
            revision: request.branch.clone().unwrap_or(listing.revision),
            commit: listing.commit,
            gated: listing.gated,
            license: listing.license,
            files,
            head: plan,
        })
    }

    pub(super) async fn run_plan(
        &self,
        plan: &Plan,
        progress: &(dyn Fn(Progress) + Send + Sync),
        cancel: &CancelToken,
    ) -> Result<Vec<FetchedPart>, HubError> {
        let tracker = Tracker::new(plan.parts.iter().flat_map(|part| self.queue(part)).collect());
        // Also stops what runs when this call is dropped; it is not the person's own stop.
        let stop = cancel.child_token();
        let _stopped_when_dropped = stop.clone().drop_guard();
        let work = async {
            if !self.config().offline {
                self.check_room(plan)?;
            }
            self.fetch_all(plan, &tracker, &stop).await
        };
        let result = tokio::select! {
            result = work => result,
            () = tell(&tracker, progress) => Err(HubError::Task),
        };
        progress(tracker.progress());
        result.map_err(|error| match error {
            HubError::Cancelled { .. } => HubError::Cancelled { kept: self.kept(plan) },
            other => other,
        })
    }

    async fn fetch_all(
        &self,
        plan: &Plan,
        tracker: &Tracker,
        stop: &CancelToken,
    ) -> Result<Vec<FetchedPart>, HubError> {
        let mut jobs = Vec::new();
        let mut heads = Vec::new();
        let mut index = 0;
        for part in &plan.parts {
            for planned in &part.files {
                jobs.push(Job {
                    repo: &part.repo,
                    commit: &part.commit,
                    file: &planned.file,
                    report: tracker.file(index),
                });
                index += 1;
            }
            heads.push(part.head.as_ref().map(|_| index));
            index += usize::from(part.head.is_some());
        }
        let limit = Semaphore::new(self.config().concurrency.max(1));
        // In place of a stream's own limit: that one's futures cannot be sent to another thread.
        let mut running: FuturesUnordered<_> = jobs.iter().map(|job| self.one(job, &limit, stop)).collect();
        // The first failure ends the others, which takes a moment: they put away what came.
        let mut failed = None;
        while let Some(result) = running.next().await {
            if let Err(error) = result {
                failed.get_or_insert(error);
                stop.cancel();
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let mut fetched = Vec::new();
        for (part, index) in plan.parts.iter().zip(heads) {
            let cache = RepoCache::new(&self.config().cache_dir, &part.repo);
            let mut dir = cache.snapshot(&part.commit);
            if let (Some(head), Some(index)) = (&part.head, index) {
                let report = tracker.file(index);
                report.state(FileState::Fetching);
                let last = AtomicU64::new(head.present());
                let is_waiting = AtomicBool::new(false);
                let tell = |done: u64| {
                    let before = last.swap(done, Ordering::Relaxed);
                    report.add(done.saturating_sub(before));
                    report.found(done);
                    if is_waiting.swap(false, Ordering::Relaxed) {
                        report.state(FileState::Fetching);
                    }
                };
                // It waits until bytes come again, not until they are asked for again.
                let wait = |reason| {
                    is_waiting.store(true, Ordering::Relaxed);
                    report.state(FileState::Waiting { reason });
                };
                dir = head::fetch_head(self, head, &tell, &wait, stop).await?;
                report.found(head.total());
                report.state(FileState::Done);
            } else if !self.config().offline {
                // Only now: a branch in the cache must not lead to less than was asked for.
                cache.write_ref(&part.revision, &part.commit)?;
            }
            fetched.push(FetchedPart {
                repo: part.repo.clone(),
                commit: part.commit.clone(),
                dir,
                files: part.files.iter().map(|planned| planned.file.path.clone()).collect(),
            });
        }
        Ok(fetched)
    }

    async fn one(&self, job: &Job<'_>, limit: &Semaphore, stop: &CancelToken) -> Result<(), HubError> {
        let _turn = limit.acquire().await.map_err(|_| HubError::Task)?;
        match self.config().offline {
            true => self.there(job),
            false => self.fetch(job, stop).await,
        }
    }

    /// Offline: a file is in its snapshot or it is missing.
    fn there(&self, job: &Job<'_>) -> Result<(), HubError> {
        let cache = RepoCache::new(&self.config().cache_dir, job.repo);
        if !cache.pointer(job.commit, &job.file.path)?.exists() {
            return Err(HubError::Offline {
                what: format!("{}/{}", job.repo, job.file.path),
            });
        }
        job.report.found(job.file.size.unwrap_or(0));
        job.report.state(FileState::Done);
        Ok(())
    }

    /// Whether each disk has room for what goes there: heads lie in the home, which may be another one than the cache's.
    fn check_room(&self, plan: &Plan) -> Result<(), HubError> {
        let config = self.config();
        let heads = plan.parts.iter().filter_map(|part| part.head.as_ref());
        let heads: u64 = heads.map(|head| head.total().saturating_sub(head.present())).sum();
        let all = plan.total().saturating_sub(self.present(plan));
        let is_one_disk = config.cache_dir.starts_with(&config.home);
        let files = if is_one_disk { all } else { all.saturating_sub(heads) };
        for (dir, needed) in [
            (config.cache_dir.clone(), files),
            (head::heads_dir(&config.home), heads),
        ] {
            match (config.disk_free)(&dir) {
                Some(free) if free < needed => {
                    return Err(HubError::DiskFull {
                        dir,
                        needed,
                        free: Some(free),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Bytes of a plan that are there now.
    fn present(&self, plan: &Plan) -> u64 {
        self.count(plan, |presence, size| match presence {
            Presence::Whole => size,
            Presence::Partial(bytes) => bytes,
            Presence::Absent => 0,
        })
    }

    /// Bytes of unfinished files that stay.
    fn kept(&self, plan: &Plan) -> u64 {
        self.count(plan, |presence, _size| match presence {
            Presence::Partial(bytes) => bytes,
            Presence::Whole | Presence::Absent => 0,
        })
    }

    fn count(&self, plan: &Plan, bytes: impl Fn(Presence, u64) -> u64) -> u64 {
        let mut sum = 0;
        for part in &plan.parts {
            let cache = RepoCache::new(&self.config().cache_dir, &part.repo);
            for planned in &part.files {
                let presence = cache.presence(&part.commit, &planned.file);
                sum += bytes(presence, planned.file.size.unwrap_or(0));
            }
            sum += part.head.as_ref().map_or(0, head::HeadPlan::present);
        }
        sum
    }

    /// The files of a part as they are now, which may be further than when they were planned.
    fn queue(&self, part: &PlanPart) -> Vec<FileProgress> {
        let cache = RepoCache::new(&self.config().cache_dir, &part.repo);
        let file = |path: &str, done, total| FileProgress {
            repo: part.repo.clone(),
            path: path.to_owned(),
            done,
            total,
            state: FileState::Queued,
        };
        let files = part.files.iter().map(|planned| {
            let presence = cache.presence(&part.commit, &planned.file);
            let now = PlanFile {
                presence,
                ..planned.clone()
            };
            file(&now.file.path, now.present(), now.file.size.unwrap_or(0))
        });
        let head = part
            .head
            .as_ref()
            .map(|head| file(HEAD_NAME, head.present(), head.total()));
        files.chain(head).collect()
    }

    /// What the cache holds of a revision.
    pub(super) fn list_offline(&self, repo: &super::RepoId, revision: &str) -> Result<Listing, HubError> {
        let cache = RepoCache::new(&self.config().cache_dir, repo);
        let commit = cache
            .commit_of(revision)
            .filter(|commit| cache.snapshot(commit).is_dir());
        let Some(commit) = commit else {
            let what = match revision {
                "main" => repo.to_string(),
                _ => format!("{repo} at {revision}"),
            };
            return Err(HubError::Offline { what });
        };
        Ok(Listing {
            repo: repo.clone(),
            revision: revision.to_owned(),
            files: cache.snapshot_files(&commit),
            commit,
            gated: false,
            private: false,
            license: None,
            offline: true,
        })
    }
}

/// Tells how far it is, at every change of state and now and then between. Never ends by itself.
async fn tell(tracker: &Tracker, progress: &(dyn Fn(Progress) + Send + Sync)) {
    let mut ticks = tokio::time::interval(TELL_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = tracker.changed.notified() => {}
        }
        progress(tracker.progress());
    }
}
