//! The MTP head: a chain of blocks. Block `j` runs over (hidden state, token further on) and predicts the token after
//! that one; its output is the next block's hidden state.

use mlx_rs::{Array, Dtype, ops};

use super::attention::Band;
use super::config::{AttentionShape, Config, LayerConfig, LogScaling, MtpConfig};
use super::head;
use super::layer::{ConvWindows, Layer};
use super::target::Target;
use super::weights::{self, Layout};
use super::wiring::{NAMES, WIRINGS, Wiring};
use crate::cache::{Cache, LayerCache, Snapshot};
use crate::checkpoint::{Checkpoint, Fields, Weights};
use crate::engine::MAX_BLOCK_SIZE;
use crate::family::{self, Hidden, LoadOptions, Pick, Target as _, same};
use crate::nn::{Linear, rms_norm, slice};
use crate::{Error, Result};

/// An MTP head. Embedding, final norm and output head are the target's.
#[derive(Debug)]
pub struct Drafter {
    blocks: Vec<Block>,
    block_size: usize,
}

/// One block: two norms, a projection and a dense decoder layer.
#[derive(Debug)]
struct Block {
    embed_norm: Array,
    hidden_norm: Array,
    input_proj: Linear,
    layer: Layer,
    shape: AttentionShape,
    log_scaling: Option<LogScaling>,
    eps: f32,
}

/// What the head remembers of a sequence.
#[derive(Debug)]
pub struct State {
    wiring: Wiring,
    /// One layer a block.
    cache: Cache,
    /// Each block's output for the last verified pair it has seen, `[1, 1, H]`: what the next block goes on from. The
    /// first draft comes from block 0's.
    last: Vec<Option<Array>>,
    /// The caches before the drafts of this round.
    before: Option<Snapshot>,
    /// The round that waits for its commit: its rows, and what each block that read them has of them.
    foreseen: Option<(i32, Vec<Grown>)>,
}

/// What a pass over new rows left of one block.
#[derive(Debug)]
struct Grown {
    /// Its outputs, `[1, n, H]`; a block further on may have fewer rows than the pass.
    out: Array,
    windows: ConvWindows,
}

impl State {
    /// Its cache.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}

impl Drafter {
    /// Takes every tensor of the head and checks it against the target.
    ///
    /// # Errors
    /// Whatever is wrong with the checkpoint, by name, and [`Error::PairMismatch`].
    pub fn load(checkpoint: &Checkpoint, target: &Target, options: LoadOptions) -> Result<Self> {
        let (t, c) = (target.config(), Config::read(&checkpoint.config)?);
        same("hidden_size", t.hidden_size, c.hidden_size)?;
        same("vocab_size", t.vocab_size, c.vocab_size)?;
        Self::read(checkpoint, target.dtype(), options)
    }

    /// Takes every tensor of the head.
    pub(super) fn read(checkpoint: &Checkpoint, dtype: Dtype, options: LoadOptions) -> Result<Self> {
        let c = Config::read(&checkpoint.config)?;
        let mtp = MtpConfig::read(&checkpoint.config)?;
        let (w, layout) = head::head(checkpoint, dtype, options)?;
        Self::take(w, &c, &mtp, layout).map_err(|e| weights::as_written(e, layout))
    }

    fn take(mut w: Weights<'_>, c: &Config, mtp: &MtpConfig, layout: Layout) -> Result<Self> {
        let count = mtp.blocks.unwrap_or_else(|| block_count(w.names()));
        let blocks = (0..count)
            .map(|j| {
                let path = format!("blocks.{j}");
                let sliding = match &mtp.local_ids {
                    Some(ids) => ids.contains(&(j as i32)),
                    None => sliding_by_shape(&w, &path, c)?,
                };
                Block::load(&mut w, &path, sliding, c, layout)
            })
            .collect::<Result<Vec<_>>>()?;
        // Standalone heads bring a copy of the target's final norm; the target's own is used.
        if w.contains("norm.weight") {
            w.take_norm("norm.weight", c.hidden_size, false)?;
        }
        w.finish()?;
        Ok(Self {
            blocks,
            block_size: mtp.block_size.unwrap_or(count + 2).min(MAX_BLOCK_SIZE),
        })
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether a block's attention sees a window only.
    #[must_use]
    pub fn is_sliding(&self, block: usize) -> bool {
        self.blocks[block].shape.sliding
    }

    /// Runs block `j` over tokens `[1, n]` and hidden states `[1, n, H]`.
    fn run(&self, target: &Target, state: &mut State, j: usize, tokens: &Array, hidden: &Array) -> Result<Grown> {
        let embedded = if state.wiring.embed_normed {
            target.embed_normed(tokens)?
        } else {
            target.embed(tokens)?
        };
        self.blocks[j].forward(&embedded, hidden, &mut state.cache.layers[j])
    }

    /// Scores of a block's output, `[1, n, H]` to `[1, n, V]`.
    fn readout(target: &Target, wiring: Wiring, out: &Array) -> Result<Array> {
        if wiring.readout_normed {
            target.head(&target.normed(out)?)
        } else {
            target.head(out)
        }
    }

    /// Runs pairs through every block that reads the sequence. Block `j` reads the same tokens as block 0, but with the
    /// hidden states of one place earlier for each block before it: the last of the previous call, then all but the last
    /// of this one. What stays of it is for [`Drafter::settle`] to say.
    fn advance(&self, target: &Target, state: &mut State, tokens: &Array, hidden: &Hidden) -> Result<Vec<Grown>> {
        let depths = if state.wiring.every_depth { self.blocks.len() } else { 1 };
        let mut input = if state.wiring.hidden_normed {
            target.normed(&hidden.0)?
        } else {
            hidden.0.clone()
        };
        let mut grown = Vec::new();
        for j in 0..depths {
            let n = input.shape()[1];
            let block = self.run(target, state, j, &last_columns(tokens, n)?, &input)?;
            let earlier = slice(&block.out, 1, 0, n - 1)?;
            grown.push(block);
            input = match &state.last[j] {
                Some(before) => ops::concatenate(&[before, &earlier], 1)?,
                // At the very start the next block has one pair less.
                None if n == 1 => break,
                None => earlier,
            };
        }
        state.cache.len += tokens.shape()[1];
        Ok(grown)
    }

    /// Keeps of a pass all but the last `dropped` rows.
    fn settle(&self, state: &mut State, grown: &[Grown], dropped: i32) -> Result<()> {
        for (j, block) in grown.iter().enumerate() {
            let (n, cache) = (block.out.shape()[1], &mut state.cache.layers[j]);
            // None of them may be this block's, which has fewer at the very start.
            let kept = (n - dropped).max(0);
            cache.kv.trim(cache.kv.len() - (n - kept));
            if kept == 0 {
                cache.state.clear();
                continue;
            }
            if dropped > 0 {
                cache.state = self.blocks[j].layer.states(&block.windows, kept)?;
            }
            // A copy: the view would hold every row's output for as long as a mark does.
            state.last[j] = Some(slice(&block.out, 1, kept - 1, kept)?.contiguous()?);
        }
        state.cache.len -= dropped;
        Ok(())
    }
}

impl Block {
    fn load(w: &mut Weights<'_>, path: &str, sliding: bool, c: &Config, layout: Layout) -> Result<Self> {
        let kind = LayerConfig { sliding, dense: true };
        let hidden = c.hidden_size;
        Ok(Self {
            embed_norm: w.take_norm(&format!("{path}.embed_norm.weight"), hidden, false)?,
            hidden_norm: w.take_norm(&format!("{path}.hidden_norm.weight"), hidden, false)?,
            input_proj: w.linear(&format!("{path}.input_proj"), hidden, 2 * hidden)?,
            layer: Layer::load(w, &format!("{path}.transformer_block"), kind, c, layout)?,
            shape: c.attention(sliding),
            log_scaling: c.log_scaling,
            eps: c.rms_norm_eps,
        })
    }

    /// Token vectors and hidden states `[1, n, H]` to `[1, n, H]`.
    fn forward(&self, embedded: &Array, hidden: &Array, cache: &mut LayerCache) -> Result<Grown> {
        let h = rms_norm(hidden, Some(&self.hidden_norm), self.eps)?;
        let e = rms_norm(embedded, Some(&self.embed_norm), self.eps)?;
        let x = self.input_proj.forward(&ops::concatenate(&[h, e], -1)?)?; // hidden first
        let band = Band::new(cache.kv.len(), x.shape()[1], self.shape, self.log_scaling, x.dtype())?;
        let (out, windows) = self.layer.forward(&x, cache, &band)?;
        Ok(Grown { out, windows })
    }
}

impl family::Drafter<Target> for Drafter {
    type State = State;
    type Mark = (Snapshot, Vec<Option<Array>>);

    fn block_size(&self) -> usize {
        self.block_size
    }

    fn wirings(&self) -> &'static [&'static str] {
        NAMES
    }

    fn new_state(&self, wiring: usize) -> State {
        State {
            wiring: WIRINGS.get(wiring).copied().unwrap_or(WIRINGS[0]),
            cache: Cache::new(self.blocks.len()),
            last: vec![None; self.blocks.len()],
            before: None,
            foreseen: None,
        }
    }

    fn absorb(&self, target: &Target, state: &mut State, tokens: &Array, hidden: &Hidden) -> Result<()> {
        let grown = self.advance(target, state, tokens, hidden)?;
        self.settle(state, &grown, 0)
    }

    fn draft(
        &self,
        target: &Target,
        state: &mut State,
        count: usize,
        first: Option<&Array>,
        pick: &mut Pick<'_>,
    ) -> Result<Array> {
        let (wiring, deepest) = (state.wiring, self.blocks.len() - 1);
        let mut out = (state.last.first().cloned().flatten())
            .ok_or_else(|| Error::backend("drafting before the first verified pair"))?;
        state.before = Some(state.cache.snapshot());
        let mut drafts = vec![match first {
            Some(first) => first.clone(),
            None => pick(&Self::readout(target, wiring, &out)?, 0)?,
        }];
        for i in 1..count {
            if !wiring.every_depth {
                // Block 0 also makes the draft after the one that the verified pairs gave.
                let j = (i - 1).min(deepest);
                out = self.run(target, state, j, &drafts[i - 1], &out)?.out;
            } else if i <= deepest {
                // Block `i` has yet to read the last `i` places, whose tokens are the drafts so far.
                let input = match &state.last[i - 1] {
                    Some(before) if i > 1 => ops::concatenate(&[before, &out], 1)?,
                    _ => out,
                };
                let tokens = last_columns(&ops::concatenate(&drafts, 1)?, input.shape()[1])?;
                out = self.run(target, state, i, &tokens, &input)?.out;
            } else {
                let n = out.shape()[1];
                let input = slice(&out, 1, n - 1, n)?;
                out = self.run(target, state, deepest, &drafts[i - 1], &input)?.out;
            }
            let n = out.shape()[1];
            drafts.push(pick(&Self::readout(target, wiring, &slice(&out, 1, n - 1, n)?)?, i)?);
        }
        Ok(ops::concatenate(&drafts, 1)?)
    }

    /// Drafting leaves no trace: every block goes back, then reads the round with the target's hidden states. A row sees
    /// those before it only, so rows that are dropped later change nothing for those that stay.
    fn foresee(&self, target: &Target, state: &mut State, hidden: &Hidden, choices: &Array) -> Result<Array> {
        if let Some(before) = state.before.take() {
            state.cache.restore(&before);
        }
        let grown = self.advance(target, state, choices, hidden)?;
        let rows =
            (grown.first().map(|block| block.out.clone())).ok_or_else(|| Error::backend("a head without blocks"))?;
        state.foreseen = Some((choices.shape()[1], grown));
        Ok(rows)
    }

    fn scores(&self, target: &Target, state: &State, row: &Array) -> Result<Array> {
        Self::readout(target, state.wiring, row)
    }

    fn commit(&self, mut state: State, kept: usize) -> Result<State> {
        let (rows, grown) = state
            .foreseen
            .take()
            .ok_or_else(|| Error::backend("committing a round that was not foreseen"))?;
        self.settle(&mut state, &grown, rows - 1 - kept as i32)?;
        Ok(state)
    }

    fn mark(&self, state: &State) -> Self::Mark {
        (state.cache.snapshot(), state.last.clone())
    }

    fn back(&self, state: &mut State, (snapshot, last): &Self::Mark) {
        state.cache.restore(snapshot);
        state.last.clone_from(last);
        state.before = None;
        state.foreseen = None;
    }

    fn fork(&self, state: &State, mark: &Self::Mark) -> Result<State> {
        let mut fork = State {
            wiring: state.wiring,
            cache: state.cache.copy(i32::MAX)?,
            last: Vec::new(),
            before: None,
            foreseen: None,
        };
        self.back(&mut fork, mark);
        Ok(fork)
    }

    fn arrays<'s>(&self, state: &'s State) -> Vec<&'s Array> {
        let rows = state
            .foreseen
            .iter()
            .flat_map(|(_, grown)| grown.iter().map(|block| &block.out));
        state
            .cache
            .arrays()
            .chain(state.last.iter().flatten())
            .chain(rows)
            .collect()
    }
}

/// The last `n` of tokens `[1, L]`.
fn last_columns(tokens: &Array, n: i32) -> Result<Array> {
    let all = tokens.shape()[1];
    slice(tokens, 1, all - n, all)
}

/// Blocks by the tensors that are there; a gap shows as a missing tensor later.
fn block_count<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names
        .filter_map(|n| n.strip_prefix("blocks.")?.split('.').next()?.parse::<usize>().ok())
        .max()
        .map_or(1, |last| last.saturating_add(1).min(64))
}

/// Whether a block's bias table has the length of the window, where the config does not say.
fn sliding_by_shape(w: &Weights<'_>, path: &str, c: &Config) -> Result<bool> {
    let table = w.info(&format!("{path}.transformer_block.self_attn.rel_proj"));
    let width = table.and_then(|i| i.shape.last().copied()).unwrap_or_default();
    if c.local.extent == c.global.extent {
        return Err(Fields::error(
            "local_layer_ids",
            "missing",
            "the MTP blocks with a window",
        ));
    }
    Ok(width == c.local.extent as usize)
}
