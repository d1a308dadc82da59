//! Speculative decoding: draft, verify, rewind, commit.
//!
//! A round is queued at once: the draft chain, which never leaves the device, the verify pass, the target's choices, which
//! drafts they keep, and the next round's first draft. Reading drafts and choices together is the round's only wait; the
//! first draft is queued behind what is read, so that the device has work while the host prepares the next round. That
//! round is queued before this one's tokens are handed out. Where drafts do not pay, rounds are plain steps, queued as in
//! plain decoding.

mod pace;
mod parked;
mod say;
#[cfg(test)]
mod tests;

pub use pace::Depth;

use std::rc::Rc;

use mlx_rs::{Array, ops, transforms};

use pace::Pace;
use parked::{Lag, Step};

use super::{Decoder, Limits, Round, accept, read_ids};
use crate::cache::Cache;
use crate::engine::Acceptance;
use crate::family::{Drafter, Hidden, Target, Verified};
use crate::nn::rows::{self, RowPolicy};
use crate::sampler::{Counts, Proposal, Sampler};
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
    next: Next<T::Capture, D::Mark>,
    /// The first draft of the round to come, made behind the one before it.
    first: Option<Proposal>,
    /// How the drafter runs: as it is on every device, since drafts are checked.
    at_once: Rc<RowPolicy>,
}

/// What is queued.
enum Next<C, M> {
    /// The first token after the prompt, or after what was said in the model's place: id and flag, `[1, 2]`.
    First(Array),
    /// The round after a first token `[1, 1]`, which is not queued yet.
    Begin(Array),
    /// A round.
    Round(Box<Pending<C, M>>),
    /// A round without drafts.
    Plain(Box<Step>),
    /// Nothing: the end is reached.
    Nothing,
}

struct Pending<C, M> {
    verified: Verified<C>,
    /// Where the drafter stood before its drafts.
    before: M,
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
            first: None,
            at_once: Rc::new(RowPolicy::native()),
        })
    }

    /// Queues the round after `bonus` `[1, 1]`. A round never drafts more than may still be given out.
    fn queue(&mut self, bonus: &Array) -> Result<()> {
        let remaining = self.limits.max_tokens.saturating_sub(self.given);
        let until_held = self.held_at.saturating_sub(self.given);
        let first = self.first.take();
        self.next = match self.pace.depth().min(remaining).min(until_held) {
            _ if remaining == 0 => Next::Nothing,
            0 => Next::Plain(Box::new(self.step(bonus, self.position, &self.counts.clone())?)),
            drafts => Next::Round(Box::new(self.speculate(bonus, drafts, first)?)),
        };
        Ok(())
    }

    /// Queues the round after a first token, if that is what comes next.
    fn begin(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Begin(bonus) => {
                self.pace.begin();
                self.queue(&bonus)
            }
            next => {
                self.next = next;
                Ok(())
            }
        }
    }

    /// Queues draft and verify, and the draft behind them. `first` is the first draft where it is made already.
    fn speculate(
        &mut self,
        bonus: &Array,
        drafts: usize,
        first: Option<Proposal>,
    ) -> Result<Pending<T::Capture, D::Mark>> {
        self.catch_up()?;
        let state = self
            .state
            .as_mut()
            .ok_or_else(|| Error::backend("drafting after a failed round"))?;
        let (target, drafter, sampler) = (self.target, self.drafter, self.sampler);
        let (position, rule) = (self.position, self.accept);
        let before = drafter.mark(state);
        let mut history = self.counts.clone();
        // What each draft was drawn from, where acceptance asks for it.
        let mut proposals = Vec::new();
        let mut note = |proposal: Proposal| {
            history = sampler.add(&history, &proposal.id)?;
            proposals.extend(proposal.log_q);
            Ok::<_, Error>((proposal.id, history.clone()))
        };
        let (mut first_id, mut counts) = (None, self.counts.clone());
        if let Some(first) = first {
            let (id, history) = note(first)?;
            (first_id, counts) = (Some(id), history);
        }
        let drafting = rows::install(self.at_once.clone());
        let proposed = drafter.draft(target, state, drafts, first_id.as_ref(), &mut |logits, i| {
            let (id, history) = note(sampler.draft(rule, logits, position + i, &counts)?)?;
            counts = history;
            Ok(id)
        })?;
        drop(drafting);
        // The device drafts while the pass is put together.
        transforms::async_eval([&proposed])?;
        let block = ops::concatenate(&[bonus, &proposed], 1)?;
        let verified = self.target.verify(&block, &mut self.cache)?;
        let logits = self.target.logits(&verified.hidden)?;
        let (choices, flags) = if rule == Acceptance::Rejection {
            sampler.judge_rows(&logits, position, &proposed, &proposals, &self.counts)?
        } else {
            sampler.choose_rows(&logits, position, Some(&proposed), &self.counts)?
        };
        let packed = ops::concatenate(&[&proposed, &choices, &flags], 1)?;
        transforms::async_eval(std::iter::once(&packed).chain(self.cache.arrays()))?;

        // Behind what is read: whichever drafts were right, the drafter has seen them, and the next draft is made.
        let drafting = rows::install(self.at_once.clone());
        let outcomes = drafter.foresee(target, state, &verified.hidden, &choices)?;
        let kept = Sampler::kept(&proposed, &choices)?;
        let scores = drafter.scores(target, state, &outcomes.take_axis(&kept, 1)?)?;
        let ahead = sampler.draft_behind(rule, &scores, position, &choices, &kept, &self.counts)?;
        drop(drafting);
        let arrays = drafter.arrays(state).into_iter().chain(&ahead.log_q);
        transforms::async_eval(arrays.chain([&ahead.id]))?;
        self.first = Some(ahead);
        Ok(Pending {
            verified,
            before,
            drafts,
            packed,
        })
    }

    fn first(&mut self, first: &Array) -> Result<Round> {
        // Read before a round is queued: MLX holds whoever queues until little is left to be done, and the first token would
        // seem to take a round and the first round no time.
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
        self.given += 1;
        if !self.limits.eos.contains(&token) {
            self.next = Next::Begin(crate::nn::slice(first, 1, 0, 1)?);
        }
        Ok(Round {
            tokens: vec![token],
            drafted: 0,
            accepted: 0,
            rejected: None,
        })
    }

    fn round(&mut self, pending: &Pending<T::Capture, D::Mark>) -> Result<Round> {
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
        let mut verdict = accept(drafts, choices, most, &self.limits.eos);
        // Rows past the kept ones may score anything: their context was wrong.
        match flags.iter().take(verdict.tokens.len()).position(|good| *good == 0) {
            Some(0) => {
                return Err(Error::NonFiniteLogits {
                    position: self.position,
                });
            }
            // What plain decoding would have given out before it is; the next round begins there.
            Some(row) => verdict.cut(row),
            None => {}
        }
        let keep = verdict.tokens.len();
        // Where a limit cut the round short, the draft behind it is one behind other tokens.
        if keep <= drafts.iter().zip(choices).take_while(|(d, c)| d == c).count() {
            self.first = None;
        }
        self.target.rewind(&mut self.cache, &pending.verified, keep)?;
        let Some(&bonus) = verdict.tokens.last() else {
            return Err(Error::backend("a round without tokens"));
        };
        let state = self.state.take().ok_or_else(|| Error::backend("committing twice"))?;
        self.state = Some(self.drafter.commit(state, keep - 1)?);
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
            rejected: verdict.rejected(drafts),
            tokens: verdict.tokens,
            drafted: k,
            accepted: verdict.accepted,
        })
    }

    /// The drafter's state, for whoever goes on after [`Decoder::finish`].
    pub fn take_state(&mut self) -> Option<D::State> {
        self.state.take()
    }

    /// Takes the drafter back to before a round that was queued, the draft behind it included.
    fn forget_drafts(&mut self, before: &D::Mark) -> Result<()> {
        let state = self
            .state
            .as_mut()
            .ok_or_else(|| Error::backend("going back after a failed round"))?;
        self.drafter.back(state, before);
        self.first = None;
        Ok(())
    }

    /// Undoes a round that was queued and is not wanted.
    fn drop_queued(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Round(pending) => {
                self.target.rewind(&mut self.cache, &pending.verified, 0)?;
                self.forget_drafts(&pending.before)?;
            }
            Next::Plain(step) => self.cache.restore(step.before()),
            Next::First(_) | Next::Begin(_) | Next::Nothing => {}
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
        self.begin()?;
        let round = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::First(first) => self.first(&first)?,
            Next::Round(pending) => self.round(&pending)?,
            Next::Plain(step) => self.plain(*step)?,
            Next::Begin(_) | Next::Nothing => return Ok(None),
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
