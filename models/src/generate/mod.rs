//! How tokens come out. Knows the traits of a family, never a family.

mod accept;
mod calibrate;
mod controller;
mod mtp;
mod plain;
mod prefill;
mod said;
mod self_check;

pub use accept::{Verdict, accept};
pub use calibrate::calibrate;
pub use controller::{Controller, ControllerState, Costs, RoundOutcome};
pub use mtp::{Depth, Mtp};
pub use plain::Plain;
pub use prefill::{Drafted, Kept, PREFILL_CHUNK, Sequence, chunk_ends};
pub use self_check::{OpVerdict, SelfCheck, find_ways, self_check};

use std::cell::Cell;
use std::time::Instant;

use mlx_rs::Array;

use crate::cache::Cache;
use crate::{Error, Result};

/// One step of a decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// New tokens, the first end token last.
    pub tokens: Vec<u32>,
    /// Drafts proposed.
    pub drafted: usize,
    /// Drafts among `tokens`.
    pub accepted: usize,
    /// The first draft that was rejected; the last of `tokens` took its place.
    pub rejected: Option<u32>,
}

/// Gives out tokens round by round.
pub trait Decoder {
    /// The next round; `None` when the limit is reached or an end token was given out.
    ///
    /// # Errors
    /// [`Error::NonFiniteLogits`] and what MLX says; the sequence's caches are then unusable.
    fn next_round(&mut self) -> Result<Option<Round>>;

    /// From now on no round goes past `tokens` more tokens, at least one, until this is called again.
    fn hold(&mut self, tokens: usize);

    /// Goes on as if `ids` had been chosen after the last token given out; they count as given out. Up to `rows` of them
    /// are run at once: a block that was found to equal single steps. Between rounds, after the first, and with fewer ids
    /// than may still be given out.
    ///
    /// # Errors
    /// As [`Decoder::next_round`].
    fn say(&mut self, ids: &[u32], rows: usize) -> Result<()>;

    /// Drops work that was queued ahead and leaves a cache that holds everything but the last token given out; right after
    /// [`Decoder::say`] it holds that one too.
    ///
    /// # Errors
    /// What MLX says.
    fn finish(&mut self) -> Result<Cache>;
}

/// What ends a sequence, as far as ids tell.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Most tokens to give out.
    pub max_tokens: usize,
    /// End tokens; empty to ignore them.
    pub eos: Vec<u32>,
}

thread_local! {
    static SYNCS: Cell<usize> = const { Cell::new(0) };
    static READ_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// How often this thread has waited for the device to read a result. One a round is an invariant.
#[must_use]
pub fn sync_count() -> usize {
    SYNCS.with(Cell::get)
}

/// When this thread last read a result: the moment at which the tokens of a round were known, before anything was made of them.
#[must_use]
pub fn read_at() -> Option<Instant> {
    READ_AT.with(Cell::get)
}

/// Waits for ids and reads them: the only place in decoding that does.
fn read_ids(ids: &Array) -> Result<Vec<u32>> {
    SYNCS.with(|s| s.set(s.get() + 1));
    ids.eval()?;
    READ_AT.with(|at| at.set(Some(Instant::now())));
    ids.try_as_slice::<u32>()
        .map(<[u32]>::to_vec)
        .map_err(|e| Error::backend(&e.to_string()))
}
