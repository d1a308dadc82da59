//! Downloads that were asked for. They live here and not in the window: a window that is reloaded finds them as they are.

mod job;
mod view;
mod wanted;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::error::Error;
use crate::hub::{CancelToken, Hub, HubError, Plan};
use crate::ipc::{AppError, Cancelled, Download, DownloadPhase, DownloadPlan, FoundRepo, Wanted};
use crate::library::Library;
use crate::offers;
use crate::store::Store;
use crate::turn::Turns;

use job::Job;
use wanted::{pinned, repo_name, requests, same, same_revisions};

/// Plans that were shown and may be started. More are not kept.
const MOST_PLANS: usize = 16;
/// How far a download is, is kept this often for the next start's list.
const SAVE: Duration = Duration::from_secs(2);
/// A network that is gone is looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Repositories that a search shows.
const MOST_FOUND: usize = 30;

/// All downloads of the app; clones share them.
#[derive(Clone)]
pub struct Downloads {
    inner: Arc<Inner>,
}

struct Inner {
    hub: Hub,
    store: Store,
    library: Library,
    turns: Turns,
    jobs: Mutex<Vec<Job>>,
    plans: Mutex<HashMap<String, (Wanted, Plan)>>,
    /// Ends the plan that is being made to be shown.
    planning: Mutex<CancelToken>,
    ids: AtomicU64,
    changed: watch::Sender<()>,
    /// Held while the list is written: an older one must not overwrite a newer.
    saving: tokio::sync::Mutex<()>,
}

impl Downloads {
    /// Those of earlier runs of the app; none is started.
    pub async fn open(hub: Hub, store: Store, library: Library, turns: Turns) -> Result<Self, AppError> {
        let earlier = store.downloads().await?;
        let jobs = earlier.into_iter().map(Job::earlier).collect();
        Ok(Downloads {
            inner: Arc::new(Inner {
                hub,
                store,
                library,
                turns,
                jobs: Mutex::new(jobs),
                plans: Mutex::default(),
                planning: Mutex::default(),
                // Ids of earlier runs are on the list: these must not meet them.
                ids: AtomicU64::new(first_id()),
                changed: watch::Sender::new(()),
                saving: tokio::sync::Mutex::default(),
            }),
        })
    }

    /// The hub they come from.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    /// What would be fetched. Nothing is. The plan before it that is not made yet is not waited for any more.
    pub async fn plan(&self, wanted: Wanted) -> Result<DownloadPlan, AppError> {
        let requests = requests(&wanted)?;
        let cancel = self.next_plan();
        let plan = self.inner.hub.plan(&requests, &cancel).await?;
        let wanted = pinned(wanted, &plan);
        let id = self.new_id();
        let limit = self.inner.store.settings().await?.memory_limit();
        let memory = offers::memory_of_plan(&wanted, plan.total() as f64, limit);
        let shown = view::plan(&id, &wanted, &plan, memory);
        let mut plans = self.inner.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(id, (wanted, plan));
        Ok(shown)
    }

    /// Nobody looks at the plan any more that is being made: it ends at once.
    pub fn cancel_plan(&self) {
        self.next_plan();
    }

    fn next_plan(&self) -> CancelToken {
        let next = CancelToken::new();
        let mut planning = self.inner.planning.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *planning, next.clone()).cancel();
        next
    }

    /// Starts a download, or goes on with one of the same things; one that is asked for at another revision begins with
    /// that. A plan that was shown is used as it was shown.
    pub async fn start(&self, wanted: Wanted, plan: Option<&str>, then_chat: bool) -> Result<String, AppError> {
        requests(&wanted)?;
        let known = {
            let plans = self.inner.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plan.and_then(|id| plans.get(id).cloned())
        };
        let (wanted, plan) = match known {
            Some((wanted, plan)) => (wanted, Some(plan)),
            None => (wanted, None),
        };
        let id = {
            let mut jobs = self.jobs();
            match jobs.iter_mut().find(|job| same(&job.shown.wanted, &wanted)) {
                Some(job) => {
                    // While it runs, who asks once more takes nothing back; afterwards it is as it is asked for.
                    let is_running = job.is_running();
                    if job.is_over() || !same_revisions(&job.shown.wanted, &wanted) {
                        job.turn_to(wanted);
                    }
                    job.shown.then_chat = then_chat || (is_running && job.shown.then_chat);
                    job.shown.id.clone()
                }
                None => {
                    let id = self.new_id();
                    jobs.push(Job::new(&id, wanted, then_chat));
                    id
                }
            }
        };
        self.go(&id, plan)?;
        Ok(id)
    }

    /// Stops it; what there is is kept, and it goes on when it is resumed.
    pub async fn pause(&self, id: &str) -> Result<(), AppError> {
        self.end(id, DownloadPhase::Paused)?;
        self.save().await
    }

    /// Goes on with one that was paused, interrupted or failed.
    pub async fn resume(&self, id: &str) -> Result<(), AppError> {
        self.go(id, None)?;
        self.save().await
    }

    /// Stops it and takes it off the list. What came is kept in the cache.
    pub async fn cancel(&self, id: &str) -> Result<Cancelled, AppError> {
        let kept = {
            let mut jobs = self.jobs();
            let at = jobs
                .iter()
                .position(|job| job.shown.id == id)
                .ok_or(Error::NoDownload)?;
            let job = jobs.remove(at);
            job.stop();
            match job.shown.state {
                DownloadPhase::Done { .. } => 0.0,
                _ => job.shown.done,
            }
        };
        self.tell();
        self.save().await?;
        Ok(Cancelled { kept })
    }

    /// All of them, the newest last.
    #[must_use]
    pub fn list(&self) -> Vec<Download> {
        self.jobs().iter().map(|job| job.shown.clone()).collect()
    }

    /// Tells `listener` all of them now and at each change, until it answers `false`.
    pub async fn watch(&self, mut listener: impl FnMut(Vec<Download>) -> bool) {
        let mut changed = self.inner.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if !listener(self.list()) || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Repositories that match a text; an address or a full name is the repository itself.
    pub async fn search(&self, query: &str) -> Result<Vec<FoundRepo>, AppError> {
        let hits = self.inner.hub.search(query, MOST_FOUND, &CancelToken::new()).await?;
        Ok(hits.into_iter().map(view::found).collect())
    }

    /// Whether a download writes into this repository now.
    #[must_use]
    pub fn is_writing(&self, repo: &str) -> bool {
        let writes =
            |job: &Job| job.is_running() && job.shown.wanted.parts.iter().any(|part| repo_name(&part.repo) == repo);
        self.jobs().iter().any(writes)
    }

    /// Stops all of them; each goes on from there when the app is started again and the person says so.
    pub async fn close(&self) {
        self.cancel_plan();
        let running: Vec<String> = self
            .jobs()
            .iter()
            .filter(|job| job.is_running())
            .map(|job| job.shown.id.clone())
            .collect();
        for id in &running {
            // It may have ended by itself meanwhile.
            let _ = self.end(id, DownloadPhase::Interrupted);
        }
        if !running.is_empty() {
            let _ = self.save().await;
        }
    }

    /// Runs it in the background, unless it runs.
    fn go(&self, id: &str, plan: Option<Plan>) -> Result<(), AppError> {
        let cancel = {
            let mut jobs = self.jobs();
            let job = jobs
                .iter_mut()
                .find(|job| job.shown.id == id)
                .ok_or(Error::NoDownload)?;
            if job.is_running() {
                return Ok(());
            }
            job.begin()
        };
        self.tell();
        let (downloads, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move { downloads.run(&id, plan, &cancel).await });
        Ok(())
    }

    async fn run(&self, id: &str, plan: Option<Plan>, cancel: &CancelToken) {
        let ended = match self.fetch(id, plan, cancel).await {
            Ok(phase) => phase,
            Err(error) => DownloadPhase::Failed { error },
        };
        let model = match &ended {
            DownloadPhase::Done { model, .. } => model.clone(),
            _ => None,
        };
        // Paused, cancelled or begun anew: that is what it is then, whatever the hub says of this run.
        let finished = self.change(id, |job| {
            (!cancel.is_cancelled()).then(|| {
                job.finish(ended);
                job.shown.then_chat
            })
        });
        let Some(Some(then_chat)) = finished else { return };
        // What cannot be written now is written with the next change.
        let _ = self.save().await;
        if let (true, Some(model)) = (then_chat, model)
            && !self.inner.turns.is_running()
        {
            // The model's own status tells a failure.
            let _ = self
                .inner
                .library
                .load(&model.path, model.drafter_path.as_deref())
                .await;
        }
    }

    async fn fetch(&self, id: &str, plan: Option<Plan>, cancel: &CancelToken) -> Result<DownloadPhase, AppError> {
        let Some(wanted) = self.change(id, |job| job.shown.wanted.clone()) else {
            return Err(Error::NoDownload.into());
        };
        self.save().await?;
        let plan = match plan {
            Some(plan) => plan,
            None => self.plan_of(id, &wanted, cancel).await?,
        };
        let wanted = pinned(wanted, &plan);
        // Paused while it was planned: then that is what it is.
        self.change(id, |job| {
            if !cancel.is_cancelled() {
                job.planned(&wanted, &plan);
            }
        });
        // Pinned on disk before the first byte: after a crash it goes on with the same commits.
        self.save().await?;
        let (downloads, of, stopped) = (self.clone(), id.to_owned(), cancel.clone());
        let follow = move |progress| {
            // A last word of a run that was stopped is none of the next one's.
            if !stopped.is_cancelled() && downloads.change_quietly(&of, |job| job.follow(&progress)) == Some(true) {
                downloads.tell();
            }
        };
        let download = self.inner.hub.download(&plan, &follow, cancel);
        tokio::pin!(download);
        let mut saving = tokio::time::interval(SAVE);
        let mut saved = None;
        let fetched = loop {
            tokio::select! {
                fetched = &mut download => break fetched?,
                _ = saving.tick() => {
                    let done = self.change_quietly(id, |job| job.shown.done);
                    if done != saved {
                        saved = done;
                        // Beside the download, which must not wait for the disk.
                        let downloads = self.clone();
                        tokio::spawn(async move { downloads.save().await });
                    }
                }
            }
        };
        let dirs: Vec<_> = fetched.iter().map(|part| part.dir.as_path()).collect();
        let then_chat = self.change_quietly(id, |job| job.shown.then_chat);
        view::outcome(&self.inner.library, &wanted, &dirs, then_chat == Some(true)).await
    }

    /// The plan of a download that runs. A network that is gone is waited for, as it is later on.
    async fn plan_of(&self, id: &str, wanted: &Wanted, cancel: &CancelToken) -> Result<Plan, AppError> {
        let (requests, config) = (requests(wanted)?, self.inner.hub.config());
        let begun = Instant::now();
        loop {
            let error = match self.inner.hub.plan(&requests, cancel).await {
                Err(error @ (HubError::Network { .. } | HubError::Stalled { .. }))
                    if begun.elapsed() < config.network_wait =>
                {
                    error
                }
                other => return Ok(other?),
            };
            self.change(id, |job| {
                if !cancel.is_cancelled() {
                    job.wait_for_network();
                }
            });
            tokio::select! {
                () = cancel.cancelled() => return Err(error.into()),
                () = tokio::time::sleep(config.backoff_max.min(LOOK_AGAIN)) => {}
            }
        }
    }

    fn end(&self, id: &str, phase: DownloadPhase) -> Result<(), AppError> {
        self.change(id, |job| {
            if job.is_running() {
                job.stop();
                job.finish(phase);
            }
        })
        .ok_or(Error::NoDownload)?;
        Ok(())
    }

    fn change<T>(&self, id: &str, change: impl FnOnce(&mut Job) -> T) -> Option<T> {
        let changed = self.change_quietly(id, change);
        self.tell();
        changed
    }

    fn change_quietly<T>(&self, id: &str, change: impl FnOnce(&mut Job) -> T) -> Option<T> {
        self.jobs().iter_mut().find(|job| job.shown.id == id).map(change)
    }

    fn tell(&self) {
        self.inner.changed.send_replace(());
    }

    async fn save(&self) -> Result<(), AppError> {
        let _one_at_a_time = self.inner.saving.lock().await;
        let kept: Vec<Download> = self
            .list()
            .into_iter()
            .filter(|download| !matches!(download.state, DownloadPhase::Done { .. }))
            .collect();
        Ok(self.inner.store.set_downloads(&kept).await?)
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<Job>> {
        self.inner.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_id(&self) -> String {
        self.inner.ids.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

fn first_id() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}
