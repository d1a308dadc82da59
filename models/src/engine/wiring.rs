//! Which of a drafter's wirings to use: each is tried for some rounds, then the one with the most accepted drafts a round.
//! Rounds of one block size are compared, the drafter's default. The text is the same under any of them.

use std::cell::RefCell;

/// Rounds a wiring is tried for before it can be left.
const TRIAL_ROUNDS: usize = 24;

/// What is known of one wiring of a pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WiringTally {
    /// Its name.
    pub name: String,
    /// Rounds it drafted in.
    pub rounds: usize,
    /// Tokens it proposed.
    pub drafted: usize,
    /// Proposals that were right.
    pub accepted: usize,
}

/// The wirings of a loaded pair and what they did so far.
#[derive(Debug, Default)]
pub(super) struct Wirings(RefCell<Vec<WiringTally>>);

impl Wirings {
    /// `names` are what the drafter offers; `known` is what was measured before, of this or of another drafter.
    pub(super) fn new(names: &[&str], known: &[WiringTally]) -> Self {
        let tally = |name: &&str| {
            let before = known.iter().find(|t| t.name == *name).cloned();
            before.unwrap_or_else(|| WiringTally {
                name: (*name).to_owned(),
                ..WiringTally::default()
            })
        };
        Self(RefCell::new(names.iter().map(tally).collect()))
    }

    /// Whether there is a choice.
    pub(super) fn is_open(&self) -> bool {
        self.0.borrow().len() > 1
    }

    /// Whether one of several was not tried for long enough.
    pub(super) fn is_on_trial(&self) -> bool {
        self.is_open() && self.0.borrow().iter().any(|t| t.rounds < TRIAL_ROUNDS)
    }

    /// The one to use next: what was tried least while any was tried too little, then the best. The first among equals.
    pub(super) fn choose(&self) -> Option<String> {
        let tallies = self.0.borrow();
        let least = tallies
            .iter()
            .filter(|t| t.rounds < TRIAL_ROUNDS)
            .min_by_key(|t| t.rounds);
        let best = || {
            tallies.iter().reduce(|best, t| {
                let product = |a: usize, b: usize| a as u128 * b.max(1) as u128;
                let better = product(t.accepted, best.rounds) > product(best.accepted, t.rounds);
                if better { t } else { best }
            })
        };
        least.or_else(best).map(|t| t.name.clone())
    }

    /// Adds what one generation did.
    pub(super) fn add(&self, name: &str, rounds: usize, drafted: usize, accepted: usize) {
        if let Some(t) = self.0.borrow_mut().iter_mut().find(|t| t.name == name) {
            t.rounds = t.rounds.saturating_add(rounds);
            t.drafted = t.drafted.saturating_add(drafted);
            t.accepted = t.accepted.saturating_add(accepted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_tried_then_the_best_is_kept() {
        let wirings = Wirings::new(&["a", "b", "c"], &[]);
        assert!(wirings.is_open() && !Wirings::new(&["a"], &[]).is_open());
        let rates = [("a", 50), ("b", 80), ("c", 79)];
        let mut used = Vec::new();
        for _ in 0..9 {
            let name = wirings.choose().unwrap();
            let (_, accepted) = rates.iter().find(|(n, _)| *n == name).unwrap();
            wirings.add(&name, 12, 100, *accepted);
            used.push(name);
        }
        assert_eq!(used, ["a", "b", "c", "a", "b", "c", "b", "b", "b"]);
    }

    #[test]
    fn what_was_measured_before_counts() {
        let tally = |name: &str, accepted| WiringTally {
            name: name.to_owned(),
            rounds: 30,
            drafted: 90,
            accepted,
        };
        let known = [tally("b", 60), tally("gone", 90), tally("a", 20)];
        let wirings = Wirings::new(&["a", "b"], &known);
        assert_eq!(wirings.choose().as_deref(), Some("b"));
        // A new wiring is tried first.
        let wirings = Wirings::new(&["a", "b", "new"], &known);
        assert_eq!(wirings.choose().as_deref(), Some("new"));
    }

    #[test]
    fn equals_keep_the_default() {
        let wirings = Wirings::new(&["a", "b"], &[]);
        for name in ["a", "b"] {
            wirings.add(name, 24, 60, 30);
        }
        assert_eq!(wirings.choose().as_deref(), Some("a"));
        assert_eq!(Wirings::default().choose(), None);
    }
}
