//! The MLP of a layer: dense, or a mixture of experts with a shared one.

use mlx_rs::{Array, Dtype, ops};

use super::config::{Config, MoeConfig};
use crate::checkpoint::Weights;
use crate::nn::{Experts, Linear, silu, top_k};
use crate::{Error, Result};

/// `down(silu(gate(x)) * up(x))`.
#[derive(Debug)]
pub(super) struct Dense {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

impl Dense {
    fn load(w: &mut Weights<'_>, path: &str, hidden: i32, width: i32) -> Result<Self> {
        Ok(Self {
            gate_proj: w.linear(&format!("{path}.gate_proj"), width, hidden)?,
            up_proj: w.linear(&format!("{path}.up_proj"), width, hidden)?,
            down_proj: w.linear(&format!("{path}.down_proj"), hidden, width)?,
        })
    }

    fn forward(&self, x: &Array) -> Result<Array> {
        let gate = silu(&self.gate_proj.forward(x)?)?;
        self.down_proj.forward(&gate.multiply(self.up_proj.forward(x)?)?)
    }
}

/// A layer's MLP.
#[derive(Debug)]
pub(super) enum Mlp {
    Dense(Dense),
    Moe(Box<Moe>),
}

impl Mlp {
    /// Takes the tensors below `path`.
    pub(super) fn load(w: &mut Weights<'_>, path: &str, c: &Config) -> Result<Self> {
        match (c.moe, c.intermediate_size) {
            (Some(moe), _) => Ok(Mlp::Moe(Box::new(Moe::load(w, path, c.hidden_size, moe)?))),
            (None, Some(width)) => Ok(Mlp::Dense(Dense::load(w, path, c.hidden_size, width)?)),
            (None, None) => Err(Error::TensorMissing {
                name: format!("{path}.gate_proj.weight"),
            }),
        }
    }

    /// `[1, L, H]` to `[1, L, H]`.
    pub(super) fn forward(&self, x: &Array) -> Result<Array> {
        match self {
            Mlp::Dense(dense) => dense.forward(x),
            Mlp::Moe(moe) => moe.forward(x),
        }
    }
}

/// A mixture of experts.
#[derive(Debug)]
pub(super) struct Moe {
    gate: Linear,
    experts: Experts,
    shared_expert: Dense,
    shared_expert_gate: Linear,
    config: MoeConfig,
}

impl Moe {
    fn load(w: &mut Weights<'_>, path: &str, hidden: i32, c: MoeConfig) -> Result<Self> {
        Ok(Self {
            gate: w.linear(&format!("{path}.gate"), c.num_experts, hidden)?,
            experts: experts(w, path, hidden, c)?,
            shared_expert: Dense::load(
                w,
                &format!("{path}.shared_expert"),
                hidden,
                c.shared_expert_intermediate_size,
            )?,
            shared_expert_gate: w.linear(&format!("{path}.shared_expert_gate"), 1, hidden)?,
            config: c,
        })
    }

    fn forward(&self, x: &Array) -> Result<Array> {
        // 1. Route: softmax in f32, the best k, lower index first among equals.
        let scores = ops::softmax_axis(self.gate.forward(x)?.as_dtype(Dtype::Float32)?, -1, true)?; // [1, L, E]
        let indices = top_k(&scores, self.config.num_experts_per_tok)?; // [1, L, k]
        let mut weights = scores.take_along_axis(&indices, -1)?;
        if self.config.norm_topk_prob {
            weights = weights.divide(weights.sum_axis(-1, true)?)?;
        }
        // 2. Routed experts, weighted.
        let routed = self.experts.forward(x, &indices, &weights.as_dtype(x.dtype())?)?;
        // 3. The shared one, with its own gate.
        let gate = ops::sigmoid(self.shared_expert_gate.forward(x)?)?;
        Ok(routed.add(self.shared_expert.forward(x)?.multiply(gate)?)?)
    }
}

/// Expert weights, in the three spellings: stacked (converted), fused gate and up (raw), one by one.
fn experts(w: &mut Weights<'_>, path: &str, hidden: i32, c: MoeConfig) -> Result<Experts> {
    let (n, width) = (c.num_experts, c.moe_intermediate_size);
    if w.names().any(|name| name.starts_with(&format!("{path}.switch_mlp."))) {
        let path = format!("{path}.switch_mlp");
        return Experts::new(
            w.linear_stack(&format!("{path}.gate_proj"), n, width, hidden)?,
            w.linear_stack(&format!("{path}.up_proj"), n, width, hidden)?,
            w.linear_stack(&format!("{path}.down_proj"), n, hidden, width)?,
        );
    }
    if w.contains(&format!("{path}.experts.gate_up_proj")) {
        let fused = w.take(&format!("{path}.experts.gate_up_proj"), &[n, 2 * width, hidden])?;
        let half = |w: &Weights<'_>, from: i32| -> Result<Linear> {
            Ok(Linear::Dense {
                weight: w.settle(crate::nn::slice(&fused, 1, from, from + width)?.contiguous()?)?,
            })
        };
        let (gate, up) = (half(w, 0)?, half(w, width)?);
        let down = Linear::Dense {
            weight: w.take(&format!("{path}.experts.down_proj"), &[n, hidden, width])?,
        };
        return Experts::new(gate, up, down);
    }
    let mut stack = |name: &str, out: i32, input: i32| -> Result<Linear> {
        let mut one = |e: i32| match w.linear(&format!("{path}.experts.{e}.{name}"), out, input)? {
            Linear::Dense { weight } => Ok(weight),
            Linear::Quantized { spec, .. } => Err(Error::UnsupportedQuantization {
                method: format!("{spec}, experts one by one"),
            }),
        };
        let each = (0..n).map(&mut one).collect::<Result<Vec<_>>>()?;
        Ok(Linear::Dense {
            weight: w.settle(ops::stack(&each, 0)?)?,
        })
    };
    Experts::new(
        stack("gate_proj", width, hidden)?,
        stack("up_proj", width, hidden)?,
        stack("down_proj", hidden, width)?,
    )
}
