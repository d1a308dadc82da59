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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SamplingParams;

    /// Whatever the device finds is kept, the draft is the one that would be made if the host had known.
    #[test]
    fn a_draft_behind_a_round_is_the_one_made_after_it() {
        let (vocabulary, first) = (40, 11);
        let choices = [3u32, 9, 3, 27];
        let logits = mlx_rs::random::normal::<f32>(&[1, 1, vocabulary], None, None, &mlx_rs::random::key(5).unwrap());
        let logits = logits.unwrap().multiply(Array::from_f32(0.5)).unwrap();
        let mut ids = Vec::new();
        for (temperature, frequency_penalty) in [(0.0, 0.0), (0.0, 3.0), (1.5, 0.0), (1.5, 0.7)] {
            let params = SamplingParams {
                temperature,
                frequency_penalty,
                seed: 4,
                // Which of these comes next is the history's affair.
                logit_bias: vec![
                    (3, 3.0 * frequency_penalty),
                    (9, 2.7 * frequency_penalty),
                    (27, 2.3 * frequency_penalty),
                ],
                ..SamplingParams::default()
            };
            let sampler = Sampler::new(&params, vocabulary as usize).unwrap();
            for rule in [Acceptance::Equality, Acceptance::Rejection] {
                let rule = sampler.acceptance(rule);
                for kept in 0..choices.len() {
                    let mut drafts: Vec<u32> = choices[..3].to_vec();
                    if let Some(draft) = drafts.get_mut(kept) {
                        *draft += 1;
                    }
                    let row = |ids: &[u32]| Array::from_slice(ids, &[1, ids.len() as i32]);
                    let on_device = Sampler::kept(&row(&drafts), &row(&choices)).unwrap();
                    assert_eq!(on_device.clone().item_exact::<i32>(), kept as i32);
                    let before = sampler.count(&[1, 9]);
                    let ahead = sampler.draft_behind(rule, &logits, first, &row(&choices), &on_device, &before);
                    let said = [&[1, 9], &choices[..=kept]].concat();
                    let known = sampler.draft(rule, &logits, first + kept + 1, &sampler.count(&said));
                    let (ahead, known) = (ahead.unwrap(), known.unwrap());
                    let id = ahead.id.item_exact::<u32>();
                    assert_eq!(id, known.id.item_exact::<u32>(), "{temperature}, {rule:?}, {kept}");
                    assert_eq!(ahead.log_q.is_some(), rule == Acceptance::Rejection);
                    ids.push(id);
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() > 6, "the cases can be told apart: {ids:?}");
    }
}
