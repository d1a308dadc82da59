//! How many drafts the next round has, and how long rounds take.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::{Controller, RoundOutcome};

/// Who decides how many drafts a round has.
#[derive(Debug, Clone)]
pub enum Depth {
    /// Always this many, at least one.
    Fixed(usize),
    /// As many as pay at the moment, none included.
    Measured(Rc<RefCell<Controller>>),
}

impl Depth {
    /// Blocks of always this many tokens, the target's own included: at least two.
    #[must_use]
    pub fn block(size: usize) -> Self {
        Self::Fixed(size.max(2) - 1)
    }
}

/// Follows the rounds of one generation for its controller.
pub(super) struct Pace {
    depth: Depth,
    /// When the last round's result was read.
    read: Option<Instant>,
    /// When it was handed out, until the next one is asked for.
    handed_out: Option<Instant>,
    /// What whoever takes the tokens needed since then.
    outside: Duration,
}

impl Pace {
    pub(super) fn new(depth: Depth) -> Self {
        if let Depth::Measured(controller) = &depth {
            controller.borrow_mut().start();
        }
        Self {
            depth,
            read: None,
            handed_out: None,
            outside: Duration::ZERO,
        }
    }

    /// Drafts of the next round.
    pub(super) fn depth(&self) -> usize {
        match &self.depth {
            Depth::Fixed(depth) => *depth,
            Depth::Measured(controller) => controller.borrow().depth(),
        }
    }

    /// Whether the round behind a plain one that is under way is certain to be plain too.
    pub(super) fn is_plain_ahead(&self) -> bool {
        match &self.depth {
            Depth::Fixed(_) => false,
            Depth::Measured(controller) => controller.borrow().plain_rounds() >= 2,
        }
    }

    /// The next round is asked for.
    pub(super) fn enter(&mut self) {
        self.outside = self.handed_out.take().map_or(Duration::ZERO, |at| at.elapsed());
    }

    /// A round is queued with nothing under way: it begins now, whatever the device waited for.
    pub(super) fn begin(&mut self) {
        self.read = Some(Instant::now());
        self.outside = Duration::ZERO;
    }

    /// A result was read: how long since the one before, in milliseconds; `None` where a slow taker may have held the
    /// device up.
    pub(super) fn lap(&mut self) -> Option<f64> {
        let now = Instant::now();
        let took = self.read.replace(now).map(|before| now.duration_since(before))?;
        (self.outside * 2 < took).then_some(took.as_secs_f64() * 1e3)
    }

    /// Tells the controller of a round.
    pub(super) fn record(&self, depth: usize, accepted: usize, duration_ms: Option<f64>) {
        if let Depth::Measured(controller) = &self.depth {
            controller.borrow_mut().record(&RoundOutcome {
                depth,
                accepted,
                duration_ms,
            });
        }
    }

    /// The round goes out.
    pub(super) fn leave(&mut self) {
        self.handed_out = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_is_timed_from_when_it_was_queued() {
        let mut pace = Pace::new(Depth::Fixed(3));
        assert_eq!(pace.lap(), None, "the first token: nothing was read before");
        let long_ago = Instant::now().checked_sub(Duration::from_secs(100));
        let slow_taker = |pace: &mut Pace| {
            (pace.read, pace.handed_out) = (long_ago, long_ago);
            pace.enter();
        };
        slow_taker(&mut pace);
        assert_eq!(pace.lap(), None, "the device may have waited for who takes the tokens");
        slow_taker(&mut pace);
        pace.begin();
        let ms = pace.lap().unwrap();
        assert!((0.0..50_000.0).contains(&ms), "{ms}");
    }
}
