//! The MLP of a layer: dense, or a mixture of experts that shares its weights between routed and shared ones.

use mlx_rs::{Array, Dtype, ops};

use super::config::{Config, MoeConfig};
use super::weights::Layout;
use crate::checkpoint::{Mode, QuantizationSpec, Weights};
use crate::nn::{Experts, Linear, silu, slice, softplus, top_k};
use crate::{Error, Result};

/// A layer's MLP.
#[derive(Debug)]
pub(super) enum Mlp {
    Dense(Dense),
    Moe(Box<Moe>),
}

impl Mlp {
    /// Takes the tensors below `path`.
    pub(super) fn load(w: &mut Weights<'_>, path: &str, dense: bool, c: &Config, layout: Layout) -> Result<Self> {
        if dense {
            return Ok(Mlp::Dense(Dense::load(w, path, c, layout)?));
        }
        Ok(Mlp::Moe(Box::new(Moe::load(w, path, c.hidden_size, c.moe, layout)?)))
    }

    /// `[1, L, H]` to `[1, L, H]`.
    pub(super) fn forward(&self, x: &Array) -> Result<Array> {
        match self {
            Mlp::Dense(dense) => dense.forward(x),
            Mlp::Moe(moe) => moe.forward(x),
        }
    }
}

/// `global_scale * down(silu(gate(x)) * up(x))`.
#[derive(Debug)]
pub(super) struct Dense {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    global_scale: Array,
}

impl Dense {
    fn load(w: &mut Weights<'_>, path: &str, c: &Config, layout: Layout) -> Result<Self> {
        let (hidden, width) = (c.hidden_size, c.dense_intermediate_size);
        let at = |name: &str| format!("{path}.{name}");
        let (gate_proj, up_proj) = match layout {
            Layout::Raw => {
                let w13 = w.take(&at("w13_dn.weight"), &[2 * width, hidden])?;
                let (gate, up) = halves(w, &w13)?;
                (dense(gate), dense(up))
            }
            Layout::Converted => (
                w.linear(&at("gate_proj"), width, hidden)?,
                w.linear(&at("up_proj"), width, hidden)?,
            ),
        };
        Ok(Self {
            gate_proj,
            up_proj,
            down_proj: w.linear(&at("down_proj"), hidden, width)?,
            global_scale: w.take(&at("global_scale"), &[1])?,
        })
    }

    fn forward(&self, x: &Array) -> Result<Array> {
        let gate = silu(&self.gate_proj.forward(x)?)?;
        let out = self.down_proj.forward(&gate.multiply(self.up_proj.forward(x)?)?)?;
        Ok(out.multiply(&self.global_scale)?)
    }
}

/// A mixture of experts. The chosen routed experts and all shared ones share one softmax.
#[derive(Debug)]
pub(super) struct Moe {
    /// `[E + shared, H]`, f32: routing decides which numbers are computed at all.
    gate: Linear,
    /// Added to the routed experts' scores when choosing, never to their weights: `[E]`, f32.
    correction: Array,
    global_scale: Array,
    experts: Experts,
    /// All shared experts side by side: gate and up `[shared * width, H]`, down `[H, shared * width]`.
    shared_gate: Linear,
    shared_up: Linear,
    shared_down: Linear,
    config: MoeConfig,
}

impl Moe {
    fn load(w: &mut Weights<'_>, path: &str, hidden: i32, c: MoeConfig, layout: Layout) -> Result<Self> {
        let at = |name: &str| format!("{path}.{name}");
        let routed = c.n_routed_experts;
        let (shared_gate, shared_up, shared_down) = match layout {
            Layout::Raw => raw_shared(w, &at("shared_experts"), hidden, c)?,
            Layout::Converted => converted_shared(w, &at("shared_experts"), hidden, c)?,
        };
        let gate = w.take_as(
            &at("gate_weight"),
            &[routed + c.n_shared_experts, hidden],
            Dtype::Float32,
        )?;
        Ok(Self {
            gate: dense(gate),
            correction: w.take_as(&at("e_score_correction_bias"), &[routed], Dtype::Float32)?,
            global_scale: w.take_as(&at("global_scale"), &[1], Dtype::Float32)?,
            experts: match layout {
                Layout::Raw => raw_experts(w, &at("experts"), hidden, c)?,
                Layout::Converted => converted_experts(w, &at("switch_mlp"), hidden, c)?,
            },
            shared_gate,
            shared_up,
            shared_down,
            config: c,
        })
    }

    fn forward(&self, x: &Array) -> Result<Array> {
        let (rows, c) = (x.shape()[1], self.config);
        let (routed, shared, k) = (c.n_routed_experts, c.n_shared_experts, c.num_experts_per_tok);
        // 1. Choose by sigmoid and correction, in f32; lower index first among equals.
        let scores = self.gate.forward(&x.as_dtype(Dtype::Float32)?)?; // [1, L, E + shared]
        let routed_scores = slice(&scores, 2, 0, routed)?;
        let indices = top_k(&ops::sigmoid(&routed_scores)?.add(&self.correction)?, k)?; // [1, L, k]
        // 2. Weigh chosen and shared ones together: softmax of log sigmoid of the plain scores.
        let chosen = routed_scores.take_along_axis(&indices, -1)?;
        let scores = ops::concatenate(&[chosen, slice(&scores, 2, routed, routed + shared)?], -1)?;
        let log_sigmoid = softplus(&scores.negative()?)?.negative()?;
        let weights = ops::softmax_axis(&log_sigmoid, -1, true)?
            .multiply(Array::from_f32(c.route_scale))?
            .multiply(&self.global_scale)?
            .as_dtype(x.dtype())?; // [1, L, k + shared]
        // 3. Routed experts.
        let out = self.experts.forward(x, &indices, &slice(&weights, 2, 0, k)?)?;
        // 4. Shared ones as one wide MLP, each part's activation weighted.
        let active = silu(&self.shared_gate.forward(x)?)?.multiply(self.shared_up.forward(x)?)?;
        let weighted = active
            .reshape(&[1, rows, shared, c.intermediate_size])?
            .multiply(slice(&weights, 2, k, k + shared)?.expand_dims(-1)?)?
            .reshape(&[1, rows, shared * c.intermediate_size])?;
        Ok(out.add(self.shared_down.forward(&weighted)?)?)
    }
}

fn dense(weight: Array) -> Linear {
    Linear::Dense { weight }
}

/// Interleaved rows `[.., 2 * n, in]` to the even ones (gate) and the odd ones (up), `[.., n, in]` each.
fn halves(w: &Weights<'_>, interleaved: &Array) -> Result<(Array, Array)> {
    let mut shape = interleaved.shape().to_vec();
    let at = shape.len() - 2;
    shape[at] /= 2;
    shape.insert(at + 1, 2);
    let pairs = interleaved.reshape(&shape)?;
    let half = |i: i32| -> Result<Array> {
        let rows = slice(&pairs, at + 1, i, i + 1)?.squeeze_axes(&[at as i32 + 1])?;
        w.settle(rows.contiguous()?)
    };
    Ok((half(0)?, half(1)?))
}

/// Published experts: floating, or 4-bit floats with a scale a group of 16 and one more an expert.
fn raw_experts(w: &mut Weights<'_>, path: &str, hidden: i32, c: MoeConfig) -> Result<Experts> {
    let (n, width) = (c.n_routed_experts, c.intermediate_size);
    let (w13, w2) = (format!("{path}.w13_weight"), format!("{path}.w2_weight"));
    if !w.contains(&format!("{w13}.scale2")) {
        let (gate, up) = {
            let both = w.take(&w13, &[n, 2 * width, hidden])?;
            halves(w, &both)?
        };
        return Experts::new(dense(gate), dense(up), dense(w.take(&w2, &[n, hidden, width])?));
    }
    let mut packed = |name: &str, rows: i32, input: i32| -> Result<(Array, Array, Array)> {
        if input % 16 != 0 {
            return Err(Error::QuantizationMismatch {
                tensor: name.to_owned(),
                shape: vec![n as usize, rows as usize, input as usize / 2],
                bits: 4,
                group_size: 16,
            });
        }
        let bytes = w.take_packed(name, &[n, rows, input / 2])?;
        Ok((
            bytes.view_dtype(Dtype::Uint32)?, // [E, rows, in / 8]
            w.take_packed(&format!("{name}.scale"), &[n, rows, input / 16])?,
            w.take_as(&format!("{name}.scale2"), &[n], Dtype::Float32)?,
        ))
    };
    let (w13, w13_scales, gate_scale) = packed(&w13, 2 * width, hidden)?;
    let (w2, w2_scales, down_scale) = packed(&w2, hidden, width)?;
    let linear = |weight: Array, scales: Array| Linear::Quantized {
        weight,
        scales,
        biases: None,
        spec: QuantizationSpec {
            mode: Mode::Nvfp4,
            bits: 4,
            group_size: 16,
        },
    };
    let (gate, up) = halves(w, &w13)?;
    let (gate_scales, up_scales) = halves(w, &w13_scales)?;
    let result_scale = w.settle(gate_scale.multiply(&down_scale)?)?;
    Ok(Experts::new(
        linear(gate, gate_scales),
        linear(up, up_scales),
        linear(w.settle(w2)?, w.settle(w2_scales)?),
    )?
    .with_factors(gate_scale, result_scale))
}

/// Converted experts; their factors are 1 unless the original was published in 4 bits, and may be absent.
fn converted_experts(w: &mut Weights<'_>, path: &str, hidden: i32, c: MoeConfig) -> Result<Experts> {
    let (n, width) = (c.n_routed_experts, c.intermediate_size);
    let experts = Experts::new(
        w.linear_stack(&format!("{path}.gate_proj"), n, width, hidden)?,
        w.linear_stack(&format!("{path}.up_proj"), n, width, hidden)?,
        w.linear_stack(&format!("{path}.down_proj"), n, hidden, width)?,
    )?;
    let (gate, out) = (format!("{path}.gate_scale"), format!("{path}.out_scale"));
    if !w.contains(&gate) && !w.contains(&out) {
        return Ok(experts);
    }
    let gate = w.take_as(&gate, &[n], Dtype::Float32)?;
    Ok(experts.with_factors(gate, w.take_as(&out, &[n], Dtype::Float32)?))
}

fn raw_shared(w: &mut Weights<'_>, path: &str, hidden: i32, c: MoeConfig) -> Result<(Linear, Linear, Linear)> {
    let (n, width) = (c.n_shared_experts, c.intermediate_size);
    let both = w.take(&format!("{path}.shared_w13_weight"), &[n, 2 * width, hidden])?;
    let (gate, up) = halves(w, &both)?;
    let down = dense(w.take(&format!("{path}.shared_w2_weight"), &[n, hidden, width])?);
    Ok((
        rows_joined(w, &dense(gate))?,
        rows_joined(w, &dense(up))?,
        columns_joined(w, &down)?,
    ))
}

/// Side by side already, or one matrix an expert as older conversions have it.
fn converted_shared(w: &mut Weights<'_>, path: &str, hidden: i32, c: MoeConfig) -> Result<(Linear, Linear, Linear)> {
    let (n, width) = (c.n_shared_experts, c.intermediate_size);
    let at = |name: &str| format!("{path}.{name}");
    let stacked = |w: &Weights<'_>, name: &str| {
        let info = w.info(&format!("{}.weight", at(name)));
        info.is_some_and(|i| i.shape.len() == 3)
    };
    let mut rows = |name: &str| -> Result<Linear> {
        if stacked(w, name) {
            let stack = w.linear_stack(&at(name), n, width, hidden)?;
            rows_joined(w, &stack)
        } else {
            w.linear(&at(name), n * width, hidden)
        }
    };
    let (gate, up) = (rows("gate_proj")?, rows("up_proj")?);
    let down = if stacked(w, "down_proj") {
        let stack = w.linear_stack(&at("down_proj"), n, hidden, width)?;
        columns_joined(w, &stack)?
    } else {
        w.linear(&at("down_proj"), hidden, n * width)?
    };
    Ok((gate, up, down))
}

/// The same change of layout for a weight and what goes with it: packed groups run along the input, untouched by it.
fn reshaped(linear: &Linear, change: impl Fn(&Array) -> Result<Array>) -> Result<Linear> {
    Ok(match linear {
        Linear::Dense { weight } => dense(change(weight)?),
        Linear::Quantized {
            weight,
            scales,
            biases,
            spec,
        } => Linear::Quantized {
            weight: change(weight)?,
            scales: change(scales)?,
            biases: biases.as_ref().map(&change).transpose()?,
            spec: *spec,
        },
    })
}

/// `[n, out, in]` to `[n * out, in]`.
fn rows_joined(w: &Weights<'_>, stack: &Linear) -> Result<Linear> {
    reshaped(stack, |a| w.settle(a.reshape(&[-1, a.shape()[2]])?))
}

/// `[n, out, in]` to `[out, n * in]`, the first expert's columns first.
fn columns_joined(w: &Weights<'_>, stack: &Linear) -> Result<Linear> {
    reshaped(stack, |a| {
        let wide = a.transpose_axes(&[1, 0, 2])?.reshape(&[a.shape()[1], -1])?;
        w.settle(wide.contiguous()?)
    })
}
