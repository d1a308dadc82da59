//! Going on after tokens that were said in the model's place.

use mlx_rs::{Array, ops, transforms};

use super::{Mtp, Next};
use crate::family::{Drafter, Target};
use crate::generate::said::{count_said, run_said};
use crate::{Error, Result};

impl<T: Target, D: Drafter<T>> Mtp<'_, T, D> {
    /// What is queued has run the last token given out; after a first token that is done here. It ends as if the first of
    /// `ids` had been chosen after it, and its drafts had been wrong; nobody has to read them.
    pub(super) fn say_after_bonus(&mut self, ids: &[u32], rows: usize) -> Result<()> {
        let Some(&first) = ids.first() else {
            return Ok(());
        };
        let next = match std::mem::replace(&mut self.next, Next::Nothing) {
            // Nothing has run the first token yet. Nobody wants drafts behind it.
            Next::Begin(bonus) => Next::Plain(Box::new(self.step(&bonus, self.position, &self.counts.clone())?)),
            next => next,
        };
        match next {
            Next::Round(pending) => {
                self.target.rewind(&mut self.cache, &pending.verified, 1)?;
                self.forget_drafts(&pending.before)?;
                self.lag.push(&one(first), &pending.verified.hidden.rows(0, 1)?);
            }
            Next::Plain(step) => self.lag.push(&one(first), step.hidden()),
            Next::First(_) | Next::Begin(_) | Next::Nothing => {
                return Err(Error::backend("saying something before the first round"));
            }
        }
        let read = run_said(self.target, &mut self.cache, ids, rows)?;
        for (hidden, next) in read.iter().zip(&ids[1..]) {
            self.lag.push(&one(*next), hidden);
        }
        let Some(hidden) = read.last() else {
            return Ok(());
        };
        self.counts = count_said(self.sampler, &self.counts, ids)?;
        self.position += ids.len();
        self.given += ids.len();
        let (id, good) = self
            .sampler
            .choose(&self.target.logits(hidden)?, self.position, &self.counts)?;
        self.lag.push(&id, hidden);
        let packed = ops::concatenate(&[&id, &good], 1)?;
        transforms::async_eval(std::iter::once(&packed).chain(self.cache.arrays()))?;
        self.counts = self.sampler.add(&self.counts, &id)?;
        self.position += 1;
        self.next = Next::First(packed);
        Ok(())
    }
}

fn one(id: u32) -> Array {
    Array::from_slice(&[id], &[1, 1])
}
