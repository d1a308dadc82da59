//! What a round costs by depth: measured once by calibration, then followed while generating.

use serde::{Deserialize, Serialize};

/// What calibration measured on this machine for this pair.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Rows of a target pass and how long it takes, in milliseconds; usually 1, 2, 3, 4, 6 and 8 rows.
    pub verify_ms: Vec<(usize, f64)>,
    /// One step of the drafter with its head, in milliseconds.
    pub draft_ms: f64,
}

impl Costs {
    /// Milliseconds of a target pass over `rows` rows: linear between the measured ones and past the last two, and never
    /// falling, since more rows are more work and a lower time is noise. 0 if nothing was measured.
    #[must_use]
    pub fn verify_ms(&self, rows: usize) -> f64 {
        let mut points: Vec<(usize, f64)> = self.verify_ms.iter().copied().filter(|p| is_time(p.1)).collect();
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        points.dedup_by_key(|p| p.0);
        let mut most = 0.0_f64;
        for point in &mut points {
            most = most.max(point.1);
            point.1 = most;
        }
        let next = points.partition_point(|p| p.0 < rows);
        let (a, b) = match points.as_slice() {
            [] => return 0.0,
            [only] => (*only, *only),
            [first, ..] if next == 0 => (*first, *first),
            [.., a, b] if next == points.len() => (*a, *b),
            _ => (points[next - 1], points[next]),
        };
        if a.0 == b.0 {
            return a.1;
        }
        a.1 + (b.1 - a.1) * (rows as f64 - a.0 as f64) / (b.0 as f64 - a.0 as f64)
    }

    /// Milliseconds of a round with `depth` drafts: the drafter's steps and a target pass over them and the bonus.
    #[must_use]
    pub fn round_ms(&self, depth: usize) -> f64 {
        self.verify_ms(depth + 1) + depth as f64 * self.draft_ms
    }

    /// A target pass over `rows` rows in plain steps; 0 if nothing was measured.
    #[must_use]
    pub fn ratio(&self, rows: usize) -> f64 {
        let plain = self.verify_ms(1);
        if plain > 0.0 { self.verify_ms(rows) / plain } else { 0.0 }
    }

    fn is_usable(&self) -> bool {
        self.verify_ms(1) > 0.0 && self.draft_ms.is_finite() && self.draft_ms >= 0.0
    }
}

/// Longer is no round but a computer that slept, or a broken clock.
const LONGEST_MS: f64 = 60_000.0;
/// Rounds of a visit whose median is taken: the first may compile kernels or start a pipeline, and one of four that is
/// far off leaves the median where it is.
const SEED_ROUNDS: usize = 4;
/// A round counts for at most this much more or less than expected: another program's burst is not the machine's speed,
/// and what lasts is followed all the same.
const CLAMP: f64 = 0.25;
/// Rounds until a depth's own cost is known to a few per cent under a noise of ten; from then on a difference is taken for
/// the machine's and moves every depth alike.
const SETTLED: f64 = 16.0;
/// What is left of that on coming back: half, so that a depth is measured anew without forgetting what it was.
const RETURNING: f64 = 8.0;
/// A visit this far from the last is no noise, and replaces it.
const JUMP: f64 = 1.2;
/// Weight of one round in the machine's speed: twice as slow is followed in about 15 rounds.
const SPEED_WEIGHT: f64 = 0.2;
/// Without a calibration a draft is first taken to cost this many plain steps. Four measured rounds of two depths replace
/// it, so only its being positive matters.
const GUESSED_STEP: f64 = 0.2;

/// Rounds' costs as they are measured. A depth's cost is what calibration says (`shape`), by the depth's own `ratio`, by the
/// machine's speed now. A depth not yet measured takes its ratio from its measured neighbours.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    /// By depth, in milliseconds; plain steps without a calibration.
    shape: Vec<f64>,
    is_calibrated: bool,
    speed: f64,
    measured: Vec<Measured>,
    /// The depth that rounds have now, and the one they had before.
    visit: usize,
    before: usize,
    /// Its first durations, until there are enough for a median.
    seeds: Vec<f64>,
    is_seeded: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    ratio: f64,
    /// Rounds it rests on, up to [`SETTLED`]; 0 if there was none.
    weight: f64,
}

impl Ledger {
    pub(super) fn new(costs: Option<&Costs>, max_depth: usize) -> Self {
        let costs = costs.filter(|c| c.is_usable());
        let cost = |depth| costs.map_or(1.0 + GUESSED_STEP * depth as f64, |c| c.round_ms(depth));
        Self {
            shape: (0..=max_depth).map(cost).collect(),
            is_calibrated: costs.is_some(),
            speed: 1.0,
            measured: vec![Measured::default(); max_depth + 1],
            visit: 0,
            before: 0,
            seeds: Vec::new(),
            is_seeded: false,
        }
    }

    /// Whether the cost is more than a guess.
    pub(super) fn is_known(&self, depth: usize) -> bool {
        self.is_calibrated || self.is_measured(depth)
    }

    fn is_measured(&self, depth: usize) -> bool {
        self.measured[depth].weight > 0.0
    }

    /// Milliseconds of a round, as far as is known.
    pub(super) fn ms(&self, depth: usize) -> f64 {
        self.shape[depth] * self.ratio(depth) * self.speed
    }

    fn ratio(&self, depth: usize) -> f64 {
        let known = |d: &usize| self.is_measured(*d);
        let below = (0..=depth).rev().find(known);
        let above = (depth..self.measured.len()).find(known);
        match (below, above) {
            (Some(a), Some(b)) if a < b => {
                let (low, high) = (self.measured[a].ratio, self.measured[b].ratio);
                low + (high - low) * (depth - a) as f64 / (b - a) as f64
            }
            (Some(d), _) | (None, Some(d)) => self.measured[d].ratio,
            (None, None) => 1.0,
        }
    }

    /// The next rounds are measured afresh, whatever their depth.
    pub(super) fn leave(&mut self) {
        // Two or three tell something, one alone could be anything.
        if self.seeds.len() > 1 {
            self.seed();
        }
        self.seeds.clear();
        self.is_seeded = false;
    }

    pub(super) fn record(&mut self, depth: usize, duration_ms: Option<f64>) {
        if depth != self.visit {
            self.leave();
            self.before = std::mem::replace(&mut self.visit, depth);
        }
        let Some(ms) = duration_ms.filter(|ms| is_time(*ms)) else {
            return;
        };
        if !self.is_seeded {
            self.seeds.push(ms);
            if self.seeds.len() == SEED_ROUNDS {
                self.seed();
            }
            return;
        }
        let off = (ms / self.ms(depth)).clamp(1.0 - CLAMP, 1.0 + CLAMP) - 1.0;
        let here = &mut self.measured[depth];
        if here.weight < SETTLED {
            here.weight += 1.0;
            here.ratio *= 1.0 + off / here.weight;
        } else {
            self.speed *= 1.0 + SPEED_WEIGHT * off;
        }
    }

    fn seed(&mut self) {
        self.seeds.sort_by(f64::total_cmp);
        let n = self.seeds.len();
        let median = f64::midpoint(self.seeds[(n - 1) / 2], self.seeds[n / 2]);
        let ratio = median / (self.shape[self.visit] * self.speed);
        let here = &mut self.measured[self.visit];
        let known = here.weight.min(RETURNING);
        let is_jump = known > 0.0 && !(1.0 / JUMP..JUMP).contains(&(ratio / here.ratio));
        let known = if is_jump { 0.0 } else { known };
        here.weight = known + n as f64;
        here.ratio = (here.ratio * known + ratio * n as f64) / here.weight;
        if is_jump {
            // The others were measured on a machine that is no more; where rounds just came from is known as it is now.
            for (depth, measured) in self.measured.iter_mut().enumerate() {
                if depth != self.visit && depth != self.before {
                    measured.weight = 0.0;
                }
            }
        }
        self.is_seeded = true;
        self.seeds.clear();
    }
}

fn is_time(ms: f64) -> bool {
    ms > 0.0 && ms <= LONGEST_MS
}
