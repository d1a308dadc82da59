//! Speculative decoding: draft, verify, rewind, commit.
//!
//! A round is queued as one graph: the draft chain, which never leaves the device, the verify pass and the target's
//! choices. Reading drafts and choices together is the round's only wait. The next round is queued before this one's
//! tokens are handed out. Where drafts do not pay, rounds are plain steps, queued as in plain decoding.

mod pace;
mod parked;
mod say;

pub use pace::Depth;

use mlx_rs::{Array, ops, transforms};

use pace::Pace;
use parked::{Lag, Step};

use super::{Decoder, Limits, Round, accept, read_ids};
use crate::cache::Cache;
use crate::engine::Acceptance;
use crate::family::{Drafter, Hidden, Target, Verified};
use crate::sampler::{Counts, Sampler};
use crate::{Error, Result};

/// MTP decoding.
pub struct Mtp<'a, T: Target, D: Drafter<T>> {
    target: &'a T,
    drafter: &'a D,
    sampler: &'a Sampler,
    cache: Cache,
    /// `None` only while a commit is under way or after one failed.
    state: Option<D::State>,
    limits: Limits,
    pace: Pace,
    accept: Acceptance,
    /// Pairs that the drafter has not seen.
    lag: Lag,
    /// Occurrences up to and with the bonus.
    counts: Counts,
    /// Position of the token after the bonus.
    position: usize,
    given: usize,
    /// No round goes past this many tokens given out.
    held_at: usize,
    next: Next<T::Capture>,
}

/// What is queued.
enum Next<C> {
    /// The first token after the prompt, or after what was said in the model's place: id and flag, `[1, 2]`.
    First(Array),
    /// A round.
    Round(Box<Pending<C>>),
    /// A round without drafts.
    Plain(Box<Step>),
    /// Nothing: the end is reached.
    Nothing,
}

struct Pending<C> {
    verified: Verified<C>,
    drafts: usize,
    /// Drafts, choices, flags: `[1, K + (K + 1) + (K + 1)]`.
    packed: Array,
}

impl<'a, T: Target, D: Drafter<T>> Mtp<'a, T, D> {
    /// Goes on after a prompt whose last hidden state is `hidden`. `state` has absorbed every pair of the prompt but
    /// the last, whose token is chosen here.
    ///
    /// # Errors
    /// What MLX says.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        target: &'a T,
        drafter: &'a D,
        sampler: &'a Sampler,
        cache: Cache,
        state: D::State,
        hidden: &Hidden,
        prompt: &[u32],
        depth: Depth,
        limits: Limits,
        accept: Acceptance,
    ) -> Result<Self> {
        let counts = sampler.count(prompt);
        let (id, good) = sampler.choose(&target.logits(hidden)?, prompt.len(), &counts)?;
        let mut lag = Lag::default();
        lag.push(&id, hidden);
        let first = ops::concatenate(&[&id, &good], 1)?;
        transforms::async_eval([&first])?;
        let counts = sampler.add(&counts, &id)?;
        Ok(Self {
            target,
            drafter,
            sampler,
            cache,
            state: Some(state),
            limits,
            pace: Pace::new(depth),
            accept: sampler.acceptance(accept),
            lag,
            counts,
            position: prompt.len() + 1,
            given: 0,
            held_at: usize::MAX,
            next: Next::First(first),
        })
    }

    /// Queues the round after `bonus` `[1, 1]`. A round never drafts more than may still be given out.
    fn queue(&mut self, bonus: &Array) -> Result<()> {
        let remaining = self.limits.max_tokens.saturating_sub(self.given);
        let until_held = self.held_at.saturating_sub(self.given);
        self.next = match self.pace.depth().min(remaining).min(until_held) {
            _ if remaining == 0 => Next::Nothing,
            0 => Next::Plain(Box::new(self.step(bonus, self.position, &self.counts.clone())?)),
            drafts => Next::Round(Box::new(self.speculate(bonus, drafts)?)),
        };
        Ok(())
    }

    /// Queues draft and verify.
    fn speculate(&mut self, bonus: &Array, drafts: usize) -> Result<Pending<T::Capture>> {
        self.catch_up()?;
        let state = self
            .state
            .as_mut()
            .ok_or_else(|| Error::backend("drafting after a failed round"))?;
        let (sampler, position) = (self.sampler, self.position);
        let mut history = self.counts.clone();
        // What each draft was drawn from, where acceptance asks for it.
        let mut proposals = Vec::new();
        let by_chance = self.accept == Acceptance::Rejection;
        let proposed = self.drafter.draft(self.target, state, drafts, &mut |logits, i| {
            let id = if by_chance {
                let (id, log_q) = sampler.propose(logits, position + i, &history)?;
                proposals.push(log_q);
                id
            } else {
                sampler.choose(logits, position + i, &history)?.0
            };
            history = sampler.add(&history, &id)?;
            Ok(id)
        })?;
        let block = ops::concatenate(&[bonus, &proposed], 1)?;
        let verified = self.target.verify(&block, &mut self.cache)?;
        let logits = self.target.logits(&verified.hidden)?;
        let (choices, flags) = if by_chance {
            sampler.judge_rows(&logits, position, &proposed, &proposals, &self.counts)?
        } else {
            sampler.choose_rows(&logits, position, Some(&proposed), &self.counts)?
        };
        let packed = ops::concatenate(&[proposed, choices, flags], 1)?;
        let extra = self.drafter.arrays(state);
        transforms::async_eval(std::iter::once(&packed).chain(self.cache.arrays()).chain(extra))?;
        Ok(Pending {
            verified,
            drafts,
            packed,
        })
    }

    fn first(&mut self, first: &Array) -> Result<Round> {
        // Queued before the first token is read: it is the first to be shown, but not the last to be computed.
        let bonus = crate::nn::slice(first, 1, 0, 1)?;
        self.given += 1;
        self.queue(&bonus)?;
        let read = read_ids(first)?;
        self.pace.lap();
        let &[token, good] = read.as_slice() else {
            return Err(Error::backend("a token has no id"));
        };
        if good == 0 {
            return Err(Error::NonFiniteLogits {
                position: self.position - 1,
            });
        }
        if self.limits.eos.contains(&token) {
            self.drop_queued()?;
        }
        Ok(Round {
            tokens: vec![token],
            drafted: 0,
            accepted: 0,
        })
    }

    fn round(&mut self, pending: &Pending<T::Capture>) -> Result<Round> {
        let k = pending.drafts;
        let read = read_ids(&pending.packed)?;
        let duration_ms = self.pace.lap();
        let (drafts, rest) = read
            .split_at_checked(k)
            .ok_or_else(|| Error::backend("a round lacks drafts"))?;
        let (choices, flags) = rest
            .split_at_checked(k + 1)
            .ok_or_else(|| Error::backend("a round lacks choices"))?;
        let until_held = self.held_at.saturating_sub(self.given).max(1);
        let most = until_held.min(self.limits.max_tokens - self.given);
        let verdict = accept(drafts, choices, most, &self.limits.eos);
        // Rows past the kept ones may score anything: their context was wrong.
        if let Some(row) = flags.iter().take(verdict.tokens.len()).position(|good| *good == 0) {
            return Err(Error::NonFiniteLogits {
                position: self.position + row,
            });
        }
        let keep = verdict.tokens.len();
        self.target.rewind(&mut self.cache, &pending.verified, keep)?;
        let Some((&bonus, kept)) = verdict.tokens.split_last() else {
            return Err(Error::backend("a round without tokens"));
        };
        let state = self.state.take().ok_or_else(|| Error::backend("committing twice"))?;
        self.state = Some(
            self.drafter
                .commit(self.target, state, &pending.verified.hidden, kept, bonus)?,
        );
        self.given += keep;
        self.position += keep;
        // Where the text ends, drafts behind the end were neither right nor wrong.
        let judged = if verdict.accepted < keep { k } else { keep };
        // What it took is that of all of them.
        let duration_ms = duration_ms.filter(|_| judged == k);
        self.pace.record(judged, verdict.accepted, duration_ms);
        if self.counts.is_some() {
            for token in &verdict.tokens {
                self.counts = self.sampler.add(&self.counts, &Array::from_slice(&[*token], &[1, 1]))?;
            }
        }
        if self.limits.eos.contains(&bonus) {
            self.limits.max_tokens = self.given;
        }
        self.queue(&Array::from_slice(&[bonus], &[1, 1]))?;
        Ok(Round {
            tokens: verdict.tokens,
            drafted: k,
            accepted: verdict.accepted,
        })
    }

    /// The drafter's state, for whoever goes on after [`Decoder::finish`].
    pub fn take_state(&mut self) -> Option<D::State> {
        self.state.take()
    }

    /// Undoes a round that was queued and is not wanted.
    fn drop_queued(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Round(pending) => self.target.rewind(&mut self.cache, &pending.verified, 0)?,
            Next::Plain(step) => self.cache.restore(step.before()),
            Next::First(_) | Next::Nothing => {}
        }
        Ok(())
    }
}

impl<T: Target, D: Drafter<T>> Decoder for Mtp<'_, T, D> {
    fn next_round(&mut self) -> Result<Option<Round>> {
        if self.given >= self.limits.max_tokens {
            return Ok(None);
        }
        self.pace.enter();
        let round = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::First(first) => self.first(&first)?,
            Next::Round(pending) => self.round(&pending)?,
            Next::Plain(step) => self.plain(*step)?,
            Next::Nothing => return Ok(None),
        };
        self.pace.leave();
        Ok(Some(round))
    }

    fn hold(&mut self, tokens: usize) {
        self.held_at = self.given.saturating_add(tokens.max(1));
    }

    fn say(&mut self, ids: &[u32], rows: usize) -> Result<()> {
        self.say_after_bonus(ids, rows)
    }

    fn finish(&mut self) -> Result<Cache> {
        self.drop_queued()?;
        Ok(self.cache.clone())
    }
}
