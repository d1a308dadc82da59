//! One decoder layer, of the target and of an MTP block alike.

use mlx_rs::Array;

use super::attention::{Attention, Band};
use super::config::{Config, LayerConfig};
use super::mlp::Mlp;
use super::sconv::ShortConv;
use super::weights::Layout;
use crate::Result;
use crate::cache::LayerCache;
use crate::checkpoint::Weights;
use crate::nn::{conv_carried, rms_norm};

/// The windows of a layer's four convolutions, in the order of their states: keys, values, attention, MLP.
#[derive(Debug)]
pub(super) struct ConvWindows([Array; 4]);

impl ConvWindows {
    /// The states after the first `rows` of the pass that made the windows.
    pub(super) fn states(&self, rows: i32, kernel: i32) -> Result<Vec<Array>> {
        self.0.iter().map(|window| conv_carried(window, rows, kernel)).collect()
    }
}

/// A decoder layer.
#[derive(Debug)]
pub(super) struct Layer {
    input_layernorm: Array,
    attention: Attention,
    attn_sconv: ShortConv,
    post_attention_layernorm: Array,
    mlp: Mlp,
    mlp_sconv: ShortConv,
    kernel: i32,
    eps: f32,
}

impl Layer {
    /// Takes the tensors below `path`.
    pub(super) fn load(
        w: &mut Weights<'_>,
        path: &str,
        layer: LayerConfig,
        c: &Config,
        layout: Layout,
    ) -> Result<Self> {
        let (hidden, kernel) = (c.hidden_size, c.sconv_kernel_size);
        let at = |name: &str| format!("{path}.{name}");
        Ok(Self {
            input_layernorm: w.take_norm(&at("input_layernorm.weight"), hidden, false)?,
            attention: Attention::load(w, &at("self_attn"), c.attention(layer.sliding), c)?,
            attn_sconv: ShortConv::load(w, &at("attn_sconv"), hidden, kernel)?,
            post_attention_layernorm: w.take_norm(&at("post_attention_layernorm.weight"), hidden, false)?,
            mlp: Mlp::load(w, &at("mlp"), layer.dense, c, layout)?,
            mlp_sconv: ShortConv::load(w, &at("mlp_sconv"), hidden, kernel)?,
            kernel,
            eps: c.rms_norm_eps,
        })
    }

    /// The carried states after the first `rows` of the pass that made the windows.
    pub(super) fn states(&self, windows: &ConvWindows, rows: i32) -> Result<Vec<Array>> {
        windows.states(rows, self.kernel)
    }

    /// `x` `[1, L, H]` to `[1, L, H]`.
    pub(super) fn forward(&self, x: &Array, cache: &mut LayerCache, band: &Band) -> Result<(Array, ConvWindows)> {
        // 1. Attention, convolved, added.
        let h = rms_norm(x, Some(&self.input_layernorm), self.eps)?;
        let (mixed, attention) = self.attention.forward(&h, cache, band)?;
        let (mixed, attn_window) = self.attn_sconv.forward(&mixed, cache.state.get(2))?;
        let x = x.add(mixed)?;
        // 2. MLP, convolved, added.
        let h = rms_norm(&x, Some(&self.post_attention_layernorm), self.eps)?;
        let (mixed, mlp_window) = self.mlp_sconv.forward(&self.mlp.forward(&h)?, cache.state.get(3))?;
        let x = x.add(mixed)?;
        // 3. The next pass goes on from the last rows of every window.
        let windows = ConvWindows([attention.k, attention.v, attn_window, mlp_window]);
        cache.state = windows.states(x.shape()[1], self.kernel)?;
        Ok((x, windows))
    }
}
