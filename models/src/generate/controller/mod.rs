//! How many drafts the next round has: what gives the most tokens a second, down to none. Knows numbers only; whoever
//! runs the rounds measures them.

mod acceptance;
mod costs;
mod state;
#[cfg(test)]
mod tests;

pub use costs::Costs;
pub use state::ControllerState;

use acceptance::Acceptance;
use costs::Ledger;

/// A depth is not judged, nor a probe ended, before it had this many rounds: fewer say nothing about a share.
const FEWEST_ROUNDS: usize = 4;
/// Gain below which another depth is not worth a change: the costs are not known better.
const GAIN: f64 = 0.03;
/// Gain asked for besides, by rounds at the present depth: .12 after four rounds, .01 after fifty. A short stay is mostly
/// chance, and without this depths of nearly equal worth would take turns.
const GAIN_OF_A_SHORT_STAY: f64 = 0.5;
/// When a parked controller looks at its plain steps: once they are measured, and once they are measured well. In between
/// nothing it knows can change, and the decoder may queue ahead.
const PARKED_CHECKS: [usize; 2] = [FEWEST_ROUNDS, 16];
/// Rounds between probes. Fewer would follow chance; more would leave a long reply on an old judgement.
const SHORTEST_WAIT: f64 = 32.0;
const LONGEST_WAIT: f64 = 512.0;
/// Share of the time that probes may cost; a wait is as long as that makes it. Doubled after each probe that changed
/// nothing, or two where two depths are tried in turn, up to fourfold.
const PROBE_SHARE: f64 = 0.015;
const MOST_DOUBLINGS: u32 = 2;
/// Share of the time that a probe may cost when something changed.
const PROBE_SHARE_AFTER_CHANGE: f64 = 0.03;
/// Rounds from a change of costs to the probe: the change goes on for some rounds until all of it is measured.
const WAIT_AFTER_CHANGE: usize = 8;
/// Costs this much higher or lower than at the last judgement are a change: noise of the followed costs stays below.
const CHANGE: f64 = 1.15;
/// A probe after which speculation looks this much better was not in vain, and the next comes as soon.
const PROMISING: f64 = 1.05;

/// One round as it went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundOutcome {
    /// Drafts verified; 0 is a plain step. Drafts behind an end of the text do not count.
    pub depth: usize,
    /// Leading ones that were right.
    pub accepted: usize,
    /// From the round before to this one, drafting included, in milliseconds; `None` if something else than the machine
    /// took the time, such as a reader that held the decoder back.
    pub duration_ms: Option<f64>,
}

/// Picks the depth of each round from the acceptance by position and the cost by depth.
#[derive(Debug, Clone)]
pub struct Controller {
    max_depth: usize,
    costs: Ledger,
    acceptance: Acceptance,
    has_drafted: bool,
    /// The depth that was judged best.
    home: usize,
    /// Rounds at it.
    rounds: usize,
    probe: Option<Probe>,
    /// Rounds until the next probe.
    wait: usize,
    /// Rounds since the last one.
    since: usize,
    /// Probes in a row that changed nothing.
    in_vain: u32,
    /// Whether the next probe is a plain one, where there is a choice.
    is_plain_next: bool,
    /// What a round at home cost when the wait was set.
    reference_ms: f64,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    depth: usize,
    left: usize,
    /// Speculation's best speedup before.
    speedup: f64,
}

impl Controller {
    /// Starts at the depth that pays best if drafts are right as often as usual, so parked where none would; at
    /// `default_depth` without a calibration.
    #[must_use]
    pub fn new(costs: Option<Costs>, max_depth: usize, default_depth: usize) -> Self {
        let ledger = Ledger::new(costs.as_ref(), max_depth);
        let mut controller = Self {
            max_depth,
            acceptance: Acceptance::new(max_depth),
            has_drafted: false,
            home: default_depth.min(max_depth),
            rounds: 0,
            probe: None,
            wait: 0,
            since: 0,
            in_vain: 0,
            is_plain_next: true,
            reference_ms: 0.0,
            costs: ledger,
        };
        if controller.costs.is_known(0) {
            controller.home = controller.best(0..=max_depth);
        }
        controller.set_wait();
        controller
    }

    /// Begins with what was seen in earlier runs of the pair: how often drafts were right by position, which counts for as
    /// much as another text does, and the depth that was fastest, where one was.
    #[must_use]
    pub fn begin(mut self, depth: Option<usize>, acceptance: &[f64]) -> Self {
        self.acceptance.assume(acceptance, FEWEST_ROUNDS);
        match depth {
            Some(depth) => self.home = depth.min(self.max_depth),
            None if self.costs.is_known(0) => self.home = self.best(0..=self.max_depth),
            None => {}
        }
        self.set_wait();
        self
    }

    /// Begins another generation. What was learned stays, but how often drafts were right in another text counts for no
    /// more than a few rounds.
    pub fn start(&mut self) {
        self.acceptance.loosen(FEWEST_ROUNDS);
        self.costs.leave();
        self.probe = None;
        self.rounds = 0;
        self.in_vain = 0;
        let left = self.wait;
        self.set_wait();
        self.wait = self.wait.min(left);
    }

    /// Drafts of the next round; 0 is a plain step. Changes only by [`record`](Self::record) and [`start`](Self::start).
    #[must_use]
    pub fn depth(&self) -> usize {
        self.probe.map_or(self.home, |probe| probe.depth)
    }

    /// How many of the rounds not yet recorded are plain for certain, whatever they bring: with one under way, the next may
    /// be queued ahead if this is 2 or more.
    #[must_use]
    pub fn plain_rounds(&self) -> usize {
        match self.probe {
            Some(probe) if probe.depth == 0 => probe.left,
            Some(_) => 0,
            None if self.home > 0 => 0,
            None if self.max_depth == 0 => usize::MAX,
            None => {
                let checks = PARKED_CHECKS.iter().filter(|check| **check > self.rounds);
                let check = checks.min().map_or(usize::MAX, |check| check - self.rounds);
                let probe = self.wait.max(FEWEST_ROUNDS.saturating_sub(self.rounds.min(self.since)));
                check.min(probe).min(WAIT_AFTER_CHANGE)
            }
        }
    }

    /// Learns from a round.
    pub fn record(&mut self, round: &RoundOutcome) {
        if round.depth > self.max_depth {
            return;
        }
        self.acceptance.record(round.depth, round.accepted);
        self.costs.record(round.depth, round.duration_ms);
        self.has_drafted |= round.depth > 0;
        if let Some(probe) = &mut self.probe {
            // Rounds that a limit cut short say nothing about its depth.
            probe.left -= usize::from(round.depth == probe.depth);
            if probe.left == 0 {
                self.end_probe();
            }
            return;
        }
        self.rounds += usize::from(round.depth == self.home);
        self.wait = self.wait.saturating_sub(1);
        self.since += 1;
        self.notice_change();
        if self.rounds.min(self.since) < FEWEST_ROUNDS {
            return;
        }
        let is_due = self.home > 0 || PARKED_CHECKS.contains(&self.rounds);
        if is_due && self.judge() {
            return;
        }
        if self.wait == 0 && self.max_depth > 0 && self.costs.is_known(self.home) {
            self.begin_probe();
        }
    }

    /// What it does and why.
    #[must_use]
    pub fn state(&self) -> ControllerState {
        if let Some(probe) = self.probe {
            return ControllerState::Probing {
                depth: probe.depth,
                home: self.home,
                rounds: probe.left,
            };
        }
        if self.home > 0 {
            return ControllerState::On {
                depth: self.home,
                tokens_per_round: self.acceptance.tokens(self.home),
                speedup: self.costs.is_known(0).then(|| self.speedup(self.home)),
                is_measured: self.has_drafted,
            };
        }
        let depth = self.promising();
        let measured = self.acceptance.measured(depth, FEWEST_ROUNDS);
        let assumed = || (self.acceptance.tokens(depth) - 1.0) / depth.max(1) as f64;
        ControllerState::Parked {
            depth,
            acceptance: measured.unwrap_or_else(assumed),
            cost_ratio: self.costs.ms(depth) / self.costs.ms(0),
            speedup: self.speedup(depth),
            is_measured: measured.is_some(),
        }
    }

    /// Tokens a millisecond.
    fn rate(&self, depth: usize) -> f64 {
        self.acceptance.tokens(depth) / self.costs.ms(depth)
    }

    fn speedup(&self, depth: usize) -> f64 {
        self.rate(depth) / self.rate(0)
    }

    /// The depth with the highest rate, the first among equals; 0 if there is none.
    fn best(&self, depths: impl Iterator<Item = usize>) -> usize {
        depths
            .reduce(|best, depth| {
                if self.rate(depth) > self.rate(best) {
                    depth
                } else {
                    best
                }
            })
            .unwrap_or(0)
    }

    /// The best depth with drafts; 0 only if there is none.
    fn promising(&self) -> usize {
        self.best(1..=self.max_depth)
    }

    /// Goes to a depth that is clearly better, if there is one.
    fn judge(&mut self) -> bool {
        if !self.costs.is_known(0) || !self.costs.is_known(self.home) {
            return false;
        }
        let best = self.best(0..=self.max_depth);
        let gain = GAIN + GAIN_OF_A_SHORT_STAY / self.rounds.max(1) as f64;
        if self.rate(best) <= self.rate(self.home) * (1.0 + gain) {
            return false;
        }
        let left = if self.home > 0 && best > 0 {
            self.wait
        } else {
            usize::MAX
        };
        self.home = best;
        self.rounds = 0;
        self.in_vain = 0;
        self.set_wait();
        // Depths that take turns must not put off the look at plain decoding.
        self.wait = self.wait.min(left);
        true
    }

    /// What a probe would try: from parked the best depth with drafts, else plain decoding and the second best depth in turn.
    /// What was measured there long ago may be of another machine or text.
    fn probe_depth(&self) -> usize {
        if self.home == 0 {
            return self.promising();
        }
        if self.is_plain_next || self.max_depth == 1 {
            return 0;
        }
        self.best((1..=self.max_depth).filter(|depth| *depth != self.home))
    }

    fn begin_probe(&mut self) {
        let depth = self.probe_depth();
        let speedup = self.speedup(self.promising());
        if self.home == 0 {
            // It asks whether the text has changed, so its rounds count as much as all before.
            self.acceptance.loosen(FEWEST_ROUNDS);
        }
        self.probe = Some(Probe {
            depth,
            left: FEWEST_ROUNDS,
            speedup,
        });
    }

    fn end_probe(&mut self) {
        let Some(probe) = self.probe.take() else { return };
        self.costs.leave();
        self.since = 0;
        self.is_plain_next = probe.depth > 0;
        if self.judge() {
            return;
        }
        let is_promising = self.home == 0 && self.speedup(self.promising()) > probe.speedup * PROMISING;
        self.in_vain = if is_promising { 0 } else { self.in_vain + 1 };
        self.set_wait();
    }

    /// Rounds at home after which a probe costs no more than `share` of the time.
    fn wait_for(&self, share: f64) -> f64 {
        let depth = self.probe_depth();
        let home_ms = self.costs.ms(self.home);
        let lost_ms = self.costs.ms(depth) - self.acceptance.tokens(depth) / self.rate(self.home);
        let wait = FEWEST_ROUNDS as f64 * lost_ms / (share * home_ms);
        wait.clamp(SHORTEST_WAIT, LONGEST_WAIT)
    }

    fn set_wait(&mut self) {
        self.reference_ms = self.costs.ms(self.home);
        self.wait = if self.costs.is_known(0) {
            let probes = if self.home > 0 { self.in_vain / 2 } else { self.in_vain };
            let doubled = f64::from(1_u32 << probes.min(MOST_DOUBLINGS));
            (self.wait_for(PROBE_SHARE) * doubled).min(LONGEST_WAIT) as usize
        } else {
            // What a plain step costs is the first thing to know.
            0
        };
    }

    /// Probes soon when rounds cost something else than they did.
    fn notice_change(&mut self) {
        let now = self.costs.ms(self.home);
        if (1.0 / CHANGE..CHANGE).contains(&(now / self.reference_ms)) {
            return;
        }
        self.reference_ms = now;
        self.in_vain = 0;
        // Whether speculation pays at all is asked first.
        self.is_plain_next = true;
        let allowed = self.wait_for(PROBE_SHARE_AFTER_CHANGE) as usize;
        let soonest = allowed.saturating_sub(self.since).max(WAIT_AFTER_CHANGE);
        self.wait = self.wait.min(soonest);
    }
}
