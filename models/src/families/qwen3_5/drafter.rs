//! The MTP head: one full-attention layer over (hidden of position p, token at p + 1), which predicts the token at
//! p + 2. Further drafts feed its own output back.

use mlx_rs::{Array, Dtype, ops};

use super::config::{Config, LayerKind};
use super::head;
use super::layer::{Layer, Sight};
use super::target::Target;
use crate::cache::{Cache, Snapshot};
use crate::checkpoint::{Checkpoint, Fields};
use crate::family::{self, Hidden, LoadOptions, Pick, Target as _, same};
use crate::nn::{Linear, rms_norm};
use crate::{Error, Result};

/// An MTP head. Embedding and output head are the target's.
#[derive(Debug)]
pub struct Drafter {
    pre_fc_norm_embedding: Array,
    pre_fc_norm_hidden: Array,
    fc: Linear,
    layers: Vec<Layer>,
    norm: Array,
    eps: f32,
    block_size: usize,
}

/// What the head remembers of a sequence.
#[derive(Debug)]
pub struct State {
    cache: Cache,
    /// Output for the last verified pair, `[1, 1, H]`: the first draft comes from it.
    seed: Option<Array>,
    /// Draft steps run since the last commit.
    appended: usize,
    /// The round that waits for its commit: a row for each number of drafts that may be kept, `[1, K + 1, H]`.
    foreseen: Option<Array>,
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
        check_pair(target.config(), &Config::read(&checkpoint.config)?)?;
        Self::read(checkpoint, target.dtype(), options)
    }

    /// Takes every tensor of the head.
    pub(super) fn read(checkpoint: &Checkpoint, dtype: Dtype, options: LoadOptions) -> Result<Self> {
        let c = Config::read(&checkpoint.config)?;
        let top = Fields::new(&checkpoint.config);
        let text = top.object("text_config")?.unwrap_or(top);
        if text.bool("mtp_use_dedicated_embeddings")? == Some(true) {
            return Err(Error::UnsupportedModel {
                message:
                    "`mtp_use_dedicated_embeddings` is true; only heads that share the target's embedding are supported"
                        .to_owned(),
            });
        }
        text.int("mtp_num_hidden_layers", 0, 8)?;
        let taken = head::head(checkpoint, dtype, options)?;
        let (mut w, shift) = (taken.weights, taken.zero_centred);
        let hidden = c.hidden_size;
        let count = layer_count(w.names());
        let layers = (0..count)
            .map(|i| Layer::load(&mut w, &format!("layers.{i}"), LayerKind::Full, &c, shift))
            .collect::<Result<Vec<_>>>()?;
        // Counts the bonus; the field's own default is the number of head layers plus two.
        let block_size = top.int("block_size", 2, 1024)?.map_or(count + 2, |n| n as usize);
        let drafter = Self {
            pre_fc_norm_embedding: w.take_norm("pre_fc_norm_embedding.weight", hidden, shift)?,
            pre_fc_norm_hidden: w.take_norm("pre_fc_norm_hidden.weight", hidden, shift)?,
            fc: w.linear("fc", hidden, 2 * hidden)?,
            layers,
            norm: w.take_norm("norm.weight", hidden, shift)?,
            eps: c.rms_norm_eps,
            block_size: block_size.min(crate::engine::MAX_BLOCK_SIZE),
        };
        w.finish()?;
        Ok(drafter)
    }

    /// Tokens `[1, n]` and hidden states `[1, n, H]` to outputs `[1, n, H]`, final norm included.
    fn run(
        &self,
        target: &Target,
        cache: &mut Cache,
        tokens: &Array,
        hidden: &Array,
        sight: Option<&Sight>,
    ) -> Result<Array> {
        let e = rms_norm(&target.embed(tokens)?, Some(&self.pre_fc_norm_embedding), self.eps)?;
        let h = rms_norm(hidden, Some(&self.pre_fc_norm_hidden), self.eps)?;
        let mut x = self.fc.forward(&ops::concatenate(&[e, h], -1)?)?; // embedding first
        for (layer, cache) in self.layers.iter().zip(&mut cache.layers) {
            x = layer.forward_as(&x, cache, sight)?.0;
        }
        cache.len += tokens.shape()[1];
        rms_norm(&x, Some(&self.norm), self.eps)
    }
}

impl family::Drafter<Target> for Drafter {
    type State = State;
    type Mark = (Snapshot, Option<Array>);

    fn block_size(&self) -> usize {
        self.block_size
    }

    fn new_state(&self, _wiring: usize) -> State {
        State {
            cache: Cache::new(self.layers.len()),
            seed: None,
            appended: 0,
            foreseen: None,
        }
    }

    fn absorb(&self, target: &Target, state: &mut State, tokens: &Array, hidden: &Hidden) -> Result<()> {
        let out = self.run(target, &mut state.cache, tokens, &hidden.0, None)?;
        let n = out.shape()[1];
        // A copy: the view would hold every row's output for as long as a mark does.
        state.seed = Some(crate::nn::slice(&out, 1, n - 1, n)?.contiguous()?);
        state.appended = 0;
        Ok(())
    }

    fn draft(
        &self,
        target: &Target,
        state: &mut State,
        count: usize,
        first: Option<&Array>,
        pick: &mut Pick<'_>,
    ) -> Result<Array> {
        let mut h = state
            .seed
            .clone()
            .ok_or_else(|| Error::backend("drafting before the first verified pair"))?;
        let mut drafts = vec![match first {
            Some(first) => first.clone(),
            None => pick(&self.scores(target, state, &h)?, 0)?,
        }];
        for i in 1..count {
            h = self.run(target, &mut state.cache, &drafts[i - 1], &h, None)?;
            state.appended += 1;
            drafts.push(pick(&self.scores(target, state, &h)?, i)?);
        }
        Ok(ops::concatenate(&drafts, 1)?)
    }

    /// Drafts that are right keep the entries the draft steps made, and only the pair behind them is run with the target's
    /// hidden state: row `i` is that pair after `i` right drafts, and sees `i` of those entries. The last draft has no
    /// entry of its own; its pair is row `K - 1`, which row `K` sees too.
    fn foresee(&self, target: &Target, state: &mut State, hidden: &Hidden, choices: &Array) -> Result<Array> {
        let (rows, steps) = (choices.shape()[1], state.appended as i32);
        let offset = state.cache.len - steps;
        let before = ops::ones::<bool>(&[rows, offset])?;
        let near: Vec<bool> = (0..rows)
            .flat_map(|i| {
                let entries = (0..steps).map(move |j| j < i);
                let own = (0..rows).map(move |j| j == i || (i == rows - 1 && j == steps));
                entries.chain(own)
            })
            .collect();
        let near = Array::from_slice(&near, &[rows, steps + rows]);
        let seen = ops::concatenate(&[before, near], 1)?;
        let out = self.run(
            target,
            &mut state.cache,
            choices,
            &hidden.0,
            Some(&Sight { offset, seen }),
        )?;
        state.foreseen = Some(out.clone());
        Ok(out)
    }

    fn scores(&self, target: &Target, _state: &State, row: &Array) -> Result<Array> {
        target.logits(&Hidden(row.clone()))
    }

    fn commit(&self, mut state: State, kept: usize) -> Result<State> {
        let out = state
            .foreseen
            .take()
            .ok_or_else(|| Error::backend("committing a round that was not foreseen"))?;
        let (kept, rows, steps) = (kept as i32, out.shape()[1], state.appended as i32);
        let first = state.cache.len - rows; // where the foreseen rows begin
        let from = kept.min(steps); // entries of draft steps that stay, and the first row that does
        for layer in &mut state.cache.layers {
            layer.kv.pull(first + from, kept - from + 1, first - steps + from)?;
        }
        state.cache.len = first - steps + kept + 1;
        // A copy: the view would hold every row's output for as long as a mark does.
        state.seed = Some(crate::nn::slice(&out, 1, kept, kept + 1)?.contiguous()?);
        state.appended = 0;
        Ok(state)
    }

    fn mark(&self, state: &State) -> Self::Mark {
        (state.cache.snapshot(), state.seed.clone())
    }

    fn back(&self, state: &mut State, (snapshot, seed): &Self::Mark) {
        state.cache.restore(snapshot);
        state.seed.clone_from(seed);
        state.appended = 0;
        state.foreseen = None;
    }

    fn fork(&self, state: &State, mark: &Self::Mark) -> Result<State> {
        let mut fork = State {
            cache: state.cache.copy(mark.0.len())?,
            seed: None,
            appended: 0,
            foreseen: None,
        };
        self.back(&mut fork, mark);
        Ok(fork)
    }

    fn arrays<'s>(&self, state: &'s State) -> Vec<&'s Array> {
        let rows = state.seed.iter().chain(&state.foreseen);
        state.cache.arrays().chain(rows).collect()
    }
}

/// Layers by the tensors that are there; a gap shows as a missing tensor later.
fn layer_count<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names
        .filter_map(|n| n.strip_prefix("layers.")?.split('.').next()?.parse::<usize>().ok())
        .max()
        .map_or(1, |last| last.saturating_add(1).min(64))
}

fn check_pair(t: &Config, d: &Config) -> Result<()> {
    same("hidden_size", t.hidden_size, d.hidden_size)?;
    same("vocab_size", t.vocab_size, d.vocab_size)?;
    same("num_attention_heads", t.num_attention_heads, d.num_attention_heads)?;
    same("num_key_value_heads", t.num_key_value_heads, d.num_key_value_heads)?;
    same("head_dim", t.head_dim, d.head_dim)
}
