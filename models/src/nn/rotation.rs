//! Rotation of heads by position.

use mlx_rs::{Array, Dtype, fast, ops};

use super::rows::{CHECKED_ROWS, Op, Probe, in_rows, noise};
use super::slice;
use crate::Result;

/// Positions that a check tries.
const CHECKED_POSITIONS: [i32; 4] = [0, 71, 1013, 20_011];

/// Rotates the first `dims` columns of heads `[1, L, H, D]`, whose first row is at position `offset`, in the half-split
/// layout: `[1, H, L, D]`.
pub fn rotate(x: &Array, dims: i32, theta: f32, offset: i32) -> Result<Array> {
    let [_, rows, heads, head_dim] = *x.shape() else {
        return Err(crate::Error::backend("a rotation of something else than heads"));
    };
    let op = Op::Rotation {
        heads,
        head_dim,
        rotated: dims,
        dtype: x.dtype(),
    };
    let run = |from, to, _| part(&slice(x, 1, from, to)?, dims, theta, offset + from);
    let rotated = in_rows(op, rows, false, &run, || {
        probe([heads, head_dim], x.dtype(), dims, theta)
    })?;
    Ok(rotated.swap_axes(1, 2)?)
}

/// `[1, L, H, D]` to the same.
fn part(x: &Array, dims: i32, theta: f32, offset: i32) -> Result<Array> {
    let heads = x.swap_axes(1, 2)?;
    Ok(fast::rope(heads, dims, false, theta, 1.0, offset, None)?.swap_axes(1, 2)?)
}

fn probe([heads, head_dim]: [i32; 2], dtype: Dtype, dims: i32, theta: f32) -> Result<Probe> {
    // Rotations round differently now and then only: many heads.
    let wide = heads.max(1 << 8);
    let x = noise(&[1, CHECKED_ROWS, wide, head_dim], dtype, 17)?;
    Ok(Box::new(move |from, to, _| {
        let x = slice(&x, 1, from, to)?;
        let outs = CHECKED_POSITIONS.map(|offset| part(&x, dims, theta, offset + from));
        let outs = outs.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(ops::concatenate(&outs, 3)?)
    }))
}
