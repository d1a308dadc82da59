//! Mixtures of experts: products with one weight matrix a row.

use mlx_rs::{Array, Dtype, ops};

use super::{Linear, STEP_MODE_ROWS, ffi, silu, slice};
use crate::Result;

/// Places of the `k` largest of the last axis, best first; among equals the lower place first.
pub fn top_k(scores: &Array, k: i32) -> Result<Array> {
    let axis = scores.ndim() - 1;
    slice(&ops::argsort_axis(scores.negative()?, -1)?, axis, 0, k)
}

/// `n` gated MLPs: weights `[n, out, in]` each.
#[derive(Debug)]
pub struct Experts {
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl Experts {
    /// Stacks of gate and up `[n, width, hidden]` and down `[n, hidden, width]`.
    #[must_use]
    pub fn new(gate: Linear, up: Linear, down: Linear) -> Self {
        Self { gate, up, down }
    }

    /// `sum_k weights_k * expert_k(x)`: `x` `[1, L, H]`, `indices` and `weights` `[1, L, k]`.
    pub fn forward(&self, x: &Array, indices: &Array, weights: &Array) -> Result<Array> {
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
        let hidden_rows =
            silu(&product(&self.gate, &x, &flat, sorted)?)?.multiply(product(&self.up, &x, &flat, sorted)?)?;
        let mut out = product(&self.down, &hidden_rows, &flat, sorted)?.squeeze_axes(&[1])?; // [L * k, H]
        if let Some(order) = &order {
            out = out.take_axis(ops::argsort_axis(order, 0)?, 0)?;
        }
        let out = out.reshape(&[1, rows, k, hidden])?;
        Ok(out.multiply(weights.expand_dims(-1)?)?.sum_axis(2, false)?)
    }
}

/// `x[i] @ weight[indices[i]].T`: `[N, 1, in]` to `[N, 1, out]`.
fn product(linear: &Linear, x: &Array, indices: &Array, sorted: bool) -> Result<Array> {
    match linear {
        Linear::Dense { weight } => Ok(ops::gather_mm(x, weight.swap_axes(1, 2)?, None, indices, sorted)?),
        Linear::Quantized {
            weight,
            scales,
            biases,
            spec,
        } => ffi::gather_qmm(x, weight, scales, biases.as_ref(), indices, sorted, *spec),
    }
}
