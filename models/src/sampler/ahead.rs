//! The draft behind a round whose outcome is still on the device.

use mlx_rs::{Array, Dtype};

use super::{Counts, Place, Sampler};
use crate::Result;
use crate::engine::Acceptance;
use crate::nn::slice;

/// A draft and, where drafts are kept by chance, the log-probabilities `[V]` that it was drawn with.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// Its id, `[1, 1]` u32.
    pub id: Array,
    /// What it was drawn from.
    pub log_q: Option<Array>,
}

impl Sampler {
    /// Drafts the token at `position` from the drafter's scores `[1, 1, V]`, under either rule.
    ///
    /// # Errors
    /// What MLX says.
    pub fn draft(&self, rule: Acceptance, logits: &Array, position: usize, counts: &Counts) -> Result<Proposal> {
        self.draft_at(rule, logits, &Place::At(position), counts)
    }

    /// How many of `drafts` `[1, K]` a round keeps, by the target's `choices` `[1, K + 1]`: `[1]` i32.
    ///
    /// # Errors
    /// What MLX says.
    pub fn kept(drafts: &Array, choices: &Array) -> Result<Array> {
        let most = drafts.shape()[1];
        let right = drafts.eq(slice(choices, 1, 0, most)?)?.as_dtype(Dtype::Int32)?;
        Ok(right.cumprod(-1, false, true)?.sum_axis(-1, false)?)
    }

    /// Drafts the token behind a round: behind `kept` `[1]` drafts and the target's choice after them. The round's first
    /// choice stands at `first`, and `counts` is the history before it.
    ///
    /// # Errors
    /// What MLX says.
    pub fn draft_behind(
        &self,
        rule: Acceptance,
        logits: &Array,
        first: usize,
        choices: &Array,
        kept: &Array,
        counts: &Counts,
    ) -> Result<Proposal> {
        let rows = choices.shape()[1];
        let mut history = counts.clone();
        if history.is_some() {
            for i in 0..rows {
                let more = self.add(&history, &slice(choices, 1, i, i + 1)?)?;
                let counts = kept.ge(Array::from_int(i))?;
                history = match (more, history) {
                    (Some(more), Some(before)) => Some(mlx_rs::ops::select(counts, more, before)?),
                    _ => None,
                };
            }
        }
        let positions = first + 1..first + 1 + rows as usize;
        self.draft_at(rule, logits, &Place::OneOf(positions, kept), &history)
    }

    fn draft_at(&self, rule: Acceptance, logits: &Array, place: &Place<'_>, counts: &Counts) -> Result<Proposal> {
        if rule == Acceptance::Rejection {
            let (id, log_q) = self.propose_at(logits, place, counts)?;
            return Ok(Proposal { id, log_q: Some(log_q) });
        }
        let (id, _) = self.choose_at(logits, place, counts)?;
        Ok(Proposal { id, log_q: None })
    }
}
