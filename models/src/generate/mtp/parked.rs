//! Rounds without drafts: a plain step of the target, and what the drafter has to be told of it later.

use mlx_rs::{Array, ops, transforms};

use super::{Mtp, Next};
use crate::cache::Snapshot;
use crate::family::{Drafter, Hidden, Target};
use crate::generate::{Round, read_ids};
use crate::nn::rows;
use crate::sampler::Counts;
use crate::{Error, Result};

/// Pairs after which the drafter is fed: one pass over them costs about as much as one over a single pair.
const FEED: usize = 64;

/// A plain step that is queued.
pub(super) struct Step {
    /// The cache before it.
    before: Snapshot,
    /// Of the token that it ran, `[1, 1, H]`.
    hidden: Hidden,
    /// Id and flag of the next token: `[1, 2]`.
    packed: Array,
}

impl Step {
    pub(super) fn before(&self) -> &Snapshot {
        &self.before
    }

    pub(super) fn hidden(&self) -> &Hidden {
        &self.hidden
    }
}

/// Pairs of a hidden state and the token behind it that the drafter has not seen yet.
#[derive(Default)]
pub(super) struct Lag {
    tokens: Vec<Array>,
    hidden: Vec<Array>,
}

impl Lag {
    /// One pair: `[1, 1]` and `[1, 1, H]`.
    pub(super) fn push(&mut self, token: &Array, hidden: &Hidden) {
        self.tokens.push(token.clone());
        self.hidden.push(hidden.array().clone());
    }

    /// All of them, `[1, n]` and `[1, n, H]`; `None` if there are none.
    fn take(&mut self) -> Result<Option<(Array, Hidden)>> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let (tokens, hidden) = (std::mem::take(&mut self.tokens), std::mem::take(&mut self.hidden));
        Ok(Some((
            ops::concatenate(&tokens, 1)?,
            Hidden(ops::concatenate(&hidden, 1)?),
        )))
    }
}

impl<T: Target, D: Drafter<T>> Mtp<'_, T, D> {
    /// Tells the drafter, lazily, of what it has not seen.
    pub(super) fn catch_up(&mut self) -> Result<()> {
        let Some((tokens, hidden)) = self.lag.take()? else {
            return Ok(());
        };
        let state = self
            .state
            .as_mut()
            .ok_or_else(|| Error::backend("feeding the drafter after a failed round"))?;
        let _drafting = rows::install(self.at_once.clone());
        self.drafter.absorb(self.target, state, &tokens, &hidden)
    }

    /// Queues a plain step after `token` `[1, 1]`; `position` is that of the token it chooses.
    pub(super) fn step(&mut self, token: &Array, position: usize, counts: &Counts) -> Result<Step> {
        let before = self.cache.snapshot();
        let hidden = self.target.forward(token, &mut self.cache)?;
        let (id, good) = self.sampler.choose(&self.target.logits(&hidden)?, position, counts)?;
        let packed = ops::concatenate(&[id, good], 1)?;
        transforms::async_eval(std::iter::once(&packed).chain(self.cache.arrays()))?;
        Ok(Step { before, hidden, packed })
    }

    /// Ends a plain step. The one behind it is queued before the token is read where it is certain to be plain too.
    pub(super) fn plain(&mut self, step: Step) -> Result<Round> {
        let Step { hidden, packed, .. } = step;
        let id = crate::nn::slice(&packed, 1, 0, 1)?;
        let counts = self.sampler.add(&self.counts, &id)?;
        let remaining = self.limits.max_tokens.saturating_sub(self.given + 1);
        let ahead = if remaining > 0 && self.pace.is_plain_ahead() {
            Some(self.step(&id, self.position + 1, &counts)?)
        } else {
            None
        };
        let read = read_ids(&packed)?;
        let duration_ms = self.pace.lap();
        let &[token, good] = read.as_slice() else {
            return Err(Error::backend("a token has no id"));
        };
        if good == 0 {
            return Err(Error::NonFiniteLogits {
                position: self.position,
            });
        }
        self.lag.push(&id, &hidden);
        self.counts = counts;
        self.given += 1;
        self.position += 1;
        self.pace.record(0, 0, duration_ms);
        if self.limits.eos.contains(&token) {
            self.limits.max_tokens = self.given;
        }
        match ahead {
            Some(step) => self.next = Next::Plain(Box::new(step)),
            None => self.queue(&id)?,
        }
        if self.limits.max_tokens == self.given {
            self.drop_queued()?;
        } else if self.lag.tokens.len() >= FEED {
            self.catch_up()?;
            let state = self.state.as_ref().ok_or_else(|| Error::backend("no drafter state"))?;
            transforms::async_eval(self.drafter.arrays(state))?;
        }
        Ok(Round {
            tokens: vec![token],
            drafted: 0,
            accepted: 0,
            rejected: None,
        })
    }
}
