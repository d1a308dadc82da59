//! The text model.

use mlx_rs::{Array, Dtype};

use super::config::Config;
use super::layer::{DeltaCapture, Layer, delta_state};
use super::weights;
use crate::Result;
use crate::cache::{Cache, KvFormat};
use crate::checkpoint::Checkpoint;
use crate::family::{self, Hidden, LoadOptions, Verified};
use crate::nn::{Embedding, Linear, rms_norm};

/// A dense or mixture-of-experts hybrid of gated delta and full attention layers.
#[derive(Debug)]
pub struct Target {
    embed_tokens: Embedding,
    layers: Vec<Layer>,
    norm: Array,
    lm_head: Linear,
    config: Config,
    dtype: Dtype,
    kv: KvFormat,
}

impl Target {
    /// Takes every tensor of the text model.
    ///
    /// # Errors
    /// Whatever is wrong with the checkpoint, by name.
    pub fn load(checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let c = Config::read(&checkpoint.config)?;
        let taken = weights::target(checkpoint, c.tie_word_embeddings, options)?;
        let (mut w, shift) = (taken.weights, taken.zero_centred);
        let embed_tokens = w.embedding("embed_tokens", c.vocab_size, c.hidden_size)?;
        let layers = (c.layers.iter().enumerate())
            .map(|(i, kind)| Layer::load(&mut w, &format!("layers.{i}"), *kind, &c, shift))
            .collect::<Result<Vec<_>>>()?;
        let norm = w.take_norm("norm.weight", c.hidden_size, shift)?;
        let lm_head = if c.tie_word_embeddings {
            embed_tokens.as_linear()
        } else {
            w.linear("lm_head", c.vocab_size, c.hidden_size)?
        };
        let dtype = w.dtype();
        w.finish()?;
        Ok(Self {
            embed_tokens,
            layers,
            norm,
            lm_head,
            config: c,
            dtype,
            kv: options.kv,
        })
    }

    /// Sizes.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Token vectors, `[1, L]` to `[1, L, H]`.
    pub(super) fn embed(&self, tokens: &Array) -> Result<Array> {
        self.embed_tokens.forward(tokens)
    }

    fn run(&self, tokens: &Array, cache: &mut Cache) -> Result<(Hidden, Vec<Option<DeltaCapture>>)> {
        let mut x = self.embed(tokens)?;
        let mut captures = Vec::with_capacity(self.layers.len());
        for (layer, cache) in self.layers.iter().zip(&mut cache.layers) {
            let (out, capture) = layer.forward(&x, cache)?;
            x = out;
            captures.push(capture);
        }
        cache.len += tokens.shape()[1];
        Ok((
            Hidden(rms_norm(&x, Some(&self.norm), self.config.rms_norm_eps)?),
            captures,
        ))
    }
}

/// What the gated delta layers keep of a verified block.
#[derive(Debug)]
pub struct Capture(Vec<Option<DeltaCapture>>);

impl family::Target for Target {
    type Capture = Capture;

    fn new_cache(&self) -> Cache {
        Cache::with(self.layers.len(), self.kv)
    }

    fn vocabulary(&self) -> usize {
        self.config.vocab_size as usize
    }

    fn context(&self) -> usize {
        self.config.max_position_embeddings as usize
    }

    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn forward(&self, tokens: &Array, cache: &mut Cache) -> Result<Hidden> {
        Ok(self.run(tokens, cache)?.0)
    }

    fn logits(&self, hidden: &Hidden) -> Result<Array> {
        self.lm_head.forward(&hidden.0)
    }

    fn verify(&self, block: &Array, cache: &mut Cache) -> Result<Verified<Capture>> {
        let snapshot = cache.snapshot();
        let (hidden, captures) = self.run(block, cache)?;
        Ok(Verified {
            hidden,
            snapshot,
            block: block.clone(),
            capture: Capture(captures),
        })
    }

    /// Keys and values go back by length, convolutions by slicing their window, recurrent states by running the kept
    /// rows again from the captured inputs: the same steps on the same numbers, so bit for bit what replaying gives.
    fn rewind(&self, cache: &mut Cache, verified: &Verified<Capture>, keep: usize) -> Result<()> {
        let (keep, rows) = (keep as i32, verified.block.shape()[1]);
        if keep == rows {
            return Ok(());
        }
        if keep == 0 {
            cache.restore(&verified.snapshot);
            return Ok(());
        }
        let len = verified.snapshot.len() + keep;
        for (i, (layer, capture)) in cache.layers.iter_mut().zip(&verified.capture.0).enumerate() {
            match capture {
                Some(capture) => layer.state = delta_state(capture, verified.snapshot.state(i), keep)?,
                None => layer.kv.trim(len),
            }
        }
        cache.len = len;
        Ok(())
    }
}
