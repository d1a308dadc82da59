//! The gated delta rule: a linear recurrence over a matrix state.
//!
//! For every value head and token: `S <- S * exp(log_g)`, `u = S k`, `delta = (v - u) * beta`,
//! `S <- S + delta k^T`, `o = S q`. All in f32.

use mlx_rs::{Array, Dtype, ops};

use super::rows::{CHECKED_ROWS, Op, Probe, in_rows, noise};
use super::{slice, zeros};
use crate::Result;

/// Up to this many rows run token by token, so that a verified block equals single steps bit for bit.
/// Longer inputs are prefill and run in chunks. It covers the largest block.
pub const STEP_MODE_ROWS: i32 = crate::engine::MAX_BLOCK_SIZE as i32;

/// Rows of one chunk in prefill.
const CHUNK: i32 = 64;

/// Inputs of the recurrence for `L` tokens, all f32; keys and queries normalised and repeated to the value heads.
#[derive(Debug, Clone)]
pub struct GatedDeltaInputs {
    /// `[1, L, Hv, Dk]`.
    pub q: Array,
    /// `[1, L, Hv, Dk]`.
    pub k: Array,
    /// `[1, L, Hv, Dv]`.
    pub v: Array,
    /// `[1, L, Hv]`, at most 0.
    pub log_g: Array,
    /// `[1, L, Hv]`.
    pub beta: Array,
}

impl GatedDeltaInputs {
    /// Tokens `from..to`.
    pub fn rows_of(&self, from: i32, to: i32) -> Result<Self> {
        let cut = |a: &Array| slice(a, 1, from, to);
        Ok(Self {
            q: cut(&self.q)?,
            k: cut(&self.k)?,
            v: cut(&self.v)?,
            log_g: cut(&self.log_g)?,
            beta: cut(&self.beta)?,
        })
    }

    /// Number of tokens.
    #[must_use]
    pub fn rows(&self) -> i32 {
        self.q.shape()[1]
    }
}

/// Runs the recurrence from `state` `[1, Hv, Dv, Dk]` (zeros when `None`).
/// Returns the outputs `[1, L, Hv, Dv]` and the new state.
pub fn gated_delta(inputs: &GatedDeltaInputs, state: Option<&Array>) -> Result<(Array, Array)> {
    let (k, v) = (inputs.k.shape(), inputs.v.shape());
    let state = match state {
        Some(state) => state.clone(),
        None => zeros(&[1, k[2], v[3], k[3]], Dtype::Float32)?,
    };
    if inputs.rows() > STEP_MODE_ROWS {
        return chunks(inputs, state);
    }
    let (heads, key_dim, value_dim) = (k[2], k[3], v[3]);
    let op = Op::Recurrence {
        heads,
        key_dim,
        value_dim,
    };
    // Step by step whatever the policy says; it is registered to be checked like everything else.
    let (outputs, state) = steps(inputs, state)?;
    let outputs = in_rows(
        op,
        inputs.rows(),
        false,
        &|from, to, _| slice(&outputs, 1, from, to),
        || probe(heads, key_dim, value_dim),
    )?;
    Ok((outputs, state))
}

/// Outputs of rows `from..to` after the rows before them, beside the state they leave.
fn probe(heads: i32, key_dim: i32, value_dim: i32) -> Result<Probe> {
    let float = |shape: &[i32], key| noise(shape, Dtype::Float32, key);
    let rows = CHECKED_ROWS;
    let inputs = GatedDeltaInputs {
        q: float(&[1, rows, heads, key_dim], 5)?,
        k: float(&[1, rows, heads, key_dim], 6)?
            .multiply(super::scalar((key_dim as f32).powf(-0.5), Dtype::Float32)?)?,
        v: float(&[1, rows, heads, value_dim], 7)?,
        log_g: float(&[1, rows, heads], 8)?.abs()?.negative()?,
        beta: ops::sigmoid(float(&[1, rows, heads], 9)?)?,
    };
    let start = float(&[1, heads, value_dim, key_dim], 10)?;
    Ok(Box::new(move |from, to, _| {
        let mut state = start.clone();
        for t in 0..from {
            state = steps(&inputs.rows_of(t, t + 1)?, state)?.1;
        }
        Ok(steps(&inputs.rows_of(from, to)?, state)?.0)
    }))
}

/// Token by token.
fn steps(inputs: &GatedDeltaInputs, mut state: Array) -> Result<(Array, Array)> {
    let g = inputs.log_g.exp()?;
    let mut outputs = Vec::new();
    for t in 0..inputs.rows() {
        let at = |a: &Array| -> Result<Array> { Ok(slice(a, 1, t, t + 1)?.squeeze_axes(&[1])?) }; // [1, Hv, ...]
        let column = |a: &Array| -> Result<Array> { Ok(at(a)?.expand_dims(-1)?) };
        let k = column(&inputs.k)?; // [1, Hv, Dk, 1]
        let decayed = state.multiply(column(&g)?.expand_dims(-1)?)?; // [1, Hv, Dv, Dk]
        let u = decayed.matmul(&k)?; // [1, Hv, Dv, 1]
        let delta = column(&inputs.v)?
            .subtract(u)?
            .multiply(column(&inputs.beta)?.expand_dims(-1)?)?;
        state = decayed.add(delta.multiply(k.swap_axes(2, 3)?)?)?;
        outputs.push(state.matmul(column(&inputs.q)?)?.squeeze_axes(&[3])?); // [1, Hv, Dv]
    }
    Ok((ops::stack(&outputs, 1)?, state))
}

/// Chunk by chunk, in the WY form: within a chunk of C rows, with `L` the running sum of `log_g` and
/// `D_ij = exp(L_i - L_j)` for `i >= j`: `A = strict_lower(beta_i D_ij k_i.k_j)`, `T = (I + A)^-1`,
/// `U = T (beta v) - T (beta e^L k) S^T`, `y = e^L q S^T + lower(D . q k^T) U`, `S <- e^{L_C} S + (e^{L_C - L} U)^T k`.
fn chunks(inputs: &GatedDeltaInputs, mut state: Array) -> Result<(Array, Array)> {
    let mut outputs = Vec::new();
    let mut from = 0;
    while from < inputs.rows() {
        let to = (from + CHUNK).min(inputs.rows());
        // [1, C, Hv, ...] to [1, Hv, C, ...]
        let heads = |a: &Array| -> Result<Array> { Ok(slice(a, 1, from, to)?.swap_axes(1, 2)?) };
        let (q, k, v) = (heads(&inputs.q)?, heads(&inputs.k)?, heads(&inputs.v)?);
        let beta = heads(&inputs.beta)?.expand_dims(-1)?; // [1, Hv, C, 1]
        let sum = heads(&inputs.log_g)?.cumsum(-1, false, true)?.expand_dims(-1)?; // [1, Hv, C, 1]
        let rows = to - from;
        let decay = decay_matrix(&sum, rows)?; // [1, Hv, C, C], zero above the diagonal
        let k_t = k.swap_axes(2, 3)?;
        let a = ops::tril(k.matmul(&k_t)?.multiply(&decay)?.multiply(&beta)?, -1)?;
        let t = unit_lower_inverse(&a, rows)?;
        let e = sum.exp()?; // [1, Hv, C, 1]
        let s_t = state.swap_axes(2, 3)?; // [1, Hv, Dk, Dv]
        let carried = k.multiply(&beta)?.multiply(&e)?.matmul(&s_t)?; // [1, Hv, C, Dv]
        let u = t.matmul(v.multiply(&beta)?.subtract(carried)?)?;
        let inside = q.matmul(&k_t)?.multiply(&decay)?.matmul(&u)?;
        outputs.push(q.multiply(&e)?.matmul(&s_t)?.add(inside)?.swap_axes(1, 2)?); // [1, C, Hv, Dv]
        let last = slice(&sum, 2, rows - 1, rows)?; // [1, Hv, 1, 1]
        let weighted = u.multiply(last.subtract(&sum)?.exp()?)?; // [1, Hv, C, Dv]
        state = state
            .multiply(last.exp()?)?
            .add(weighted.swap_axes(2, 3)?.matmul(&k)?)?;
        from = to;
    }
    Ok((ops::concatenate(&outputs, 1)?, state))
}

/// `exp(sum_i - sum_j)` for `i >= j`, else 0. Above the diagonal the difference is positive and may overflow, so it
/// is cut off before the exponential.
fn decay_matrix(sum: &Array, rows: i32) -> Result<Array> {
    let difference = sum.subtract(sum.swap_axes(2, 3)?)?;
    let lower = ops::tril(ops::ones_dtype(&[rows, rows], Dtype::Float32)?, 0)?;
    Ok(ops::minimum(difference, super::zero(Dtype::Float32)?)?
        .exp()?
        .multiply(lower)?)
}

/// `(I + A)^-1` for strictly lower triangular `A`, by doubling: blocks of size `s` are inverted, then joined in
/// pairs: `X <- X - X (A . M_s) X`, where `M_s` keeps the lower left block of each pair. Block forward substitution,
/// so as stable as row by row.
fn unit_lower_inverse(a: &Array, rows: i32) -> Result<Array> {
    let index = Array::from_slice(&(0..rows).collect::<Vec<i32>>(), &[rows, 1]);
    let mut x = ops::eye::<f32>(rows, None, None)?;
    let mut size = 1;
    while size < rows {
        let block = index.floor_divide(Array::from_int(size))?;
        let pair = index.floor_divide(Array::from_int(2 * size))?;
        let same_pair = pair.eq(pair.transpose_axes(&[1, 0])?)?;
        let other_block = block.ne(block.transpose_axes(&[1, 0])?)?;
        let mask = same_pair.logical_and(other_block)?.as_dtype(Dtype::Float32)?;
        x = x.subtract(x.matmul(a.multiply(mask)?)?.matmul(&x)?)?;
        size *= 2;
    }
    Ok(x)
}
