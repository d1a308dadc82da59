//! Which drafts are kept: pure functions on token slices.

/// What a round keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// New tokens.
    pub tokens: Vec<u32>,
    /// Drafts among them.
    pub accepted: usize,
}

impl Verdict {
    /// The first of `drafts` that was rejected: the target chose another token in its place. `None` where the tokens end
    /// before it.
    #[must_use]
    pub fn rejected(&self, drafts: &[u32]) -> Option<u32> {
        drafts
            .get(self.accepted)
            .copied()
            .filter(|_| self.accepted < self.tokens.len())
    }

    /// Keeps the first `tokens` tokens only, as if no more had been asked for.
    pub(super) fn cut(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        self.accepted = self.accepted.min(tokens);
    }
}

/// Keeps the leading drafts that equal the target's own choices, then the target's next one; at most `budget` tokens,
/// and none past the first end token.
///
/// `choices` has one entry more than `drafts`: the target's choice after the old bonus and after each draft.
#[must_use]
pub fn accept(drafts: &[u32], choices: &[u32], budget: usize, eos: &[u32]) -> Verdict {
    let right = drafts.iter().zip(choices).take_while(|(d, c)| d == c).count();
    let mut tokens: Vec<u32> = choices.iter().copied().take((right + 1).min(budget)).collect();
    if let Some(end) = tokens.iter().position(|t| eos.contains(t)) {
        tokens.truncate(end + 1);
    }
    let accepted = right.min(tokens.len());
    Verdict { tokens, accepted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(tokens: &[u32], accepted: usize) -> Verdict {
        Verdict {
            tokens: tokens.to_vec(),
            accepted,
        }
    }

    #[test]
    fn keeps_the_common_prefix_and_the_targets_own_next() {
        assert_eq!(accept(&[1, 2, 3], &[1, 2, 9, 4], 9, &[]), verdict(&[1, 2, 9], 2));
        assert_eq!(accept(&[1, 2, 3], &[1, 2, 3, 4], 9, &[]), verdict(&[1, 2, 3, 4], 3));
        assert_eq!(accept(&[1, 2, 3], &[7, 2, 3, 4], 9, &[]), verdict(&[7], 0));
        assert_eq!(accept(&[], &[7], 9, &[]), verdict(&[7], 0));
    }

    #[test]
    fn a_later_match_after_a_mismatch_does_not_count() {
        assert_eq!(accept(&[1, 5, 3], &[1, 2, 3, 4], 9, &[]), verdict(&[1, 2], 1));
    }

    #[test]
    fn the_budget_cuts_and_only_drafts_given_out_count() {
        assert_eq!(accept(&[1, 2, 3], &[1, 2, 3, 4], 3, &[]), verdict(&[1, 2, 3], 3));
        assert_eq!(accept(&[1, 2, 3], &[1, 2, 3, 4], 1, &[]), verdict(&[1], 1));
    }

    #[test]
    fn the_rejected_draft_is_the_one_whose_place_another_token_took() {
        let rejected = |drafts: &[u32], choices: &[u32], budget, eos: &[u32]| {
            let verdict = accept(drafts, choices, budget, eos);
            verdict.rejected(drafts)
        };
        assert_eq!(rejected(&[1, 5, 3], &[1, 2, 3, 4], 9, &[]), Some(5));
        assert_eq!(rejected(&[7], &[1, 2], 1, &[]), Some(7));
        assert_eq!(rejected(&[1, 2], &[1, 2, 3], 9, &[]), None, "all were right");
        assert_eq!(
            rejected(&[1, 5], &[1, 2, 3], 1, &[]),
            None,
            "nobody looked behind the budget"
        );
        assert_eq!(rejected(&[2, 5], &[2, 1, 3], 9, &[2]), None, "nor behind the end");
        assert_eq!(
            rejected(&[1, 5], &[1, 2, 3], 9, &[2]),
            Some(5),
            "an end token took its place"
        );
        assert_eq!(rejected(&[], &[1], 9, &[]), None);
    }

    #[test]
    fn nothing_comes_after_an_end_token() {
        let eos = [0, 2];
        assert_eq!(accept(&[1, 2, 3], &[1, 2, 3, 4], 9, &eos), verdict(&[1, 2], 2));
        assert_eq!(accept(&[2, 1, 3], &[2, 1, 3, 4], 9, &eos), verdict(&[2], 1));
        assert_eq!(accept(&[1, 5], &[1, 0, 3], 9, &eos), verdict(&[1, 0], 1));
        assert_eq!(accept(&[1, 5], &[1, 5, 2], 9, &eos), verdict(&[1, 5, 2], 2));
    }
}
