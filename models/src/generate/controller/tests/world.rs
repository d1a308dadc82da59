//! A machine and a text on a clock that only rounds move.

use super::super::*;

/// An M1 Ultra with a 27B in four bits: rows cost almost as much as steps.
pub(super) const M1_ULTRA: [(usize, f64); 5] = [(1, 43.6), (2, 75.7), (3, 106.2), (4, 135.5), (8, 244.0)];
/// A card whose rows are free: all of its time goes into reading weights.
pub(super) const FLAT: [(usize, f64); 5] = [(1, 20.0), (2, 20.2), (3, 20.4), (4, 20.7), (8, 22.0)];
/// In between.
pub(super) const SLOPED: [(usize, f64); 5] = [(1, 30.0), (2, 34.0), (3, 39.0), (4, 45.0), (8, 75.0)];

pub(super) fn costs(verify_ms: &[(usize, f64)], draft_ms: f64) -> Costs {
    Costs {
        verify_ms: verify_ms.to_vec(),
        draft_ms,
    }
}

/// A machine and a text, on a clock that only rounds move.
#[derive(Clone)]
pub(super) struct World {
    pub(super) costs: Costs,
    /// Conditional acceptance by position; the last holds for all behind it.
    pub(super) accept: Vec<f64>,
    /// Largest share by which a round is off.
    pub(super) noise: f64,
    /// Of a hundred rounds, how many are measured.
    pub(super) measured: u64,
    pub(super) random: u64,
}

impl World {
    pub(super) fn new(verify_ms: &[(usize, f64)], draft_ms: f64, accept: &[f64]) -> Self {
        Self {
            costs: costs(verify_ms, draft_ms),
            accept: accept.to_vec(),
            noise: 0.05,
            measured: 100,
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    pub(super) fn seeded(mut self, seed: u64) -> Self {
        self.random ^= seed.wrapping_mul(0xD134_2543_DE82_EF95) << 1;
        self
    }

    pub(super) fn uniform(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn accept(&self, i: usize) -> f64 {
        self.accept[i.min(self.accept.len() - 1)]
    }

    /// The true time and the outcome.
    pub(super) fn round(&mut self, depth: usize) -> (f64, RoundOutcome) {
        let mut accepted = 0;
        while accepted < depth && self.uniform() < self.accept(accepted) {
            accepted += 1;
        }
        let mut ms = self.costs.round_ms(depth) * (1.0 + self.noise * (2.0 * self.uniform() - 1.0));
        // Now and then something else runs.
        if self.uniform() < 0.01 {
            ms *= 3.0;
        }
        let is_measured = self.uniform() * 100.0 < self.measured as f64;
        let outcome = RoundOutcome {
            depth,
            accepted,
            duration_ms: is_measured.then_some(ms),
        };
        (ms, outcome)
    }

    /// True tokens a millisecond.
    pub(super) fn rate(&self, depth: usize) -> f64 {
        let mut all_right = 1.0;
        let mut tokens = 1.0;
        for i in 0..depth {
            all_right *= self.accept(i);
            tokens += all_right;
        }
        tokens / self.costs.round_ms(depth)
    }

    pub(super) fn best(&self, max_depth: usize) -> usize {
        (0..=max_depth)
            .max_by(|a, b| self.rate(*a).total_cmp(&self.rate(*b)))
            .unwrap()
    }
}

#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) rounds: usize,
    pub(super) tokens: usize,
    pub(super) ms: f64,
    /// Time in probes, and the tokens they gave.
    pub(super) probe_ms: f64,
    pub(super) probe_tokens: usize,
    /// Changes of depth outside of probes.
    pub(super) changes: usize,
    /// Rounds by depth.
    pub(super) by_depth: [usize; 16],
}

/// Runs until `tokens` are given out, and holds the controller to what it promises.
pub(super) fn run(controller: &mut Controller, world: &mut World, tokens: usize) -> Run {
    let mut run = Run::default();
    let mut depth = controller.depth();
    let mut at_depth = if controller.rounds == 0 { 0 } else { 4 };
    let mut home = controller.home;
    let mut promised = 0;
    while run.tokens < tokens {
        let next = controller.depth();
        if next == depth {
            at_depth += 1;
        } else {
            assert!(at_depth >= 4, "left depth {depth} after {at_depth} rounds");
            depth = next;
            at_depth = 1;
        }
        assert!(promised == 0 || next == 0, "a plain round was promised");
        promised = promised.max(controller.plain_rounds());
        let (ms, outcome) = world.round(depth);
        run.rounds += 1;
        run.ms += ms;
        run.tokens += outcome.accepted + 1;
        run.by_depth[depth] += 1;
        if controller.probe.is_some() {
            run.probe_ms += ms;
            run.probe_tokens += outcome.accepted + 1;
        }
        controller.record(&outcome);
        promised -= usize::from(promised > 0);
        run.changes += usize::from(controller.home != home);
        home = controller.home;
    }
    run
}

/// Tokens a second by those of the best fixed depth, over some seeds.
pub(super) fn worth(world: &World, calibrated: Option<&Costs>, tokens: usize) -> f64 {
    let seeds = 12;
    let sum: f64 = (1..=seeds)
        .map(|seed| {
            let mut world = world.clone().seeded(seed);
            let mut controller = Controller::new(calibrated.cloned(), 7, 3);
            let run = run(&mut controller, &mut world, tokens);
            // A spike in a hundred rounds, for every depth alike.
            run.tokens as f64 / run.ms / (world.rate(world.best(7)) / 1.02)
        })
        .sum();
    sum / seeds as f64
}
