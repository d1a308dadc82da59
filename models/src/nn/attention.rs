//! Softmax attention over a growing cache.

use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};
use mlx_rs::{Array, Dtype, ops};

use super::rows::{CHECKED_ROWS, Op, Probe, in_rows, is_exact, noise};
use super::{ffi, slice};
use crate::Result;

/// Numbers of keys before the rows that a check tries: on a GPU kernels are chosen by them too, on the CPU by none. Some
/// lie so that a block goes across a number at which Metal takes another kernel, or cuts the keys into more parts.
pub(crate) fn checked_keys() -> &'static [i32] {
    match ffi::device_name() {
        "cpu" => &[0, 60, 300],
        _ => &[0, 60, 500, 1020, 1100, 4092, 4200, 8188, 16_400],
    }
}

/// Where a GPU's kernel may change with the number of keys: from or behind a multiple of this.
const KEYS_OF_ONE_KERNEL: i32 = 1024;

/// How many keys the rows of a block see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// The first row, alone.
    pub(crate) first: i32,
    /// A kernel that runs all of them at once.
    pub(crate) all: i32,
}

impl Reach {
    /// Whether rows may be run by other kernels together than alone: where a number of keys lies in between at which kernels
    /// change, and where the first row sees more of them than `checked` and itself, past what any check has tried.
    fn is_apart(self, device: &str, checked: i32) -> bool {
        if device == "cpu" || self.first >= self.all {
            return false;
        }
        let border = self.all / KEYS_OF_ONE_KERNEL * KEYS_OF_ONE_KERNEL;
        border >= self.first || self.first > checked + 1
    }
}

/// Runs rows `from..to` at once, or one by one where that may round otherwise. For blocks that have to equal single rows.
pub(crate) fn in_reach(from: i32, to: i32, reach: Reach, run: &dyn Fn(i32, i32) -> Result<Array>) -> Result<Array> {
    let checked = checked_keys().iter().max().copied().unwrap_or_default();
    if to - from == 1 || !reach.is_apart(ffi::device_name(), checked) {
        return run(from, to);
    }
    let rows = (from..to).map(|row| run(row, row + 1)).collect::<Result<Vec<_>>>()?;
    Ok(ops::concatenate(&rows, 1)?)
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
    let before = k[2] - rows;
    let is_exact = is_exact(&op, rows);
    let piece = |from, to| part(queries, keys, values, scale, from, to);
    let run = |from, to, _| match is_exact {
        true => in_reach(from, to, causal(before, from, to), &piece),
        false => piece(from, to),
    };
    in_rows(op, rows, false, &run, || {
        probe([heads, kv_heads, head_dim], dtype, scale)
    })
}

/// What rows `from..to` of a block see after `before` keys.
fn causal(before: i32, from: i32, to: i32) -> Reach {
    Reach {
        first: before + from + 1,
        all: before + to,
    }
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
        let mut outs = Vec::new();
        for &before in checked_keys() {
            let run = |from: i32, to: i32| {
                let held = |a: &Array| slice(a, 2, 0, before + to);
                let queries = slice(&queries, 2, from, to)?;
                part(&queries, &held(&keys)?, &held(&values)?, scale, 0, to - from)
            };
            outs.push(in_reach(from, to, causal(before, from, to), &run)?);
        }
        Ok(ops::concatenate(&outs, 3)?)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKED: i32 = 16_400;

    fn is_apart(before: i32, rows: i32, device: &str) -> bool {
        causal(before, 0, rows).is_apart(device, CHECKED)
    }

    #[test]
    fn a_block_that_another_kernel_may_run_than_its_rows_is_run_row_by_row() {
        for device in ["metal", "cuda"] {
            for (before, rows, expected) in [
                (0, 8, false),
                (1015, 8, false),
                (1016, 8, true),
                (1020, 3, false),
                (1020, 4, true),
                (1023, 2, true),
                (1024, 8, false),
                (1023, 1, false),
                (4092, 8, true),
                (8188, 8, true),
                (8192, 8, false),
                (CHECKED, 8, false),
                (CHECKED + 1, 2, true),
                (CHECKED + 1, 1, false),
                (100_000, 8, true),
            ] {
                assert_eq!(is_apart(before, rows, device), expected, "{rows} after {before}");
                assert!(!is_apart(before, rows, "cpu"), "{rows} after {before}");
            }
        }
    }

    /// What MLX's Metal backend chooses by: the kernel from 1024 or 4096 keys on, the parts of the keys behind others.
    #[test]
    fn rows_that_run_together_are_on_one_side_of_every_number_that_kernels_are_chosen_by() {
        let side = |keys: i32| {
            (
                [1024, 4096, 16_384, 65_536].map(|n| keys >= n),
                [1024, 8192, 32_768, 65_536].map(|n| keys > n),
            )
        };
        for before in 0..CHECKED + 100 {
            for rows in [2, 3, 8] {
                let all = side(before + rows);
                let differ = (before + 1..before + rows).any(|keys| side(keys) != all);
                assert!(!differ || is_apart(before, rows, "metal"), "{rows} after {before}");
            }
        }
        // A window: every row sees as many keys, and together they see a few more.
        let window = |extent: i32, rows: i32| Reach {
            first: extent,
            all: extent + rows - 1,
        };
        assert!(window(1024, 2).is_apart("metal", CHECKED) && !window(512, 8).is_apart("metal", CHECKED));
        assert!(!window(512, 8).is_apart("cpu", CHECKED) && !window(1024, 1).is_apart("metal", CHECKED));
    }

    #[test]
    fn rows_in_reach_run_at_once() {
        let piece = |from: i32, to: i32| Ok(Array::from_slice(&vec![0f32; (to - from) as usize], &[1, to - from, 1]));
        let out = in_reach(2, 5, causal(7, 2, 5), &piece).unwrap();
        assert_eq!(out.shape(), [1, 3, 1]);
    }
}
