//! One token a round; the next step is queued before the last token is read.

use mlx_rs::{Array, ops, transforms};

use super::said::{count_said, run_said};
use super::{Decoder, Limits, Round, read_ids};
use crate::cache::{Cache, Snapshot};
use crate::family::{Hidden, Target};
use crate::sampler::{Counts, Sampler};
use crate::{Error, Result};

/// Plain decoding.
pub struct Plain<'a, T: Target> {
    target: &'a T,
    sampler: &'a Sampler,
    cache: Cache,
    limits: Limits,
    counts: Counts,
    /// Position of the queued token in the sequence.
    position: usize,
    given: usize,
    /// Id and flag of the next token, queued: `[1, 2]`.
    queued: Option<Array>,
    /// The cache without the step that was queued ahead.
    before: Option<Snapshot>,
}

impl<'a, T: Target> Plain<'a, T> {
    /// Goes on after a prompt of `prompt` tokens whose last hidden state is `hidden`.
    ///
    /// # Errors
    /// What MLX says.
    pub fn new(
        target: &'a T,
        sampler: &'a Sampler,
        cache: Cache,
        hidden: &Hidden,
        prompt: &[u32],
        limits: Limits,
    ) -> Result<Self> {
        let counts = sampler.count(prompt);
        let queued = choose(target, sampler, hidden, prompt.len(), &counts)?;
        transforms::async_eval([&queued])?;
        Ok(Self {
            target,
            sampler,
            cache,
            limits,
            counts,
            position: prompt.len(),
            given: 0,
            queued: Some(queued),
            before: None,
        })
    }

    fn queue_next(&mut self, queued: &Array) -> Result<()> {
        let token = crate::nn::slice(queued, 1, 0, 1)?;
        self.counts = self.sampler.add(&self.counts, &token)?;
        self.before = Some(self.cache.snapshot());
        let hidden = self.target.forward(&token, &mut self.cache)?;
        self.position += 1;
        let next = choose(self.target, self.sampler, &hidden, self.position, &self.counts)?;
        transforms::async_eval(std::iter::once(&next).chain(self.cache.arrays()))?;
        self.queued = Some(next);
        Ok(())
    }
}

fn choose<T: Target>(
    target: &T,
    sampler: &Sampler,
    hidden: &Hidden,
    position: usize,
    counts: &Counts,
) -> Result<Array> {
    let (id, good) = sampler.choose(&target.logits(hidden)?, position, counts)?;
    Ok(ops::concatenate(&[id, good], 1)?)
}

impl<T: Target> Decoder for Plain<'_, T> {
    fn next_round(&mut self) -> Result<Option<Round>> {
        let Some(queued) = self.queued.take() else {
            return Ok(None);
        };
        if self.given >= self.limits.max_tokens {
            self.queued = Some(queued);
            return Ok(None);
        }
        self.before = None;
        let position = self.position;
        if self.given + 1 < self.limits.max_tokens {
            self.queue_next(&queued)?;
        }
        let read = read_ids(&queued)?;
        let &[token, good] = read.as_slice() else {
            return Err(Error::backend("a token has no id"));
        };
        if good == 0 {
            return Err(Error::NonFiniteLogits { position });
        }
        self.given += 1;
        if self.limits.eos.contains(&token) {
            self.limits.max_tokens = self.given;
        }
        Ok(Some(Round {
            tokens: vec![token],
            drafted: 0,
            accepted: 0,
            rejected: None,
        }))
    }

    /// Its rounds are of one token.
    fn hold(&mut self, _tokens: usize) {}

    fn say(&mut self, ids: &[u32], rows: usize) -> Result<()> {
        // The token chosen after the last one is not wanted; that the last one was run is.
        self.before = None;
        let read = run_said(self.target, &mut self.cache, ids, rows)?;
        let Some(hidden) = read.last() else {
            return Ok(());
        };
        self.counts = count_said(self.sampler, &self.counts, ids)?;
        self.position += ids.len();
        self.given += ids.len();
        let next = choose(self.target, self.sampler, hidden, self.position, &self.counts)?;
        transforms::async_eval(std::iter::once(&next).chain(self.cache.arrays()))?;
        self.queued = Some(next);
        Ok(())
    }

    fn finish(&mut self) -> Result<Cache> {
        if let Some(before) = self.before.take() {
            self.cache.restore(&before);
        }
        self.queued = None;
        Ok(self.cache.clone())
    }
}
