//! Mixtures of experts: products with one weight matrix a row.

use mlx_rs::{Array, Dtype, ops};

use super::packed::Packed;
use super::rows::{CHECKED_ROWS, Op, Probe, in_rows, noise};
use super::{Linear, STEP_MODE_ROWS, ffi, silu, slice};
use crate::Result;

/// Places of the `k` largest of the last axis, best first; among equals the lower place first.
pub fn top_k(scores: &Array, k: i32) -> Result<Array> {
    let axis = scores.ndim() - 1;
    slice(&ops::argsort_axis(scores.negative()?, -1)?, axis, 0, k)
}

/// `n` gated MLPs: weights `[n, out, in]` each.
#[derive(Debug, Clone)]
pub struct Experts {
    gate: Linear,
    up: Linear,
    down: Linear,
    /// Factors of each expert's gate product and of its result, `[n]` each.
    factors: Option<(Array, Array)>,
}

impl Experts {
    /// Stacks of gate and up `[n, width, hidden]` and down `[n, hidden, width]`.
    ///
    /// # Errors
    /// What MLX says.
    pub fn new(gate: Linear, up: Linear, down: Linear) -> Result<Self> {
        Ok(Self {
            gate: gathered(gate)?,
            up: gathered(up)?,
            down: gathered(down)?,
            factors: None,
        })
    }

    /// Multiplies each expert's gate product by one factor and its result by another, `[n]` each: what is left to do
    /// for packed weights that have one more scale for a whole expert.
    #[must_use]
    pub fn with_factors(mut self, gate: Array, result: Array) -> Self {
        self.factors = Some((gate, result));
        self
    }

    /// `sum_k weights_k * expert_k(x)`: `x` `[1, L, H]`, `indices` and `weights` `[1, L, k]`.
    pub fn forward(&self, x: &Array, indices: &Array, weights: &Array) -> Result<Array> {
        let (rows, chosen, dtype) = (x.shape()[1], indices.shape()[2], x.dtype());
        let run = |from, to, _| {
            let cut = |a: &Array| slice(a, 1, from, to);
            self.part(&cut(x)?, &cut(indices)?, &cut(weights)?)
        };
        in_rows(self.op(chosen, dtype), rows, false, &run, || self.probe(chosen, dtype))
    }

    fn op(&self, chosen: i32, dtype: Dtype) -> Op {
        let (up, down) = (self.up.packed_shape(), self.down.packed_shape());
        Op::Experts {
            count: up[0],
            chosen,
            inputs: down[1],
            width: up[1],
            spec: self.up.spec(),
            dtype,
        }
    }

    /// Rows that go to experts spread over all of them, neighbours sharing some.
    fn probe(&self, chosen: i32, dtype: Dtype) -> Result<Probe> {
        let Op::Experts { count, inputs, .. } = self.op(chosen, dtype) else {
            return Err(crate::Error::backend("experts without a shape"));
        };
        let x = noise(&[1, CHECKED_ROWS, inputs], dtype, 11)?;
        let places = (0..CHECKED_ROWS * chosen).map(|i| ((i / chosen) * (chosen / 2 + 1) + i % chosen) % count);
        let indices = Array::from_slice(&places.collect::<Vec<i32>>(), &[1, CHECKED_ROWS, chosen]);
        let weights = ops::softmax_axis(noise(&[1, CHECKED_ROWS, chosen], Dtype::Float32, 12)?, -1, true)?;
        let (experts, weights) = (self.clone(), weights.as_dtype(dtype)?);
        Ok(Box::new(move |from, to, _| {
            let cut = |a: &Array| slice(a, 1, from, to);
            experts.part(&cut(&x)?, &cut(&indices)?, &cut(&weights)?)
        }))
    }

    fn part(&self, x: &Array, indices: &Array, weights: &Array) -> Result<Array> {
        let (rows, hidden) = (x.shape()[1], x.shape()[2]);
        let k = indices.shape()[2];
        let sorted = rows > STEP_MODE_ROWS;
        let flat = indices.reshape(&[rows * k])?.as_dtype(Dtype::Uint32)?;
        // One row for each pair of token and expert: [L * k, 1, H].
        let token = Array::from_slice(&(0..rows * k).map(|i| i / k).collect::<Vec<i32>>(), &[rows * k]);
        // Long inputs are ordered by expert, so that each matrix is read once; the results do not depend on it.
        let order = if sorted {
            Some(ops::argsort_axis(&flat, 0)?)
        } else {
            None
        };
        let (flat, token) = match &order {
            Some(order) => (flat.take_axis(order, 0)?, token.take_axis(order, 0)?),
            None => (flat, token),
        };
        let x = x.reshape(&[rows, hidden])?.take_axis(&token, 0)?.expand_dims(1)?;
        // `[L * k, 1, out]` times one number a row, in the wider type, back in the activations'.
        let scaled = |a: Array, factors: Option<&Array>| -> Result<Array> {
            let Some(factors) = factors else { return Ok(a) };
            let rows = factors.take_axis(&flat, 0)?.reshape(&[-1, 1, 1])?;
            Ok(a.multiply(rows)?.as_dtype(x.dtype())?)
        };
        let (gate_factors, factors) = self.factors.as_ref().map(|(g, r)| (g, r)).unzip();
        let gate = scaled(product(&self.gate, &x, &flat, sorted)?, gate_factors)?;
        let hidden_rows = silu(&gate)?.multiply(product(&self.up, &x, &flat, sorted)?)?;
        let out = scaled(product(&self.down, &hidden_rows, &flat, sorted)?, factors)?;
        let mut out = out.squeeze_axes(&[1])?; // [L * k, H]
        if let Some(order) = &order {
            out = out.take_axis(ops::argsort_axis(order, 0)?, 0)?;
        }
        let out = out.reshape(&[1, rows, k, hidden])?;
        Ok(out.multiply(weights.expand_dims(-1)?)?.sum_axis(2, false)?)
    }
}

/// MLX's CPU backend gathers dense matrices in f32 only, so they are widened there, once, when first used.
fn gathered(linear: Linear) -> Result<Linear> {
    match linear {
        Linear::Dense { weight } if weight.dtype() != Dtype::Float32 && ffi::device_name() == "cpu" => {
            Ok(Linear::Dense {
                weight: weight.as_dtype(Dtype::Float32)?,
            })
        }
        other => Ok(other),
    }
}

/// `x[i] @ weight[indices[i]].T`: `[N, 1, in]` to `[N, 1, out]`.
fn product(linear: &Linear, x: &Array, indices: &Array, sorted: bool) -> Result<Array> {
    match linear {
        Linear::Dense { weight } => {
            let wide = x.as_dtype(weight.dtype())?;
            Ok(ops::gather_mm(wide, weight.swap_axes(1, 2)?, None, indices, sorted)?.as_dtype(x.dtype())?)
        }
        Linear::Quantized {
            weight,
            scales,
            biases,
            spec,
        } => Packed {
            weight,
            scales,
            biases: biases.as_ref(),
            spec: *spec,
        }
        .gathered(x, indices, sorted),
    }
}
