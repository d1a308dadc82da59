//! What the engine tells of a reply, on its way to the turn.

use std::ops::ControlFlow;
use std::sync::Arc;

use models::{GenerationEvent, Sink};
use tokio::sync::mpsc::Sender;

use super::Stop;

/// Hands events on, and the person's wishes back.
pub(super) struct Wishes {
    pub(super) events: Sender<GenerationEvent>,
    pub(super) stop: Arc<Stop>,
}

impl Sink for Wishes {
    fn event(&mut self, event: GenerationEvent) -> ControlFlow<()> {
        // The text of the round in which the stop is seen is kept.
        if self.events.blocking_send(event).is_err() || self.stop.is_requested() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn wants_answer(&self) -> bool {
        self.stop.wants_answer()
    }
}
