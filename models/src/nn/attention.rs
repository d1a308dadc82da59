//! Softmax attention over a growing cache.

use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};
use mlx_rs::{Array, Dtype, ops};

use super::rows::{CHECKED_ROWS, Op, Probe, in_rows, noise};
use super::{ffi, slice};
use crate::Result;

/// Numbers of keys before the rows that a check tries: kernels are chosen by them too, on the CPU by none.
pub(crate) fn checked_keys() -> &'static [i32] {
    match ffi::device_name() {
        "cpu" => &[0, 60, 300],
        _ => &[0, 60, 500, 1100, 4200],
    }
}

/// Causal attention of the last `L` positions: queries `[1, Hq, L, D]`, keys and values `[1, Hk, S, D]` with
/// `S >= L`, result `[1, L, Hq, D]`. Query head `h` reads key head `h / (Hq / Hk)`.
pub fn attention(queries: &Array, keys: &Array, values: &Array, scale: f32) -> Result<Array> {
    let (q, k) = (queries.shape(), keys.shape());
    let (heads, rows, head_dim, kv_heads, dtype) = (q[1], q[2], q[3], k[1], queries.dtype());
    let op = Op::Attention {
        heads,
        kv_heads,
        head_dim,
        window: None,
        dtype,
    };
    let run = |from, to, _| part(queries, keys, values, scale, from, to);
    in_rows(op, rows, false, &run, || {
        probe([heads, kv_heads, head_dim], dtype, scale)
    })
}

/// As [`attention`], where row `i` sees the keys at which `seen` `[L, S]` is true. Runs as it is, whatever that does to the
/// last bit: for drafters.
///
/// Written out: MLX's CUDA backend plans its fused kernel anew for every length of blocks, which takes longer than a round.
pub fn attention_where(queries: &Array, keys: &Array, values: &Array, scale: f32, seen: &Array) -> Result<Array> {
    let &[_, heads, rows, head_dim] = queries.shape() else {
        return Err(crate::Error::backend("attention of something else than heads"));
    };
    let (kv_heads, held) = (keys.shape()[1], keys.shape()[2]);
    let grouped = |a: &Array, group: i32, n: i32| a.reshape(&[1, kv_heads, group, n, head_dim]);
    let scaled = queries.multiply(super::scalar(scale, queries.dtype())?)?;
    let scores = grouped(&scaled, heads / kv_heads, rows)?.matmul(grouped(keys, 1, held)?.swap_axes(3, 4)?)?;
    let hidden = super::scalar(f32::NEG_INFINITY, scores.dtype())?;
    let weights = ops::softmax_axis(ops::select(seen, scores, hidden)?, -1, true)?;
    let out = weights.matmul(grouped(values, 1, held)?)?;
    Ok(out.reshape(&[1, heads, rows, head_dim])?.swap_axes(1, 2)?)
}

/// Rows `from..to` of the last `L` positions: keys behind a row are left out, not masked, when they can be.
fn part(queries: &Array, keys: &Array, values: &Array, scale: f32, from: i32, to: i32) -> Result<Array> {
    let (rows, held) = (queries.shape()[2], keys.shape()[2]);
    let seen = held - rows + to;
    let causal = (to - from > 1).then_some(ScaledDotProductAttentionMask::Causal);
    let out = scaled_dot_product_attention(
        slice(queries, 2, from, to)?,
        slice(keys, 2, 0, seen)?,
        slice(values, 2, 0, seen)?,
        scale,
        causal,
        None,
    )?;
    Ok(out.swap_axes(1, 2)?)
}

fn probe([heads, kv_heads, head_dim]: [i32; 3], dtype: Dtype, scale: f32) -> Result<Probe> {
    let most = checked_keys().iter().max().copied().unwrap_or_default() + CHECKED_ROWS;
    let queries = noise(&[1, heads, CHECKED_ROWS, head_dim], dtype, 2)?;
    // A slab with room behind what is held, as in a cache.
    let keys = noise(&[1, kv_heads, most + 8, head_dim], dtype, 3)?;
    let values = noise(&[1, kv_heads, most + 8, head_dim], dtype, 4)?;
    Ok(Box::new(move |from, to, _| {
        let queries = slice(&queries, 2, from, to)?;
        let mut outs = Vec::new();
        for &before in checked_keys() {
            let held = |a: &Array| slice(a, 2, 0, before + to);
            outs.push(part(&queries, &held(&keys)?, &held(&values)?, scale, 0, to - from)?);
        }
        Ok(ops::concatenate(&outs, 3)?)
    }))
}
