//! Room for one running turn, and the way to stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

use crate::error::Error;

/// Asks one turn to end, or its model to stop thinking.
#[derive(Debug, Default)]
pub struct Stop {
    requested: AtomicBool,
    answer: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// Asks it to end.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Whether it was asked.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Asks the model to stop thinking and answer.
    pub fn want_answer(&self) {
        self.answer.store(true, Ordering::Release);
    }

    /// Whether it was asked to answer.
    #[must_use]
    pub fn wants_answer(&self) -> bool {
        self.answer.load(Ordering::Acquire)
    }

    /// Waits until it is asked.
    pub async fn requested(&self) {
        // Made before the look at the flag, it sees a request that comes right after.
        let notified = self.notify.notified();
        if !self.is_requested() {
            notified.await;
        }
    }
}

#[derive(Clone, Default)]
struct Running {
    stop: Arc<Stop>,
    chat_id: Option<i32>,
}

#[derive(Clone, Default)]
pub(super) struct Slot(Arc<watch::Sender<Option<Running>>>);

impl Slot {
    /// Takes the slot until the answer is dropped.
    pub(super) fn take(&self) -> Result<Taken, Error> {
        let stop = Arc::new(Stop::default());
        let running = Running {
            stop: stop.clone(),
            chat_id: None,
        };
        let taken = self.0.send_if_modified(|slot| {
            let free = slot.is_none();
            if free {
                *slot = Some(running);
            }
            free
        });
        if taken {
            Ok(Taken {
                slot: self.clone(),
                stop,
            })
        } else {
            Err(Error::TurnRunning)
        }
    }

    /// Asks the running turn to end, if it is in this chat or no chat is named; whether it did.
    pub(super) fn stop(&self, chat_id: Option<i32>) -> bool {
        match &*self.0.borrow() {
            Some(running) if chat_id.is_none() || running.chat_id == chat_id => {
                running.stop.request();
                true
            }
            _ => false,
        }
    }

    /// Asks the running turn's model to stop thinking and answer.
    pub(super) fn want_answer(&self) {
        if let Some(running) = &*self.0.borrow() {
            running.stop.want_answer();
        }
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until no turn is running.
    pub(super) async fn free(&self) {
        // It fails only without a sender, and `self` is one.
        let _ = self.0.subscribe().wait_for(Option::is_none).await;
    }
}

/// The slot, taken; it is free again when this is dropped.
pub struct Taken {
    slot: Slot,
    stop: Arc<Stop>,
}

impl Taken {
    /// What asks the holder to end.
    #[must_use]
    pub fn stop(&self) -> Arc<Stop> {
        self.stop.clone()
    }

    pub(super) fn in_chat(&self, chat_id: i32) {
        self.slot.0.send_modify(|slot| {
            if let Some(running) = slot {
                running.chat_id = Some(chat_id);
            }
        });
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.slot.0.send_replace(None);
    }
}
