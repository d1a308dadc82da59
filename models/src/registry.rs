//! A family with its types forgotten: what the engine holds.

use std::ops::ControlFlow;

use mlx_rs::Dtype;

use crate::Result;
use crate::cache::Cache;
use crate::checkpoint::{Checkpoint, Standalone};
use crate::engine::{Acceptance, SamplingParams};
use crate::family::{Drafter, Family, HeadLocation, LoadOptions, Target, wiring_place};
use crate::generate::{Decoder, Limits, Mtp, Plain, prefill};
use crate::sampler::Sampler;

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
            check_head: F::check_head,
            standalone: F::standalone,
            head_advice: F::head_advice,
            pair_doubt: F::pair_doubt,
            load: load::<F>,
        }
    }
}

fn load<F: Family>(target: &Checkpoint, drafter: Option<&Checkpoint>, options: LoadOptions) -> Result<Box<dyn Pair>> {
    let loaded = F::load_target(target, options)?;
    let drafter = drafter.map(|d| F::load_drafter(d, &loaded, options)).transpose()?;
    Ok(Box::new(LoadedPair::<F> {
        target: loaded,
        drafter,
    }))
}

/// A target and, perhaps, its drafter.
pub struct LoadedPair<F: Family> {
    /// The target.
    pub target: F::Target,
    /// The drafter.
    pub drafter: Option<F::Drafter>,
}

/// What a decoder is started with.
pub struct StartRequest<'r> {
    /// The prompt's ids.
    pub prompt: &'r [u32],
    /// Tokens a round with the bonus; `None` decodes plainly.
    pub block_size: Option<usize>,
    /// When a draft is kept.
    pub accept: Acceptance,
    /// One of [`Pair::wirings`] by name; `None` takes the first.
    pub wiring: Option<&'r str>,
    /// What ends the sequence.
    pub limits: Limits,
    /// Hears how much of the prompt is read.
    pub progress: &'r mut dyn FnMut(usize) -> ControlFlow<()>,
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
    /// Reads the prompt and returns the decoder, or `None` when stopped.
    ///
    /// # Errors
    /// What MLX says, and a wiring that the drafter does not have.
    fn start<'a>(&'a self, sampler: &'a Sampler, request: StartRequest<'_>) -> Result<Option<Box<dyn Decoder + 'a>>>;
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

    fn start<'a>(&'a self, sampler: &'a Sampler, request: StartRequest<'_>) -> Result<Option<Box<dyn Decoder + 'a>>> {
        let StartRequest {
            prompt,
            block_size,
            accept,
            wiring,
            limits,
            progress,
        } = request;
        let mut cache: Cache = self.target.new_cache();
        let Some((drafter, block_size)) = self.drafter.as_ref().zip(block_size) else {
            let Some(hidden) = prefill(&self.target, prompt, &mut cache, &mut |done, _, _| Ok(progress(done)))? else {
                return Ok(None);
            };
            return Ok(Some(Box::new(Plain::new(
                &self.target,
                sampler,
                cache,
                &hidden,
                prompt,
                limits,
            )?)));
        };
        let mut state = drafter.new_state(wiring_place(drafter.wirings(), wiring)?);
        let hidden = prefill(&self.target, prompt, &mut cache, &mut |done, hidden, from| {
            // The pair of a position is its hidden state and the token after it; the last one's is not known yet.
            let next = &prompt[from + 1..(done + 1).min(prompt.len())];
            if !next.is_empty() {
                let tokens = mlx_rs::Array::from_slice(next, &[1, next.len() as i32]);
                drafter.absorb(&self.target, &mut state, &tokens, &hidden.rows(0, next.len() as i32)?)?;
                mlx_rs::transforms::async_eval(drafter.arrays(&state))?;
            }
            Ok(progress(done))
        })?;
        let Some(hidden) = hidden else { return Ok(None) };
        Ok(Some(Box::new(Mtp::new(
            &self.target,
            drafter,
            sampler,
            cache,
            state,
            &hidden,
            prompt,
            block_size,
            limits,
            accept,
        )?)))
    }
}
