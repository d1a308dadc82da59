//! One decoder layer: a token mixer and an MLP, each with its norm and residual.

use mlx_rs::{Array, Dtype, ops};

use super::config::{Config, LayerKind};
use super::mlp::Mlp;
use crate::Result;
use crate::cache::LayerCache;
use crate::checkpoint::Weights;
use crate::nn::{self, GatedDeltaInputs, Linear, rms_norm, silu, slice};

/// What a gated delta layer keeps of a verified block: enough to recompute any prefix.
#[derive(Debug)]
pub(super) struct DeltaCapture {
    inputs: GatedDeltaInputs,
    window: Array,
}

/// A decoder layer.
#[derive(Debug)]
pub(super) struct Layer {
    input_layernorm: Array,
    mixer: Mixer,
    post_attention_layernorm: Array,
    mlp: Mlp,
    eps: f32,
}

#[derive(Debug)]
enum Mixer {
    Full(Box<Attention>),
    Linear(Box<GatedDelta>),
}

impl Layer {
    /// Takes the tensors below `path`. `shift` adds the 1 that raw norm weights lack.
    pub(super) fn load(w: &mut Weights<'_>, path: &str, kind: LayerKind, c: &Config, shift: bool) -> Result<Self> {
        let norm =
            |w: &mut Weights<'_>, name: &str| w.take_norm(&format!("{path}.{name}.weight"), c.hidden_size, shift);
        Ok(Self {
            input_layernorm: norm(w, "input_layernorm")?,
            mixer: match kind {
                LayerKind::Full => Mixer::Full(Box::new(Attention::load(w, &format!("{path}.self_attn"), c, shift)?)),
                LayerKind::Linear => Mixer::Linear(Box::new(GatedDelta::load(w, &format!("{path}.linear_attn"), c)?)),
            },
            post_attention_layernorm: norm(w, "post_attention_layernorm")?,
            mlp: Mlp::load(w, &format!("{path}.mlp"), c)?,
            eps: c.rms_norm_eps,
        })
    }

    /// `x` `[1, L, H]` to `[1, L, H]`; a gated delta layer also returns its capture.
    pub(super) fn forward(&self, x: &Array, cache: &mut LayerCache) -> Result<(Array, Option<DeltaCapture>)> {
        self.forward_as(x, cache, None)
    }

    /// As `forward`, with a say in who sees whom for a layer of attention.
    pub(super) fn forward_as(
        &self,
        x: &Array,
        cache: &mut LayerCache,
        sight: Option<&Sight>,
    ) -> Result<(Array, Option<DeltaCapture>)> {
        let h = rms_norm(x, Some(&self.input_layernorm), self.eps)?;
        let (mixed, capture) = match &self.mixer {
            Mixer::Full(attention) => (attention.forward(&h, cache, sight)?, None),
            Mixer::Linear(delta) => {
                let (out, capture) = delta.forward(&h, cache)?;
                (out, Some(capture))
            }
        };
        let x = x.add(mixed)?;
        let h = rms_norm(&x, Some(&self.post_attention_layernorm), self.eps)?;
        Ok((x.add(self.mlp.forward(&h)?)?, capture))
    }
}

/// Rows that are not simply one after the other.
#[derive(Debug)]
pub(super) struct Sight {
    /// Position of the first row.
    pub(super) offset: i32,
    /// The keys that each row sees, `[L, S]`.
    pub(super) seen: Array,
}

/// Softmax attention with normalised queries and keys, partial rotation and an output gate.
#[derive(Debug)]
struct Attention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: Array,
    k_norm: Array,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    rope_dims: i32,
    rope_theta: f32,
    eps: f32,
}

impl Attention {
    fn load(w: &mut Weights<'_>, path: &str, c: &Config, shift: bool) -> Result<Self> {
        let (hidden, d) = (c.hidden_size, c.head_dim);
        let (q, kv) = (c.num_attention_heads * d, c.num_key_value_heads * d);
        Ok(Self {
            q_proj: w.linear(&format!("{path}.q_proj"), 2 * q, hidden)?,
            k_proj: w.linear(&format!("{path}.k_proj"), kv, hidden)?,
            v_proj: w.linear(&format!("{path}.v_proj"), kv, hidden)?,
            o_proj: w.linear(&format!("{path}.o_proj"), hidden, q)?,
            q_norm: w.take_norm(&format!("{path}.q_norm.weight"), d, shift)?,
            k_norm: w.take_norm(&format!("{path}.k_norm.weight"), d, shift)?,
            heads: c.num_attention_heads,
            kv_heads: c.num_key_value_heads,
            head_dim: d,
            rope_dims: c.rope_dims,
            rope_theta: c.rope_theta,
            eps: c.rms_norm_eps,
        })
    }

    fn forward(&self, x: &Array, cache: &mut LayerCache, sight: Option<&Sight>) -> Result<Array> {
        let (rows, d) = (x.shape()[1], self.head_dim);
        // 1. Each head's projection holds D query rows, then D gate rows.
        let qg = self.q_proj.forward(x)?.reshape(&[1, rows, self.heads, 2 * d])?;
        let gate = slice(&qg, 3, d, 2 * d)?.reshape(&[1, rows, self.heads * d])?;
        let k = self.k_proj.forward(x)?.reshape(&[1, rows, self.kv_heads, d])?;
        let v = self.v_proj.forward(x)?.reshape(&[1, rows, self.kv_heads, d])?;
        // 2. Norm, then [1, heads, L, D]; 3. rotate.
        let offset = sight.map_or_else(|| cache.kv.len(), |s| s.offset);
        let place = |a: &Array, norm: &Array| -> Result<Array> {
            let a = rms_norm(a, Some(norm), self.eps)?;
            nn::rotate(&a, self.rope_dims, self.rope_theta, offset)
        };
        let q = place(&slice(&qg, 3, 0, d)?, &self.q_norm)?;
        let k = place(&k, &self.k_norm)?;
        // 4. Attend to everything held, or to what is to be seen of it.
        let (keys, values) = cache.kv.append(&k, &v.swap_axes(1, 2)?)?;
        let scale = (d as f32).powf(-0.5);
        let out = match sight {
            None => nn::attention(&q, &keys, &values, scale)?,
            Some(sight) => nn::attention_where(&q, &keys, &values, scale, &sight.seen)?,
        };
        // 5. Gate and project.
        let out = out.reshape(&[1, rows, self.heads * d])?;
        self.o_proj.forward(&out.multiply(ops::sigmoid(&gate)?)?)
    }
}

/// The gated delta mixer: short convolution, recurrence, gated norm.
#[derive(Debug)]
struct GatedDelta {
    in_proj_qkv: Linear,
    in_proj_z: Linear,
    in_proj_b: Linear,
    in_proj_a: Linear,
    /// `[K, C]`.
    conv: Array,
    dt_bias: Array,
    /// `-exp(A_log)`, f32.
    decay: Array,
    norm: Array,
    out_proj: Linear,
    key_heads: i32,
    value_heads: i32,
    key_dim: i32,
    value_dim: i32,
    eps: f32,
}

impl GatedDelta {
    fn load(w: &mut Weights<'_>, path: &str, c: &Config) -> Result<Self> {
        let (hidden, channels, kernel) = (c.hidden_size, c.conv_channels(), c.linear_conv_kernel_dim);
        let heads = c.linear_num_value_heads;
        let a_log = w.take_as(&format!("{path}.A_log"), &[heads], Dtype::Float32)?;
        Ok(Self {
            in_proj_qkv: w.linear(&format!("{path}.in_proj_qkv"), channels, hidden)?,
            in_proj_z: w.linear(&format!("{path}.in_proj_z"), c.linear_value_width(), hidden)?,
            in_proj_b: w.linear(&format!("{path}.in_proj_b"), heads, hidden)?,
            in_proj_a: w.linear(&format!("{path}.in_proj_a"), heads, hidden)?,
            conv: w.take_conv(&format!("{path}.conv1d.weight"), channels, kernel)?,
            dt_bias: w.take_as(&format!("{path}.dt_bias"), &[heads], Dtype::Float32)?,
            decay: w.settle(a_log.exp()?.negative()?)?,
            norm: w.take_norm(&format!("{path}.norm.weight"), c.linear_value_head_dim, false)?,
            out_proj: w.linear(&format!("{path}.out_proj"), hidden, c.linear_value_width())?,
            key_heads: c.linear_num_key_heads,
            value_heads: heads,
            key_dim: c.linear_key_head_dim,
            value_dim: c.linear_value_head_dim,
            eps: c.rms_norm_eps,
        })
    }

    fn forward(&self, x: &Array, cache: &mut LayerCache) -> Result<(Array, DeltaCapture)> {
        let (rows, kernel) = (x.shape()[1], self.conv.shape()[0]);
        let value_shape = [1, rows, self.value_heads, self.value_dim];
        // 1. Project and convolve.
        let window = nn::conv_window(cache.state.first(), &self.in_proj_qkv.forward(x)?, kernel)?;
        let mixed = silu(&nn::causal_conv(&window, &self.conv, rows)?)?; // [1, L, C]
        // 2. Split into heads.
        let width = self.key_heads * self.key_dim;
        let keys = |from: i32| -> Result<Array> {
            Ok(slice(&mixed, 2, from, from + width)?.reshape(&[1, rows, self.key_heads, self.key_dim])?)
        };
        let (q, k) = (keys(0)?, keys(width)?);
        let v = slice(&mixed, 2, 2 * width, mixed.shape()[2])?.reshape(&value_shape)?;
        // 3. Gates, in f32.
        let float = |a: Array| a.as_dtype(Dtype::Float32);
        let a = float(self.in_proj_a.forward(x)?)?;
        let log_g = nn::softplus(&a.add(&self.dt_bias)?)?.multiply(&self.decay)?;
        let beta = float(ops::sigmoid(self.in_proj_b.forward(x)?)?)?;
        // 4. Recurrence.
        let inputs = GatedDeltaInputs {
            q: self.normalised(&q, 1.0 / self.key_dim as f32)?,
            k: self.normalised(&k, (self.key_dim as f32).powf(-0.5))?,
            v: float(v)?,
            log_g,
            beta,
        };
        let (out, state) = nn::gated_delta(&inputs, cache.state.get(1))?;
        let out = out.as_dtype(x.dtype())?;
        cache.state = vec![nn::conv_carried(&window, rows, kernel)?, state];
        // 5. Norm, gate, project.
        let z = float(self.in_proj_z.forward(x)?.reshape(&value_shape)?)?;
        let normed = rms_norm(&out, Some(&self.norm), self.eps)?;
        let gated = silu(&z)?.multiply(float(normed)?)?.as_dtype(x.dtype())?;
        let out = self
            .out_proj
            .forward(&gated.reshape(&[1, rows, self.value_heads * self.value_dim])?)?;
        Ok((out, DeltaCapture { inputs, window }))
    }

    /// `scale * x / sqrt(mean(x²) + 1e-6 / Dk)`, which is the L2 norm with 1e-6 inside the sum; then one copy of each
    /// key head for each of its value heads. `[1, L, Hk, Dk]` to `[1, L, Hv, Dk]`, f32.
    fn normalised(&self, x: &Array, scale: f32) -> Result<Array> {
        let normed = rms_norm(x, None, 1e-6 / self.key_dim as f32)?;
        let scaled = normed
            .multiply(nn::scalar(scale, x.dtype())?)?
            .as_dtype(Dtype::Float32)?;
        Ok(Array::repeat_axis::<f32>(scaled, self.value_heads / self.key_heads, 2)?)
    }
}

/// The state after the first `keep` rows of a block, recomputed from its capture and the state before it.
pub(super) fn delta_state(capture: &DeltaCapture, before: &[Array], keep: i32) -> Result<Vec<Array>> {
    let kernel = capture.window.shape()[1] - capture.inputs.rows() + 1;
    let (_, state) = nn::gated_delta(&capture.inputs.rows_of(0, keep)?, before.get(1))?;
    Ok(vec![nn::conv_carried(&capture.window, keep, kernel)?, state])
}
