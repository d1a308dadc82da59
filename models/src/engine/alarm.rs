//! What a reply's figures give away: a head whose drafts are never right, and a text that goes round in circles.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// Drafts after which a poor acceptance says something about the head.
const POOR_DRAFTS: usize = 50;
/// Drafts right less often than once in this many are poor.
const POOR_SHARE: usize = 20;

/// Tokens that a loop has at least: lists and tables repeat for shorter.
const LOOP_TOKENS: usize = 64;
/// Longest period looked for, in tokens: a sentence.
const LOOP_PERIOD: usize = 32;
/// Whole repeats that a loop has at least.
const LOOP_REPEATS: usize = 4;
/// Rounds whose acceptance counts: what 64 tokens take at four a round.
const LOOP_ROUNDS: usize = 16;
/// Of that many drafts less than one is wrong in a loop.
const LOOP_SHARE: usize = 20;

/// The period of the end of `tokens`, if it repeats: at least 64 tokens and four whole repeats of at most 32. Looks at the
/// last 128 tokens only.
pub(super) fn repeats(tokens: &[u32]) -> Option<usize> {
    (1..=LOOP_PERIOD).find(|period| {
        let long = LOOP_TOKENS.max(LOOP_REPEATS * period);
        tokens.len() >= long && {
            let tail = &tokens[tokens.len() - long..];
            tail[*period..].iter().rev().eq(tail[..long - period].iter().rev())
        }
    })
}

/// Proposed and right drafts, by position.
pub(super) type Positions = Vec<(usize, usize)>;

/// Adds a round of which the first `accepted` of `drafted` drafts were right.
pub(super) fn count(positions: &mut Positions, drafted: usize, accepted: usize) {
    if positions.len() < drafted {
        positions.resize(drafted, (0, 0));
    }
    for (i, (proposed, right)) in positions.iter_mut().enumerate().take(drafted) {
        *proposed += 1;
        *right += usize::from(i < accepted);
    }
}

/// The drafts of a loaded pair in all replies, by the wiring they were made with. One reply is often too short to tell, most
/// of all where few are drafted because they are wrong.
#[derive(Debug, Default)]
pub(super) struct Record(RefCell<BTreeMap<Option<String>, Positions>>);

impl Record {
    /// What is known of a wiring.
    pub(super) fn of(&self, wiring: Option<&String>) -> Positions {
        self.0.borrow().get(&wiring.cloned()).cloned().unwrap_or_default()
    }

    /// Adds a reply's rounds: drafted and accepted.
    pub(super) fn add(&self, wiring: Option<&String>, rounds: impl Iterator<Item = (usize, usize)>) {
        let mut all = self.0.borrow_mut();
        let positions = all.entry(wiring.cloned()).or_default();
        for (drafted, accepted) in rounds {
            count(positions, drafted, accepted);
        }
    }
}

/// Sizes repeat between generations of a model: only its drafts tell that a head belongs to another one. Later drafts are
/// poor in deep blocks of any head, so a head whose first ones are good is not poor. Takes what earlier replies showed and
/// what this one did.
pub(super) fn poor_head(before: &[(usize, usize)], now: &[(usize, usize)]) -> Option<String> {
    let first = [before, now].map(|positions| positions.first().copied().unwrap_or_default());
    let sum = |all: &mut dyn Iterator<Item = &(usize, usize)>| all.fold((0, 0), |(p, r), one| (p + one.0, r + one.1));
    let (drafts, right) = sum(&mut before.iter().chain(now));
    let (first_drafts, first_right) = sum(&mut first.iter());
    let is_poor = |drafts: usize, right: usize| right * POOR_SHARE < drafts;
    (drafts >= POOR_DRAFTS && is_poor(drafts, right) && is_poor(first_drafts, first_right)).then(|| {
        format!(
            "only {right} of {drafts} drafts were right, so speculation costs time here: this head may belong to another \
             model"
        )
    })
}

/// The end of a reply, as much of it as a loop shows in.
#[derive(Debug, Default)]
pub(super) struct Tail {
    tokens: Vec<u32>,
    /// Proposed and right drafts of the last rounds that drafted.
    rounds: VecDeque<(usize, usize)>,
}

impl Tail {
    /// Takes a round's tokens and how many of its drafts were right.
    pub(super) fn add(&mut self, tokens: &[u32], drafted: usize, accepted: usize) {
        self.tokens.extend_from_slice(tokens);
        let most = LOOP_TOKENS.max(LOOP_REPEATS * LOOP_PERIOD);
        self.tokens.drain(..self.tokens.len().saturating_sub(most));
        if drafted > 0 {
            self.rounds.push_back((drafted, accepted));
            if self.rounds.len() > LOOP_ROUNDS {
                self.rounds.pop_front();
            }
        }
    }

    /// What to say if the text repeats and nearly every draft is right: such figures say nothing about other text.
    pub(super) fn looping(&self) -> Option<String> {
        let (drafted, right) = self
            .rounds
            .iter()
            .fold((0, 0), |(d, r), round| (d + round.0, r + round.1));
        if self.rounds.len() < LOOP_ROUNDS || drafted.saturating_sub(right) * LOOP_SHARE >= drafted {
            return None;
        }
        let period = repeats(&self.tokens)?;
        let what = if period == 1 {
            "token".to_owned()
        } else {
            format!("{period} tokens")
        };
        Some(format!(
            "the text repeats the same {what} over and over, so nearly every draft is right: this is a loop, and its speed \
             says nothing about other text"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `period` distinct tokens, over and over.
    fn cycle(period: u32, len: usize) -> Vec<u32> {
        (0..period).map(|t| 100 + t).cycle().take(len).collect()
    }

    #[test]
    fn a_period_is_found_from_64_tokens_and_four_repeats_on() {
        for period in 1..=32 {
            let least = 64.max(4 * period as usize);
            assert_eq!(repeats(&cycle(period, least)), Some(period as usize));
            assert_eq!(repeats(&cycle(period, least - 1)), None, "{period}");
            // Whatever was before.
            let text: Vec<u32> = (1..50).chain(cycle(period, least + 3)).collect();
            assert_eq!(repeats(&text), Some(period as usize));
        }
        assert_eq!(repeats(&cycle(33, 1000)), None);
        assert_eq!(repeats(&[]), None);
    }

    #[test]
    fn one_other_token_in_the_tail_is_no_loop() {
        for at in 0..64 {
            let mut text = cycle(8, 64);
            text[at] = 7;
            assert_eq!(repeats(&text), None, "{at}");
        }
        let mut text = cycle(8, 65);
        text[0] = 7;
        assert_eq!(repeats(&text), Some(8));
        // The smallest period, not a multiple; and one with equal tokens in it.
        assert_eq!(repeats(&[5; 200]), Some(1));
        assert_eq!(repeats(&[1, 1, 2].repeat(30)), Some(3));
        assert_eq!(repeats(&(0..500).collect::<Vec<_>>()), None);
    }

    #[test]
    fn a_poor_head_shows_after_50_drafts() {
        let alone = |positions: &[(usize, usize)]| poor_head(&[], positions);
        assert_eq!(alone(&[]), None);
        assert_eq!(alone(&[(49, 0)]), None);
        assert_eq!(alone(&[(24, 0), (24, 0)]), None);
        assert_eq!(alone(&[(60, 3), (60, 0)]), None);
        assert_eq!(alone(&[(20, 0), (20, 1), (20, 2)]), None, "one in twenty");
        // Later drafts that are never right say nothing.
        assert_eq!(alone(&[(60, 20), (60, 0), (60, 0)]), None);
        assert_eq!(alone(&[(8, 1), (8, 0), (8, 0), (8, 0), (8, 0), (8, 0), (8, 0)]), None);
        // Also in deep blocks, after few rounds.
        for positions in [
            &[(50, 2)][..],
            &[(25, 1), (25, 0)],
            &[(24, 0), (24, 0), (24, 0)],
            &[(8, 0); 7],
        ] {
            let said = alone(positions).unwrap();
            assert!(said.contains("another model"), "{said}");
        }
    }

    #[test]
    fn replies_that_are_too_short_to_tell_tell_together() {
        let record = Record::default();
        let (poor, other) = ("poor".to_owned(), "other".to_owned());
        for reply in 1..=10 {
            let before = record.of(Some(&poor));
            let now = [(3, 0), (3, 0)];
            assert_eq!(poor_head(&before, &now).is_some(), reply >= 9, "{reply}");
            record.add(Some(&poor), [(2, 0); 3].into_iter());
            record.add(Some(&other), [(2, 1); 3].into_iter());
        }
        // Each wiring speaks for itself.
        assert_eq!(record.of(Some(&poor)), [(30, 0), (30, 0)]);
        assert_eq!(record.of(Some(&other)), [(30, 30), (30, 0)]);
        assert_eq!(record.of(None), []);
        assert_eq!(poor_head(&record.of(Some(&other)), &[(3, 0)]), None);
        // What has become of it counts, not where it began.
        assert_eq!(poor_head(&record.of(Some(&poor)), &[(10, 9)]), None);
    }

    #[test]
    fn a_loop_is_told_while_it_lasts_and_drafts_are_right() {
        let text = cycle(6, 408);
        let mut tail = Tail::default();
        for (i, tokens) in text.chunks(4).enumerate() {
            assert_eq!(tail.looping().is_some(), i >= 16, "{i}");
            tail.add(tokens, 3, 3);
        }
        assert!(
            tail.looping().unwrap().contains("the same 6 tokens"),
            "{:?}",
            tail.looping()
        );
        assert!(tail.tokens.len() <= 128 && tail.rounds.len() == 16);
        // Two wrong of 48 are near enough, three are not.
        for wrong in 1..=3 {
            tail.add(&cycle(6, 6), 3, 2);
            assert_eq!(tail.looping().is_some(), wrong < 3, "{wrong}");
        }
        // Something new is said.
        let mut tail = Tail::default();
        text.chunks(4).for_each(|tokens| tail.add(tokens, 3, 3));
        tail.add(&[1, 2, 3, 4], 3, 3);
        assert_eq!(tail.looping(), None);
        // Plain decoding has no acceptance that could mislead.
        let mut plain = Tail::default();
        for token in &text {
            plain.add(&[*token], 0, 0);
        }
        assert_eq!(plain.looping(), None);
        let mut one = Tail::default();
        (0..20).for_each(|_| one.add(&[9; 4], 3, 3));
        assert!(one.looping().unwrap().contains("the same token over"));
    }
}
