//! How far a download is.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Notify;

use super::RepoId;

/// Over how long the speed is measured.
const WINDOW: Duration = Duration::from_secs(6);
/// The shortest time that says anything of a speed.
const SOON: Duration = Duration::from_millis(500);
/// How far the speeds of the window's halves may be apart for an estimate.
const STEADY: f64 = 0.35;

/// How far a download is, of all its files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    /// Bytes that are there, those of earlier runs among them.
    pub done: u64,
    /// Bytes of the whole.
    pub total: u64,
    /// Bytes that this run fetched.
    pub fetched: u64,
    /// Bytes a second over the last seconds.
    pub speed: Option<f64>,
    /// What is left, once the speed is steady enough to tell.
    pub eta: Option<Duration>,
    /// Why nothing moves, when nothing does.
    pub waiting: Option<WaitReason>,
    /// Each file, in the plan's order.
    pub files: Vec<FileProgress>,
}

/// How far one file is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileProgress {
    /// Its repository.
    pub repo: RepoId,
    /// Its path.
    pub path: String,
    /// Bytes that are there.
    pub done: u64,
    /// Bytes of the whole.
    pub total: u64,
    /// What is being done with it.
    pub state: FileState,
}

/// What is being done with a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum FileState {
    /// It has not begun.
    Queued,
    /// Bytes come.
    Fetching,
    /// Its bytes are hashed.
    Verifying,
    /// Nothing can be done now.
    Waiting {
        /// Why.
        reason: WaitReason,
    },
    /// It is there.
    Done,
}

/// Why nothing can be done now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum WaitReason {
    /// The network, or the hub, does not answer.
    Network,
    /// The hub asked to wait.
    RateLimit {
        /// So long.
        seconds: u64,
    },
    /// The hub has trouble of its own.
    Server,
    /// Another window or program fetches the same file.
    OtherProcess,
}

impl WaitReason {
    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            WaitReason::Network => "waiting for the network".to_owned(),
            WaitReason::RateLimit { seconds } => format!("the hub asks to wait {seconds} s"),
            WaitReason::Server => "the hub has trouble; trying again".to_owned(),
            WaitReason::OtherProcess => "another program is fetching it".to_owned(),
        }
    }
}

/// Gathers what the files of a download tell.
pub(super) struct Tracker {
    state: Mutex<State>,
    /// Told at every change of a file's state; bytes alone are looked for now and then.
    pub(super) changed: Notify,
}

struct State {
    files: Vec<FileProgress>,
    fetched: u64,
    begun: Instant,
    speed: Speed,
}

impl Tracker {
    pub(super) fn new(files: Vec<FileProgress>) -> Self {
        Tracker {
            state: Mutex::new(State {
                files,
                fetched: 0,
                begun: Instant::now(),
                speed: Speed::default(),
            }),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of one file.
    pub(super) fn file(&self, index: usize) -> FileReport<'_> {
        FileReport { tracker: self, index }
    }

    /// How far it is now.
    pub(super) fn progress(&self) -> Progress {
        let state = &mut *self.state();
        state.speed.sample(state.begun.elapsed(), state.fetched);
        let done = state.files.iter().map(|file| file.done).sum();
        let total: u64 = state.files.iter().map(|file| file.total).sum();
        let moving = |file: &FileProgress| matches!(file.state, FileState::Fetching | FileState::Verifying);
        let waiting = match state.files.iter().any(moving) {
            true => None,
            false => state.files.iter().find_map(|file| match &file.state {
                FileState::Waiting { reason } => Some(reason.clone()),
                _ => None,
            }),
        };
        let (speed, eta) = match waiting {
            Some(_) => (None, None),
            None => (state.speed.now(), state.speed.eta(total.saturating_sub(done))),
        };
        Progress {
            done,
            total,
            fetched: state.fetched,
            speed,
            eta,
            waiting,
            files: state.files.clone(),
        }
    }
}

/// Where one file tells how far it is.
#[derive(Clone, Copy)]
pub(super) struct FileReport<'a> {
    tracker: &'a Tracker,
    index: usize,
}

impl FileReport<'_> {
    fn change(&self, change: impl FnOnce(&mut FileProgress)) {
        if let Some(file) = self.tracker.state().files.get_mut(self.index) {
            change(file);
        }
    }

    /// So many bytes came.
    pub(super) fn add(&self, bytes: u64) {
        self.tracker.state().fetched += bytes;
        self.change(|file| file.done = (file.done + bytes).min(file.total));
    }

    /// So many bytes are there.
    pub(super) fn found(&self, bytes: u64) {
        self.change(|file| file.done = bytes.min(file.total));
    }

    /// What is done now.
    pub(super) fn state(&self, state: FileState) {
        self.change(|file| file.state = state);
        self.tracker.changed.notify_one();
    }
}

/// The speed over the last seconds, from what was fetched until when.
#[derive(Default)]
struct Speed {
    samples: VecDeque<(Duration, u64)>,
}

impl Speed {
    fn sample(&mut self, at: Duration, bytes: u64) {
        // The first sample behind the window stays: it is the window's edge.
        while self.samples.get(1).is_some_and(|(time, _)| *time + WINDOW <= at) {
            self.samples.pop_front();
        }
        let enough = self
            .samples
            .back()
            .is_none_or(|(time, _)| at.saturating_sub(*time) >= WINDOW / 60);
        if enough {
            self.samples.push_back((at, bytes));
        }
    }

    fn now(&self) -> Option<f64> {
        rate(self.samples.front()?, self.samples.back()?)
    }

    /// Nothing before the window is full and its halves agree: an estimate that jumps is worse than none.
    fn eta(&self, left: u64) -> Option<Duration> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        if last.0.saturating_sub(first.0) < WINDOW.mul_f64(0.8) {
            return None;
        }
        let middle = self.samples.get(self.samples.len() / 2)?;
        let (earlier, later) = (rate(first, middle)?, rate(middle, last)?);
        let speed = self.now().filter(|speed| *speed >= 1.0)?;
        if (earlier - later).abs() > STEADY * speed {
            return None;
        }
        Duration::try_from_secs_f64((left as f64 / speed).ceil()).ok()
    }
}

fn rate(from: &(Duration, u64), to: &(Duration, u64)) -> Option<f64> {
    let time = to.0.checked_sub(from.0).filter(|time| *time >= SOON)?;
    Some(to.1.saturating_sub(from.1) as f64 / time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten samples a second of a given speed.
    fn run(speed: &mut Speed, from: f64, to: f64, bytes: &mut u64, rate: u64) {
        let steps = ((to - from) * 10.0).round() as u64;
        for step in 0..steps {
            *bytes += rate / 10;
            speed.sample(Duration::from_secs_f64(from + (step + 1) as f64 / 10.0), *bytes);
        }
    }

    #[test]
    fn an_estimate_comes_once_the_speed_is_steady() {
        let (mut speed, mut bytes) = (Speed::default(), 0);
        speed.sample(Duration::ZERO, 0);
        run(&mut speed, 0.0, 2.0, &mut bytes, 1000);
        assert!((speed.now().unwrap() - 1000.0).abs() < 1.0);
        assert_eq!(speed.eta(10_000), None, "too early");
        run(&mut speed, 2.0, 6.0, &mut bytes, 1000);
        assert_eq!(speed.eta(10_000), Some(Duration::from_secs(10)));
        run(&mut speed, 6.0, 9.0, &mut bytes, 9000);
        assert_eq!(speed.eta(10_000), None, "it changes");
        run(&mut speed, 9.0, 15.0, &mut bytes, 9000);
        assert_eq!(speed.eta(90_000), Some(Duration::from_secs(10)));
        run(&mut speed, 15.0, 22.0, &mut bytes, 0);
        assert_eq!((speed.now(), speed.eta(1)), (Some(0.0), None));
    }

    #[test]
    fn it_waits_only_when_nothing_moves() {
        let file = |path: &str| FileProgress {
            repo: "o/n".parse().unwrap(),
            path: path.to_owned(),
            done: 0,
            total: 10,
            state: FileState::Queued,
        };
        let tracker = Tracker::new(vec![file("a"), file("b")]);
        let reason = WaitReason::Network;
        tracker.file(0).state(FileState::Waiting { reason: reason.clone() });
        tracker.file(1).state(FileState::Fetching);
        tracker.file(1).add(4);
        tracker.file(1).add(40);
        assert_eq!(tracker.progress().waiting, None);
        assert_eq!((tracker.progress().done, tracker.progress().fetched), (10, 44));
        tracker.file(1).state(FileState::Done);
        assert_eq!(tracker.progress().waiting, Some(reason));
    }
}
