use std::time::{Duration, Instant};

use super::view;
use crate::hub::{CancelToken, Plan, Progress};
use crate::ipc::{Download, DownloadPhase, WaitReason, Wanted};

/// The window hears of progress this often at most.
const TELL: Duration = Duration::from_millis(200);
/// A download and how to stop it.
pub(super) struct Job {
    pub(super) shown: Download,
    cancel: Option<CancelToken>,
    told: Option<Instant>,
}

impl Job {
    pub(super) fn new(id: &str, wanted: Wanted, then_chat: bool) -> Self {
        Job::of(Download {
            id: id.to_owned(),
            name: wanted.name.clone(),
            wanted,
            state: DownloadPhase::Planning,
            bytes: None,
            done: 0.0,
            files: 0,
            files_done: 0,
            file: None,
            speed: None,
            eta_seconds: None,
            then_chat,
        })
    }

    /// One of an earlier run of the app: what ran then was interrupted.
    pub(super) fn earlier(mut shown: Download) -> Self {
        let stands = matches!(shown.state, DownloadPhase::Paused | DownloadPhase::Failed { .. });
        if !stands {
            shown.state = DownloadPhase::Interrupted;
        }
        (shown.speed, shown.eta_seconds, shown.file) = (None, None, None);
        Job::of(shown)
    }

    fn of(shown: Download) -> Self {
        Job {
            shown,
            cancel: None,
            told: None,
        }
    }

    /// There is nothing to go on with: it is whole, or what was asked for is not there any more as it was.
    pub(super) fn is_over(&self) -> bool {
        match &self.shown.state {
            DownloadPhase::Done { .. } => true,
            DownloadPhase::Failed { error } => error.kind == "changed",
            _ => false,
        }
    }

    /// Begins anew with something else; what ran is stopped.
    pub(super) fn turn_to(&mut self, wanted: Wanted) {
        self.stop();
        let id = std::mem::take(&mut self.shown.id);
        *self = Job::new(&id, wanted, self.shown.then_chat);
    }

    pub(super) fn is_running(&self) -> bool {
        self.cancel.is_some()
    }

    pub(super) fn begin(&mut self) -> CancelToken {
        let cancel = CancelToken::new();
        self.cancel = Some(cancel.clone());
        self.shown.state = DownloadPhase::Planning;
        cancel
    }

    /// It goes on by itself when the network is back.
    pub(super) fn wait_for_network(&mut self) {
        if self.is_running() {
            self.shown.state = DownloadPhase::Waiting {
                reason: WaitReason::Network,
                seconds: None,
            };
        }
    }

    /// Every wait of it ends at once.
    pub(super) fn stop(&self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }

    pub(super) fn finish(&mut self, phase: DownloadPhase) {
        self.cancel = None;
        self.shown.state = phase;
        (self.shown.speed, self.shown.eta_seconds, self.shown.file) = (None, None, None);
    }

    pub(super) fn planned(&mut self, wanted: &Wanted, plan: &Plan) {
        self.shown.wanted = wanted.clone();
        self.shown.bytes = Some(plan.total() as f64);
        self.shown.done = plan.present() as f64;
        self.shown.files = view::files(plan);
        self.shown.state = DownloadPhase::Transferring;
    }

    /// Takes a step of progress; whether it is time to tell of it.
    pub(super) fn follow(&mut self, progress: &Progress) -> bool {
        // A last word after a pause changes nothing.
        if !self.is_running() {
            return false;
        }
        let phase = view::phase(progress);
        let is_new = std::mem::discriminant(&phase) != std::mem::discriminant(&self.shown.state);
        self.shown.done = progress.done as f64;
        self.shown.bytes = Some(progress.total as f64);
        self.shown.speed = progress.speed;
        self.shown.eta_seconds = progress.eta.map(|eta| eta.as_secs_f64());
        (self.shown.files_done, self.shown.file) = view::standing(progress);
        self.shown.state = phase;
        let now = Instant::now();
        let tell = is_new || self.told.is_none_or(|told| now - told >= TELL);
        if tell {
            self.told = Some(now);
        }
        tell
    }
}
