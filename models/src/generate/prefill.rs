//! Reading a prompt, chunk by chunk, and what is kept of it for the next one.

use std::rc::Rc;

use mlx_rs::{Array, ops, transforms};

use crate::cache::{Cache, Snapshot};
use crate::family::{Drafter, Hidden, Target};
use crate::nn::rows::{self, RowPolicy};
use crate::{Error, Result};

/// Most prompt tokens of one forward pass.
pub const PREFILL_CHUNK: usize = 512;

/// Tokens after which the end of a turn ends a chunk: short turns share one, or long chats would be read in sips.
const LEAST_CHUNK: usize = 64;

/// Marks kept of one sequence.
const MARKS: usize = 4;

/// Where the chunks of a prompt end; the last is the end of the prompt.
///
/// Chunk borders change roundings, so they are the same with and without a drafter, and the same whether a prefix is
/// still held or read anew: whether there is a border after a token depends on the tokens up to it and on nothing else.
/// A state kept at a border is then, bit for bit, the state that reading would give again. Borders are at the ends of
/// turns, where the next prompt of a conversation departs from this one.
#[must_use]
pub fn chunk_ends(prompt: &[u32], turn_ends: &[u32]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    for (i, token) in prompt.iter().enumerate() {
        let rows = i + 1 - start;
        if rows == PREFILL_CHUNK || (rows >= LEAST_CHUNK && turn_ends.contains(token)) {
            start = i + 1;
            ends.push(start);
        }
    }
    if start < prompt.len() {
        ends.push(prompt.len());
    }
    ends
}

/// A point of a sequence to go back to.
struct Mark<M> {
    len: usize,
    is_turn_end: bool,
    snapshot: Snapshot,
    /// The last token's hidden state, `[1, 1, H]`.
    hidden: Hidden,
    /// `None` where the drafter was not fed up to here.
    drafter: Option<M>,
}

impl<M: Clone> Clone for Mark<M> {
    fn clone(&self) -> Self {
        Self {
            len: self.len,
            is_turn_end: self.is_turn_end,
            snapshot: self.snapshot.clone(),
            hidden: self.hidden.clone(),
            drafter: self.drafter.clone(),
        }
    }
}

/// A drafter's state and the wiring it is for.
pub struct Drafted<S> {
    /// Place of the wiring in [`Drafter::wirings`].
    pub wiring: usize,
    /// The state.
    pub state: S,
}

/// Tokens that were read, what target and drafter remember of them, and points to go back to.
pub struct Sequence<T: Target, D: Drafter<T>> {
    tokens: Vec<u32>,
    /// The target's memory of `tokens`.
    pub cache: Cache,
    /// The drafter's memory; it has seen the pairs of all tokens but the last, if it is fed.
    pub drafted: Option<Drafted<D::State>>,
    /// The last token's hidden state.
    hidden: Option<Hidden>,
    marks: Vec<Mark<D::Mark>>,
    feeds: bool,
}

impl<T: Target, D: Drafter<T>> Sequence<T, D> {
    /// Nothing read yet. `wiring` is the drafter's; `None` leaves it out.
    pub fn new(target: &T, drafter: Option<&D>, wiring: Option<usize>) -> Self {
        Self {
            tokens: Vec::new(),
            cache: target.new_cache(),
            drafted: drafter.zip(wiring).map(|(d, wiring)| Drafted {
                wiring,
                state: d.new_state(wiring),
            }),
            hidden: None,
            marks: Vec::new(),
            feeds: wiring.is_some(),
        }
    }

    /// Tokens read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The last token's hidden state, `[1, 1, H]`.
    ///
    /// # Errors
    /// Nothing was read.
    pub fn hidden(&self) -> Result<&Hidden> {
        self.hidden.as_ref().ok_or_else(|| Error::Usage {
            message: "the prompt is empty".to_owned(),
        })
    }

    /// Reads one chunk of a prompt.
    ///
    /// # Errors
    /// What MLX says; the sequence is then unusable.
    pub fn read_chunk(&mut self, target: &T, drafter: Option<&D>, chunk: &[u32], turn_ends: &[u32]) -> Result<()> {
        // The same on every path, whatever block sizes were found to be exact.
        let _native = rows::install(Rc::new(RowPolicy::native()));
        self.run(target, drafter, chunk)?;
        let last = chunk.last();
        self.mark(drafter, last.is_some_and(|t| turn_ends.contains(t)))?;
        self.settle(drafter)?;
        // One chunk's intermediates at a time.
        Ok(mlx_rs::memory::clear_cache()?)
    }

    /// Reads a block of tokens that were generated before, the way they were generated: in single steps, or, if the block
    /// is no longer than what was found to equal them, at once.
    ///
    /// # Errors
    /// As [`Sequence::read_chunk`].
    pub fn replay(&mut self, target: &T, drafter: Option<&D>, block: &[u32]) -> Result<()> {
        self.run(target, drafter, block)?;
        self.settle(drafter)
    }

    /// The last chunk of a prompt, which leaves no mark: its end is no border of a longer prompt.
    ///
    /// # Errors
    /// As [`Sequence::read_chunk`].
    pub fn read_last(&mut self, target: &T, drafter: Option<&D>, chunk: &[u32]) -> Result<()> {
        let _native = rows::install(Rc::new(RowPolicy::native()));
        self.run(target, drafter, chunk)
    }

    fn run(&mut self, target: &T, drafter: Option<&D>, chunk: &[u32]) -> Result<()> {
        let ids = Array::from_slice(chunk, &[1, chunk.len() as i32]);
        let hidden = target.forward(&ids, &mut self.cache)?;
        let n = hidden.len();
        if let (true, Some(drafter), Some(drafted)) = (self.feeds, drafter, &mut self.drafted) {
            // The pair of a position is its hidden state and the token after it, so the last one's waits.
            let (rows, tokens) = match &self.hidden {
                Some(before) if n > 1 => {
                    let earlier = hidden.rows(0, n - 1)?;
                    let rows = ops::concatenate(&[before.array(), earlier.array()], 1)?;
                    (Some(Hidden(rows)), chunk)
                }
                Some(before) => (Some(before.clone()), chunk),
                None if n > 1 => (Some(hidden.rows(0, n - 1)?), &chunk[1..]),
                None => (None, chunk),
            };
            if let Some(rows) = rows {
                let tokens = Array::from_slice(tokens, &[1, tokens.len() as i32]);
                drafter.absorb(target, &mut drafted.state, &tokens, &rows)?;
            }
        }
        // A copy: the view would hold the whole chunk's rows.
        self.hidden = Some(Hidden(hidden.rows(n - 1, n)?.array().contiguous()?));
        self.tokens.extend_from_slice(chunk);
        Ok(())
    }

    fn mark(&mut self, drafter: Option<&D>, is_turn_end: bool) -> Result<()> {
        let hidden = self.hidden()?.clone();
        let drafted = self.drafted.as_ref().filter(|_| self.feeds);
        self.marks.push(Mark {
            len: self.len(),
            is_turn_end,
            snapshot: self.cache.snapshot(),
            hidden,
            drafter: drafter.zip(drafted).map(|(d, s)| d.mark(&s.state)),
        });
        if self.marks.len() > MARKS {
            // The first is what other conversations share, the last is where this one goes on; between them the ends of
            // turns are worth more than places inside one.
            let between = 1..self.marks.len() - 1;
            let place = between
                .clone()
                .find(|i| !self.marks[*i].is_turn_end)
                .unwrap_or(between.start);
            self.marks.remove(place);
        }
        Ok(())
    }

    fn settle(&self, drafter: Option<&D>) -> Result<()> {
        let drafted = drafter.zip(self.drafted.as_ref());
        let extra = drafted.map(|(d, s)| d.arrays(&s.state)).unwrap_or_default();
        let hidden = self.hidden.iter().map(Hidden::array);
        Ok(transforms::eval(self.cache.arrays().chain(hidden).chain(extra))?)
    }
}

/// Sequences kept between generations, least recently used first.
pub struct Kept<T: Target, D: Drafter<T>> {
    sequences: Vec<Sequence<T, D>>,
    /// Bytes they may hold.
    budget: u64,
}

impl<T: Target, D: Drafter<T>> Kept<T, D> {
    /// Keeps up to this many bytes.
    #[must_use]
    pub fn new(budget: u64) -> Self {
        Self {
            sequences: Vec::new(),
            budget,
        }
    }

    /// A sequence that has read the longest kept prefix of `prompt`, always shorter than it. With a `wiring` the drafter
    /// has seen that prefix too, so wired.
    ///
    /// # Errors
    /// What MLX says.
    pub fn take(
        &mut self,
        prompt: &[u32],
        drafter: Option<&D>,
        wiring: Option<usize>,
    ) -> Result<Option<Sequence<T, D>>> {
        let candidates = self.sequences.iter().enumerate().flat_map(|(i, s)| {
            let fits = s.drafted.as_ref().map(|d| d.wiring) == wiring;
            let usable = move |m: &Mark<D::Mark>| wiring.is_none() || (fits && m.drafter.is_some());
            let marks = s.marks.iter().enumerate().filter(move |(_, m)| usable(m));
            let same = marks.filter(|(_, m)| m.len < prompt.len() && s.tokens.get(..m.len) == prompt.get(..m.len));
            same.map(move |(j, m)| (m.len, i, j))
        });
        let Some((_, i, j)) = candidates.max_by_key(|(len, ..)| *len) else {
            return Ok(None);
        };
        // Going back would lose what another conversation, or another branch of this one, goes on from.
        let loses = j + 1 < self.sequences[i].marks.len();
        let mut sequence = if loses {
            let fork = self.sequences[i].fork(drafter.filter(|_| wiring.is_some()), j)?;
            // Used just now.
            let used = self.sequences.remove(i);
            self.sequences.push(used);
            fork
        } else {
            self.sequences.remove(i)
        };
        sequence.go_back(drafter, j.min(sequence.marks.len().saturating_sub(1)));
        sequence.feeds = wiring.is_some();
        Ok(Some(sequence))
    }

    /// Keeps a sequence as of its last mark, and lets go of what was used least while there is too much. `false` when it
    /// has no mark, or is too large by itself.
    pub fn put(&mut self, mut sequence: Sequence<T, D>, drafter: Option<&D>) -> bool {
        let Some(last) = sequence.marks.len().checked_sub(1) else {
            return false;
        };
        sequence.go_back(drafter, last);
        if sequence.bytes(drafter) > self.budget {
            return false;
        }
        self.sequences.push(sequence);
        while self.bytes(drafter) > self.budget {
            self.sequences.remove(0);
        }
        true
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self, drafter: Option<&D>) -> u64 {
        self.sequences.iter().map(|s| s.bytes(drafter)).sum()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.sequences.clear();
    }
}

impl<T: Target, D: Drafter<T>> Sequence<T, D> {
    fn go_back(&mut self, drafter: Option<&D>, mark: usize) {
        let Some(mark) = self.marks.get(mark).cloned() else {
            return;
        };
        self.marks.retain(|m| m.len <= mark.len);
        self.tokens.truncate(mark.len);
        self.cache.restore(&mark.snapshot);
        self.hidden = Some(mark.hidden);
        // Where the drafter was not fed to the end, it waits at the last mark it was fed to.
        let fed = self.marks.iter().rev().find_map(|m| m.drafter.as_ref());
        match (drafter, &mut self.drafted, fed) {
            (Some(drafter), Some(drafted), Some(fed)) => drafter.back(&mut drafted.state, fed),
            (_, drafted, _) => *drafted = None,
        }
    }

    /// A copy that has read up to a mark and shares nothing that is written to; without a drafter where none is given.
    fn fork(&self, drafter: Option<&D>, mark: usize) -> Result<Self> {
        let mut marks: Vec<_> = self.marks.iter().take(mark + 1).cloned().collect();
        let len = marks.last().map_or(0, |m| m.len);
        let cache = self.cache.copy(len as i32)?;
        let fed = marks.last().and_then(|m| m.drafter.as_ref());
        let drafted = match (drafter, &self.drafted, fed) {
            (Some(drafter), Some(drafted), Some(fed)) => Some(Drafted {
                wiring: drafted.wiring,
                state: drafter.fork(&drafted.state, fed)?,
            }),
            _ => None,
        };
        if drafted.is_none() {
            marks.iter_mut().for_each(|m| m.drafter = None);
        }
        let fork = Self {
            tokens: self.tokens.get(..len).unwrap_or_default().to_vec(),
            cache,
            drafted,
            hidden: self.hidden.clone(),
            marks,
            feeds: false,
        };
        // Now: until it is copied, the original's slabs have two owners and cannot be written in place.
        fork.settle(drafter)?;
        Ok(fork)
    }

    fn bytes(&self, drafter: Option<&D>) -> u64 {
        let drafted = drafter.zip(self.drafted.as_ref());
        let extra = drafted.map(|(d, s)| d.arrays(&s.state)).unwrap_or_default();
        // Keys and values are shared by all marks, and the carried states are those of the last one.
        let slabs = self.cache.layers.iter().flat_map(|l| l.kv.arrays());
        let marks = self.marks.iter().flat_map(|m| m.snapshot.arrays());
        slabs.chain(extra).chain(marks).map(|a| a.nbytes() as u64).sum()
    }
}
