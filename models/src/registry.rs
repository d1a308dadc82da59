//! A family with its types forgotten: what the engine holds.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use mlx_rs::{Array, Dtype, Stream, with_stream};

use crate::cache::Cache;
use crate::checkpoint::{Checkpoint, Standalone};
use crate::engine::{Acceptance, SamplingParams};
use crate::family::{Drafter, Family, HeadLocation, LoadOptions, Target, wiring_place};
use crate::generate::{
    Costs, Decoder, Depth, Drafted, Kept, Limits, Mtp, Plain, Round, SelfCheck, Sequence, calibrate, chunk_ends,
    self_check,
};
use crate::nn::ffi;
use crate::nn::rows::RowPolicy;
use crate::sampler::Sampler;
use crate::{Error, Result};

/// Loads a target and, from the second checkpoint if there is one, its drafter.
pub type LoadPair = fn(&Checkpoint, Option<&Checkpoint>, LoadOptions) -> Result<Box<dyn Pair>>;

/// One family's row.
pub struct Entry {
    /// Name in messages.
    pub name: &'static str,
    /// Whether a `model_type` is this family's.
    pub knows: fn(&str) -> bool,
    /// Where a checkpoint's head is.
    pub head: fn(&Checkpoint) -> Option<HeadLocation>,
    /// What is in a checkpoint and not used.
    pub notes: fn(&Checkpoint) -> Vec<String>,
    /// Number of decoder layers.
    pub layers: fn(&Checkpoint) -> Result<usize>,
    /// Checks a head on its own, from headers.
    pub check_head: fn(&Checkpoint) -> Result<()>,
    /// The head as a folder of its own.
    pub standalone: fn(&Checkpoint) -> Result<Standalone>,
    /// What to fetch for a target without a head.
    pub head_advice: fn(&Checkpoint) -> Option<String>,
    /// Why a head may be another model's.
    pub pair_doubt: fn(&Checkpoint, &Checkpoint) -> Option<String>,
    /// Loads a target and, from the second checkpoint if there is one, its drafter.
    pub load: LoadPair,
}

impl Entry {
    /// The row of a family.
    #[must_use]
    pub const fn of<F: Family>() -> Self {
        Self {
            name: F::NAME,
            knows: F::knows,
            head: F::head,
            notes: F::notes,
            layers: F::layers,
            check_head: |checkpoint| on_paper(|| F::check_head(checkpoint)),
            standalone: F::standalone,
            head_advice: F::head_advice,
            pair_doubt: F::pair_doubt,
            load: load::<F>,
        }
    }
}

/// Runs what makes arrays that nobody evaluates, on whatever thread asks for it. On the CPU, as the first operation on a
/// device opens a queue there: the thread that looks at a folder may be the main one, whose queue would be closed while
/// the process ends, when CUDA's driver is gone and MLX ends it with an error.
fn on_paper<T>(make: impl FnOnce() -> T) -> T {
    ffi::init();
    with_stream(&Stream::cpu(), make)
}

fn load<F: Family>(target: &Checkpoint, drafter: Option<&Checkpoint>, options: LoadOptions) -> Result<Box<dyn Pair>> {
    if options.dry {
        return on_paper(|| read::<F>(target, drafter, options));
    }
    read::<F>(target, drafter, options)
}

fn read<F: Family>(target: &Checkpoint, drafter: Option<&Checkpoint>, options: LoadOptions) -> Result<Box<dyn Pair>> {
    let loaded = F::load_target(target, options)?;
    let drafter = drafter.map(|d| F::load_drafter(d, &loaded, options)).transpose()?;
    Ok(Box::new(LoadedPair::<F> {
        target: loaded,
        drafter,
        kept: RefCell::new(Kept::new(0)),
    }))
}

/// A target and, perhaps, its drafter.
pub struct LoadedPair<F: Family> {
    /// The target.
    pub target: F::Target,
    /// The drafter.
    pub drafter: Option<F::Drafter>,
    kept: RefCell<Kept<F::Target, F::Drafter>>,
}

/// What a decoder is started with.
pub struct StartRequest<'r> {
    /// The prompt's ids.
    pub prompt: &'r [u32],
    /// Ids that were generated after the prompt before: they are run as they were then, and generation goes on behind.
    pub replay: &'r [u32],
    /// Most of them at once: a block that was found to equal single steps.
    pub replay_rows: usize,
    /// Ids that end a turn inside a prompt.
    pub turn_ends: &'r [u32],
    /// Whether to go on from what is kept of earlier prompts, and to keep this one.
    pub reuse: bool,
    /// Drafts a round; `None` decodes plainly.
    pub depth: Option<Depth>,
    /// When a draft is kept.
    pub accept: Acceptance,
    /// One of [`Pair::wirings`] by name; `None` takes the first.
    pub wiring: Option<&'r str>,
    /// What ends the sequence.
    pub limits: Limits,
    /// Hears how much of prompt and replay is read; first of all, how much of it was kept.
    pub progress: &'r mut dyn FnMut(usize) -> ControlFlow<()>,
}

impl<'r> StartRequest<'r> {
    /// Plain decoding of one prompt, nothing kept.
    #[must_use]
    pub fn new(prompt: &'r [u32], limits: Limits, progress: &'r mut dyn FnMut(usize) -> ControlFlow<()>) -> Self {
        Self {
            prompt,
            replay: &[],
            replay_rows: 1,
            turn_ends: &[],
            reuse: false,
            depth: None,
            accept: Acceptance::default(),
            wiring: None,
            limits,
            progress,
        }
    }
}

/// A loaded pair with its types forgotten.
pub trait Pair {
    /// Token ids are below this.
    fn vocabulary(&self) -> usize;
    /// Most tokens a sequence can hold.
    fn context(&self) -> usize;
    /// The drafter's default block size; `None` without one.
    fn block_size(&self) -> Option<usize>;
    /// Names of the ways the drafter can be wired, the default first; empty without one. They differ in how often drafts
    /// are accepted, never in the text.
    fn wirings(&self) -> &'static [&'static str];
    /// Activation type, by name.
    fn dtype(&self) -> Dtype;
    /// Checks sampling settings.
    ///
    /// # Errors
    /// As [`Sampler::new`].
    fn sampler(&self, params: &SamplingParams) -> Result<Sampler> {
        Sampler::new(params, self.vocabulary())
    }
    /// Whether rows of a block equal single rows on this device, and what has to be done for it.
    ///
    /// # Errors
    /// What MLX says.
    fn self_check(&self, known: Option<&SelfCheck>) -> Result<(SelfCheck, Rc<RowPolicy>)>;
    /// What target passes and draft steps cost here; `None` without a drafter. `most` is the largest block that counts.
    ///
    /// # Errors
    /// What MLX says.
    fn calibrate(&self, most: usize) -> Result<Option<Costs>>;
    /// Reads the prompt and returns the decoder, or `None` when stopped.
    ///
    /// # Errors
    /// What MLX says, and a wiring that the drafter does not have.
    fn start<'a>(&'a self, sampler: &'a Sampler, request: StartRequest<'_>) -> Result<Option<Box<dyn Decoder + 'a>>>;
    /// Scores `[1, 1, V]` of the token after a prompt and `replay`, which is run in single steps as plain decoding runs
    /// it. Nothing is kept.
    ///
    /// # Errors
    /// What MLX says, and ids that are not in the vocabulary.
    fn scores(&self, prompt: &[u32], turn_ends: &[u32], replay: &[u32]) -> Result<Array>;
    /// Reads one chunk of a prompt ahead of its use, going on from what is kept, and keeps it; also into the drafter where
    /// `wiring`, one of [`Pair::wirings`], is given. `false` when there is nothing more to read, or no room to keep it.
    ///
    /// # Errors
    /// What MLX says, and a wiring that the drafter does not have.
    fn read_ahead(&self, prompt: &[u32], turn_ends: &[u32], wiring: Option<&str>) -> Result<bool>;
    /// Sets how many bytes may be kept between generations, and forgets what is kept when it is 0.
    fn keep(&self, budget: u64);
    /// Bytes kept between generations.
    fn kept_bytes(&self) -> u64;
}

impl<F: Family> LoadedPair<F> {
    fn check_ids(&self, ids: &[u32]) -> Result<()> {
        // An id that is not there would read outside the embedding.
        match ids.iter().find(|id| **id as usize >= self.target.vocabulary()) {
            None => Ok(()),
            Some(id) => Err(Error::Usage {
                message: format!("token id {id} is not in the vocabulary of {}", self.target.vocabulary()),
            }),
        }
    }
}

impl<F: Family> Pair for LoadedPair<F> {
    fn vocabulary(&self) -> usize {
        self.target.vocabulary()
    }

    fn context(&self) -> usize {
        self.target.context()
    }

    fn block_size(&self) -> Option<usize> {
        self.drafter.as_ref().map(Drafter::block_size)
    }

    fn wirings(&self) -> &'static [&'static str] {
        self.drafter.as_ref().map_or(&[], Drafter::wirings)
    }

    fn dtype(&self) -> Dtype {
        self.target.dtype()
    }

    fn self_check(&self, known: Option<&SelfCheck>) -> Result<(SelfCheck, Rc<RowPolicy>)> {
        self_check(&self.target, known)
    }

    fn calibrate(&self, most: usize) -> Result<Option<Costs>> {
        let drafter = self.drafter.as_ref();
        drafter.map(|d| calibrate(&self.target, d, most)).transpose()
    }

    fn start<'a>(&'a self, sampler: &'a Sampler, request: StartRequest<'_>) -> Result<Option<Box<dyn Decoder + 'a>>> {
        let StartRequest {
            prompt,
            replay,
            replay_rows,
            turn_ends,
            reuse,
            depth,
            accept,
            wiring,
            limits,
            progress,
        } = request;
        self.check_ids(prompt)?;
        self.check_ids(replay)?;
        let (target, drafter) = (&self.target, self.drafter.as_ref());
        let speculative = drafter.zip(depth);
        let wiring = match &speculative {
            Some((drafter, _)) => Some(wiring_place(drafter.wirings(), wiring)?),
            None => None,
        };
        let mut kept = self.kept.borrow_mut();
        let known = if reuse {
            kept.take(prompt, drafter, wiring)?
        } else {
            None
        };
        drop(kept);
        let mut sequence = known.unwrap_or_else(|| Sequence::new(target, drafter, wiring));
        let whole: Vec<u32>;
        let mut stopped = progress(sequence.len()).is_break();
        for end in chunk_ends(prompt, turn_ends) {
            if stopped {
                break;
            }
            let Some(chunk) = prompt.get(sequence.len()..end).filter(|c| !c.is_empty()) else {
                continue;
            };
            if end < prompt.len() {
                sequence.read_chunk(target, drafter, chunk, turn_ends)?;
            } else {
                sequence.read_last(target, drafter, chunk)?;
            }
            stopped = progress(end).is_break();
        }
        for block in replay.chunks(replay_rows.max(1)) {
            if stopped {
                break;
            }
            sequence.replay(target, drafter, block)?;
            stopped = progress(sequence.len()).is_break();
        }
        if stopped {
            // What was read is no worse for it.
            if reuse {
                self.kept.borrow_mut().put(sequence, drafter);
            }
            return Ok(None);
        }
        let history = if replay.is_empty() {
            prompt
        } else {
            whole = [prompt, replay].concat();
            &whole
        };
        let hidden = sequence.hidden()?.clone();
        let cache = std::mem::replace(&mut sequence.cache, Cache::new(0));
        let decoder = match speculative {
            None => Running::Plain(Plain::new(target, sampler, cache, &hidden, history, limits)?),
            Some((drafter, depth)) => {
                let drafted = sequence.drafted.take();
                let state = drafted
                    .ok_or_else(|| Error::backend("a sequence without its drafter"))?
                    .state;
                let mtp = Mtp::new(
                    target, drafter, sampler, cache, state, &hidden, history, depth, limits, accept,
                )?;
                Running::Mtp(Box::new(mtp))
            }
        };
        Ok(Some(Box::new(Session {
            pair: self,
            decoder,
            sequence: reuse.then_some(sequence),
            wiring,
        })))
    }

    fn scores(&self, prompt: &[u32], turn_ends: &[u32], replay: &[u32]) -> Result<Array> {
        self.check_ids(prompt)?;
        self.check_ids(replay)?;
        let mut sequence = Sequence::<F::Target, F::Drafter>::new(&self.target, None, None);
        for end in chunk_ends(prompt, turn_ends) {
            let Some(chunk) = prompt.get(sequence.len()..end) else {
                continue;
            };
            if end < prompt.len() {
                sequence.read_chunk(&self.target, None, chunk, turn_ends)?;
            } else {
                sequence.read_last(&self.target, None, chunk)?;
            }
        }
        for token in replay.chunks(1) {
            sequence.replay(&self.target, None, token)?;
        }
        self.target.logits(sequence.hidden()?)
    }

    fn read_ahead(&self, prompt: &[u32], turn_ends: &[u32], wiring: Option<&str>) -> Result<bool> {
        self.check_ids(prompt)?;
        let (target, drafter) = (&self.target, self.drafter.as_ref());
        let wiring = match (drafter, wiring) {
            (Some(drafter), Some(name)) => Some(wiring_place(drafter.wirings(), Some(name))?),
            _ => None,
        };
        let mut kept = self.kept.borrow_mut();
        let known = kept.take(prompt, drafter, wiring)?;
        let mut sequence = known.unwrap_or_else(|| Sequence::new(target, drafter, wiring));
        let ends = chunk_ends(prompt, turn_ends);
        // The last chunk may go on in the prompt that comes.
        let borders = ends.split_last().map_or(&[][..], |(_, borders)| borders);
        let held = sequence.len();
        let mut ahead = borders.iter().filter(|end| **end > held);
        if let Some(chunk) = ahead.next().and_then(|end| prompt.get(held..*end)) {
            sequence.read_chunk(target, drafter, chunk, turn_ends)?;
        }
        let more = ahead.next().is_some();
        Ok(kept.put(sequence, drafter) && more)
    }

    fn keep(&self, budget: u64) {
        *self.kept.borrow_mut() = Kept::new(budget);
    }

    fn kept_bytes(&self) -> u64 {
        self.kept.borrow().bytes(self.drafter.as_ref())
    }
}

/// One generation of a pair: its decoder, and the sequence that it goes on from.
struct Session<'a, F: Family> {
    pair: &'a LoadedPair<F>,
    decoder: Running<'a, F>,
    /// What is kept afterwards, without the cache and state that decode, and the drafter's wiring if it drafts.
    sequence: Option<Sequence<F::Target, F::Drafter>>,
    wiring: Option<usize>,
}

enum Running<'a, F: Family> {
    Plain(Plain<'a, F::Target>),
    Mtp(Box<Mtp<'a, F::Target, F::Drafter>>),
}

impl<F: Family> Decoder for Session<'_, F> {
    fn next_round(&mut self) -> Result<Option<Round>> {
        match &mut self.decoder {
            Running::Plain(plain) => plain.next_round(),
            Running::Mtp(mtp) => mtp.next_round(),
        }
    }

    fn hold(&mut self, tokens: usize) {
        match &mut self.decoder {
            Running::Plain(plain) => plain.hold(tokens),
            Running::Mtp(mtp) => mtp.hold(tokens),
        }
    }

    fn say(&mut self, ids: &[u32], rows: usize) -> Result<()> {
        match &mut self.decoder {
            Running::Plain(plain) => plain.say(ids, rows),
            Running::Mtp(mtp) => mtp.say(ids, rows),
        }
    }

    fn finish(&mut self) -> Result<Cache> {
        let cache = match &mut self.decoder {
            Running::Plain(plain) => plain.finish()?,
            Running::Mtp(mtp) => mtp.finish()?,
        };
        if let Some(mut sequence) = self.sequence.take() {
            sequence.cache = cache.clone();
            if let (Running::Mtp(mtp), Some(wiring)) = (&mut self.decoder, self.wiring) {
                sequence.drafted = mtp.take_state().map(|state| Drafted { wiring, state });
            }
            self.pair.kept.borrow_mut().put(sequence, self.pair.drafter.as_ref());
        }
        Ok(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is only looked at opens no queue on the device that models run on.
    #[test]
    fn what_is_made_on_paper_is_made_on_the_cpu() {
        let stream = || mlx_rs::thread_local_default_stream();
        assert!(stream().is_none());
        on_paper(|| assert_eq!(stream(), Some(Stream::cpu())));
        assert!(stream().is_none());
    }
}
