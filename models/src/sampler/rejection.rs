//! Speculative sampling: drafts are kept by chance, and every token follows the target's distribution exactly.
//!
//! With `p` the target's distribution at a position and `q` the one the draft `d` was drawn from: keep `d` with
//! probability `min(1, p(d) / q(d))`; at the first draft not kept, draw the token from the residual
//! `max(p - q, 0) / sum(max(p - q, 0))` instead; when all are kept, draw one more from the target (Leviathan, Kalman,
//! Matias 2023, "Fast inference from transformers via speculative decoding"; Chen et al. 2023, "Accelerating large
//! language model decoding with speculative sampling"). A draft is kept with probability `sum(min(p, q))`.
//!
//! Both are distributions after the same bias, penalties, filters and temperature. Each position has noise of its own,
//! by (seed, position, use): one uniform number for a whole round would favour the drafter's taste behind a kept draft.
//! A round's noise behind its first rejection has decided nothing, so the next round may draw with it again.

use mlx_rs::{Array, Dtype, ops, random};

use super::{Counts, Place, Sampler, cell, key};
use crate::Result;
use crate::engine::Acceptance;
use crate::nn::{scalar, slice};

/// What noise is for, beside the target's own draw.
const DRAFT: u64 = 1;
const ACCEPT: u64 = 2;
const RESIDUAL: u64 = 3;

impl Sampler {
    /// The rule that holds: at temperature 0 there is one token to choose, and both rules are equality.
    #[must_use]
    pub fn acceptance(&self, asked: Acceptance) -> Acceptance {
        if self.params.temperature == 0.0 {
            Acceptance::Equality
        } else {
            asked
        }
    }

    /// Draws the draft at `position` from the drafter's scores `[1, 1, V]`. Returns its id `[1, 1]` and the
    /// log-probabilities that it was drawn with, `[V]`.
    ///
    /// # Errors
    /// What MLX says.
    pub fn propose(&self, logits: &Array, position: usize, counts: &Counts) -> Result<(Array, Array)> {
        self.propose_at(logits, &Place::At(position), counts)
    }

    pub(super) fn propose_at(&self, logits: &Array, place: &Place<'_>, counts: &Counts) -> Result<(Array, Array)> {
        let (scores, good) = self.scores(logits, counts)?;
        let log_q = self.log_distribution(&scores)?;
        let id = self.draw(&log_q, place, DRAFT)?;
        // A drafter whose scores are no distribution still names a token. Taken as certain, it is judged rightly.
        let certain = ops::select(self.is(&id)?, scalar(0.0, Dtype::Float32)?, nothing()?)?;
        Ok((id, ops::select(good, log_q, certain)?))
    }

    /// Judges `drafts` `[1, K]`, drawn with the log-probabilities `proposals`, by the target's scores `logits`
    /// `[1, K + 1, V]`. Entry `i` is the draft at `first + i` if it is kept, else a token other than it, drawn in its
    /// place; the last one is drawn freely. Entries behind the first that is not the draft mean nothing. The history of
    /// entry `i` is `counts` and the first `i` drafts. Returns ids and flags as [`Sampler::choose_rows`] does.
    ///
    /// # Errors
    /// What MLX says.
    pub fn judge_rows(
        &self,
        logits: &Array,
        first: usize,
        drafts: &Array,
        proposals: &[Array],
        counts: &Counts,
    ) -> Result<(Array, Array)> {
        let (mut ids, mut flags) = (Vec::new(), Vec::new());
        let mut counts = counts.clone();
        let mut position = first;
        let mut at = 0;
        for log_q in proposals {
            let draft = slice(drafts, 1, at, at + 1)?;
            let (id, good) = self.judge(&slice(logits, 1, at, at + 1)?, position, &draft, log_q, &counts)?;
            ids.push(id);
            flags.push(good);
            counts = self.add(&counts, &draft)?;
            position += 1;
            at += 1;
        }
        let (id, good) = self.choose(&slice(logits, 1, at, at + 1)?, position, &counts)?;
        ids.push(id);
        flags.push(good);
        Ok((ops::concatenate(&ids, 1)?, ops::concatenate(&flags, 1)?))
    }

    /// The draft `[1, 1]` if it is kept, else the token in its place; and whether the scores were a distribution.
    fn judge(
        &self,
        logits: &Array,
        position: usize,
        draft: &Array,
        log_q: &Array,
        counts: &Counts,
    ) -> Result<(Array, Array)> {
        let (scores, good) = self.scores(logits, counts)?;
        let log_p = self.log_distribution(&scores)?;

        // 1. Keep it when ln u < ln p(d) - ln q(d); q(d) > 0, since d was drawn. A draft that the target's filters
        //    leave out is never kept, not even by u = 0: -inf is not below -inf.
        let id = draft.reshape(&[1])?;
        let ratio = log_p.take_axis(&id, 0)?.subtract(log_q.take_axis(&id, 0)?)?;
        let u = random::uniform::<_, f32>(0.0, 1.0, &[1][..], &key(self.params.seed, position, ACCEPT))?;
        let kept = u.log()?.lt(&ratio)?;

        // 2. The residual: ln(p - q) = ln p + ln(1 - q / p) where p > q. Elsewhere the difference may be NaN and is not
        //    looked at.
        let excess = ops::expm1(log_q.subtract(&log_p)?)?.negative()?.log()?;
        let residual = ops::select(log_q.lt(&log_p)?, log_p.add(excess)?, nothing()?)?;

        // 3. Where p and q are so close that rounding leaves no residual, p takes its place. A draft that is not kept has
        //    p(d) <= q(d) and no part in the residual; in p it has one, which is taken out.
        let is_left = residual.max_axis(-1, true)?.gt(nothing()?)?;
        let weights = ops::select(is_left, residual, log_p)?;
        let weights = ops::select(self.is(draft)?, nothing()?, weights)?;
        let other = self.draw(&weights, &Place::At(position), RESIDUAL)?;

        Ok((ops::select(kept, draft, other)?, cell(&good)?))
    }

    /// What [`Sampler::distribution`] is the exponential of, without reading anything back: `[V]`.
    fn log_distribution(&self, scores: &Array) -> Result<Array> {
        let x = self.filtered(scores)?;
        Ok(x.subtract(x.logsumexp_axis(-1, true)?)?)
    }

    /// Draws from log-weights `[V]` of any sum, by the largest with Gumbel noise: the id, `[1, 1]`.
    fn draw(&self, log_weights: &Array, place: &Place<'_>, salt: u64) -> Result<Array> {
        let noise = random::gumbel::<f32>(&[self.vocabulary][..], &place.key(self.params.seed, salt)?)?;
        // The generator's zero would be noise of -inf, and could let a token of weight 0 win.
        let noise = ops::maximum(noise, scalar(-1e30, Dtype::Float32)?)?;
        cell(&ops::indexing::argmax_axis(log_weights.add(noise)?, -1, true)?)
    }
}

/// The logarithm of 0.
fn nothing() -> Result<Array> {
    scalar(f32::NEG_INFINITY, Dtype::Float32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::{TARGET, mixed};
    use super::*;

    #[test]
    fn the_targets_noise_is_what_it_was_before_there_was_a_salt() {
        assert_eq!(mixed(0, 0, TARGET), 0);
        assert_eq!(mixed(7, 5, TARGET), 0x261F_F00F_1C30_87BD);
    }

    #[test]
    fn no_two_uses_of_noise_share_a_key() {
        let mut seen = HashSet::new();
        for seed in [0, 1, 2, u64::MAX] {
            for position in 0..4096 {
                for salt in [TARGET, DRAFT, ACCEPT, RESIDUAL] {
                    assert!(seen.insert(mixed(seed, position, salt)), "{seed}, {position}, {salt}");
                }
            }
        }
    }
}
