//! How often drafts are right, by position.

use std::collections::VecDeque;

/// Share of right drafts to begin with: what heads reach on ordinary text. It takes part like two rounds, so that four
/// measured ones outweigh it.
const PRIOR: f64 = 0.6;
const PRIOR_ROUNDS: f64 = 2.0;
/// What a round leaves of the weight of those before: the last 25 or so count, enough to tell .5 from .7 and few enough
/// to follow a text that turns from prose to code.
const KEEP: f64 = 0.96;
/// What a round that says nothing on a position leaves of its weight: what was seen there grows old, but not as fast, as
/// trying it again costs rounds at a depth that was left.
const KEEP_UNSEEN: f64 = 0.99;
/// A position counts as one before it, like this many rounds. So a deep one that was left is tried again some day.
const NEIGHBOUR_ROUNDS: f64 = 2.0;

/// Weight of one round in what a position did lately: the last seven or so.
const LATELY: f64 = 0.25;
/// Lately this far from the mean is another text: by chance it is two deviations off at the worst mean, .5, and four at .9.
const SURPRISE: f64 = 0.4;
/// Rounds that count on after a surprise, at any position: the deep ones were seen in the other text too.
const ROUNDS_AFTER_SURPRISE: usize = 4;

/// Rounds with drafts that a measured share is taken over: as many as the means rest on.
const LAST_ROUNDS: usize = 25;

/// Conditional acceptance: how often the draft at a position is right, given that those before it were.
#[derive(Debug, Clone)]
pub(super) struct Acceptance {
    positions: Vec<Position>,
    /// Drafts of the last rounds that had some, and right ones.
    last: VecDeque<(usize, usize)>,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    mean: f64,
    /// Rounds it rests on.
    weight: f64,
    lately: f64,
}

impl Acceptance {
    pub(super) fn new(max_depth: usize) -> Self {
        let position = |i| Position {
            mean: PRIOR,
            weight: if i == 0 { PRIOR_ROUNDS } else { 0.0 },
            lately: PRIOR,
        };
        Self {
            positions: (0..max_depth).map(position).collect(),
            last: VecDeque::new(),
        }
    }

    /// Takes shares that were measured before for as much as `rounds` rounds; positions without one stay as they are.
    pub(super) fn assume(&mut self, shares: &[f64], rounds: usize) {
        let measured = shares.iter().take_while(|share| (0.0..=1.0).contains(*share));
        for (position, share) in self.positions.iter_mut().zip(measured) {
            *position = Position {
                mean: *share,
                weight: rounds as f64,
                lately: *share,
            };
        }
    }

    /// Takes a round in which the first `accepted` of `depth` drafts were right.
    pub(super) fn record(&mut self, depth: usize, accepted: usize) {
        if depth == 0 {
            return;
        }
        self.last.push_back((depth, accepted));
        if self.last.len() > LAST_ROUNDS {
            self.last.pop_front();
        }
        let mut is_surprised = false;
        for (i, position) in self.positions.iter_mut().enumerate() {
            if i >= depth || i > accepted {
                position.weight *= KEEP_UNSEEN;
                continue;
            }
            let is_right = if i < accepted { 1.0 } else { 0.0 };
            position.lately += (is_right - position.lately) * LATELY;
            is_surprised |= (position.lately - position.mean).abs() > SURPRISE;
            position.weight = position.weight * KEEP + 1.0;
            position.mean += (is_right - position.mean) / position.weight;
        }
        if is_surprised {
            self.loosen(ROUNDS_AFTER_SURPRISE);
        }
    }

    /// Lets all that was seen count for no more than `rounds` rounds.
    pub(super) fn loosen(&mut self, rounds: usize) {
        for position in &mut self.positions {
            position.weight = position.weight.min(rounds as f64);
        }
    }

    /// Share of a round's first `depth` drafts that were right in the last rounds with as many, as counted; `None` where fewer
    /// than `rounds` of them had so many.
    pub(super) fn measured(&self, depth: usize, rounds: usize) -> Option<f64> {
        let right = self.last.iter().filter(|(drafts, _)| *drafts >= depth);
        let (count, right) = right.fold((0, 0), |(n, sum), (_, right)| (n + 1, sum + depth.min(*right)));
        (depth > 0 && count >= rounds).then(|| right as f64 / (count * depth) as f64)
    }

    /// Tokens that a round with `depth` drafts gives: the target's own and every right draft.
    pub(super) fn tokens(&self, depth: usize) -> f64 {
        let mut before = PRIOR;
        let mut all_right = 1.0;
        let mut tokens = 1.0;
        for (i, p) in self.positions.iter().take(depth).enumerate() {
            let rate = if i == 0 {
                p.mean
            } else {
                (p.mean * p.weight + before * NEIGHBOUR_ROUNDS) / (p.weight + NEIGHBOUR_ROUNDS)
            };
            all_right *= rate;
            tokens += all_right;
            before = rate;
        }
        tokens
    }
}
