//! The text model.

use mlx_rs::{Array, Dtype};

use super::attention::Band;
use super::config::Config;
use super::layer::{ConvWindows, Layer};
use super::weights::{self, Layout};
use crate::Result;
use crate::cache::{Cache, KvFormat};
use crate::checkpoint::{Checkpoint, Weights};
use crate::family::{self, Hidden, LoadOptions, Verified};
use crate::nn::{Embedding, Linear, rms_norm, scalar, slice};

/// A decoder of sliding and global attention layers, dense or mixtures of experts. Its hidden states are those before
/// the final norm.
#[derive(Debug)]
pub struct Target {
    embed_tokens: Embedding,
    embed_norm: Option<Array>,
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
        let (w, layout) = weights::target(checkpoint, c.tie_word_embeddings, options)?;
        Self::take(w, c, layout, options.kv).map_err(|e| weights::as_written(e, layout))
    }

    fn take(mut w: Weights<'_>, c: Config, layout: Layout, kv: KvFormat) -> Result<Self> {
        let embed_tokens = w.embedding("embed_tokens", c.vocab_size, c.hidden_size)?;
        let embed_norm = match c.use_embed_norm {
            true => Some(w.take_norm("embed_norm.weight", c.hidden_size, false)?),
            false => None,
        };
        let layers = (c.layers.iter().enumerate())
            .map(|(i, layer)| Layer::load(&mut w, &format!("layers.{i}"), *layer, &c, layout))
            .collect::<Result<Vec<_>>>()?;
        let norm = w.take_norm("norm.weight", c.hidden_size, false)?;
        let lm_head = if c.tie_word_embeddings {
            embed_tokens.as_linear()
        } else {
            w.linear("lm_head", c.vocab_size, c.hidden_size)?
        };
        let dtype = w.dtype();
        w.finish()?;
        Ok(Self {
            embed_tokens,
            embed_norm,
            layers,
            norm,
            lm_head,
            config: c,
            dtype,
            kv,
        })
    }

    /// Sizes.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Token vectors as stored, `[1, L]` to `[1, L, H]`.
    pub(super) fn embed(&self, tokens: &Array) -> Result<Array> {
        self.embed_tokens.forward(tokens)
    }

    /// Token vectors as the first layer sees them, `[1, L]` to `[1, L, H]`.
    pub(super) fn embed_normed(&self, tokens: &Array) -> Result<Array> {
        let x = self.embed(tokens)?;
        match &self.embed_norm {
            Some(norm) => rms_norm(&x, Some(norm), self.config.rms_norm_eps),
            None => Ok(x),
        }
    }

    /// The final norm.
    pub(super) fn normed(&self, x: &Array) -> Result<Array> {
        rms_norm(x, Some(&self.norm), self.config.rms_norm_eps)
    }

    /// Scores of rows that are normed as the head wants them: `[1, L, H]` to `[1, L, V]`, tokens only.
    pub(super) fn head(&self, normed: &Array) -> Result<Array> {
        let divisor = scalar(self.config.logits_mup_width_multiplier, normed.dtype())?;
        let logits = self.lm_head.forward(&normed.divide(divisor)?)?;
        slice(&logits, 2, 0, self.config.unpadded_vocab_size)
    }

    fn run(&self, tokens: &Array, cache: &mut Cache) -> Result<(Hidden, Vec<ConvWindows>)> {
        let (c, rows) = (&self.config, tokens.shape()[1]);
        let band = |sliding| Band::new(cache.len, rows, c.attention(sliding), c.log_scaling, self.dtype);
        let (global, local) = (band(false)?, band(true)?);
        let mut x = self.embed_normed(tokens)?;
        let mut windows = Vec::with_capacity(self.layers.len());
        for ((layer, kind), cache) in self.layers.iter().zip(&c.layers).zip(&mut cache.layers) {
            let (out, window) = layer.forward(&x, cache, if kind.sliding { &local } else { &global })?;
            x = out;
            windows.push(window);
        }
        cache.len += rows;
        Ok((Hidden(x), windows))
    }
}

/// What a verified block leaves: the windows of every layer's convolutions.
#[derive(Debug)]
pub struct Capture(Vec<ConvWindows>);

impl family::Target for Target {
    type Capture = Capture;

    fn new_cache(&self) -> Cache {
        Cache::with(self.layers.len(), self.kv)
    }

    fn vocabulary(&self) -> usize {
        self.config.unpadded_vocab_size as usize
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
        self.head(&self.normed(&hidden.0)?)
    }

    fn verify(&self, block: &Array, cache: &mut Cache) -> Result<Verified<Capture>> {
        let snapshot = cache.snapshot();
        let (hidden, windows) = self.run(block, cache)?;
        Ok(Verified {
            hidden,
            snapshot,
            block: block.clone(),
            capture: Capture(windows),
        })
    }

    /// Keys and values go back by length, convolutions by slicing the windows of the pass: nothing is computed again.
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
        for (layer, windows) in cache.layers.iter_mut().zip(&verified.capture.0) {
            layer.kv.trim(len);
            layer.state = windows.states(keep, self.config.sconv_kernel_size)?;
        }
        cache.len = len;
        Ok(())
    }
}
