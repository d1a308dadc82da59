//! Short causal depthwise convolutions with a carried window.

use mlx_rs::Array;

use super::{STEP_MODE_ROWS, slice, zeros};
use crate::Result;

/// The window a convolution reads: the carried `K - 1` rows (zeros at the start), then `x`.
/// `[1, K-1, C]` and `[1, L, C]` to `[1, K-1+L, C]`. After `t` of the new rows the carried state is rows
/// `t .. t + K - 1` of it, so going back is a slice.
pub fn conv_window(state: Option<&Array>, x: &Array, kernel: i32) -> Result<Array> {
    let fresh;
    let state = match state {
        Some(state) => state,
        None => {
            fresh = zeros(&[1, kernel - 1, x.shape()[2]], x.dtype())?;
            &fresh
        }
    };
    Ok(mlx_rs::ops::concatenate(&[state, x], 1)?)
}

/// The rows carried on after `rows` new ones of a window: `[1, K-1, C]`. Copied out of long windows, which would stay in
/// memory.
pub fn conv_carried(window: &Array, rows: i32, kernel: i32) -> Result<Array> {
    let view = slice(window, 1, rows, rows + kernel - 1)?;
    if rows <= STEP_MODE_ROWS {
        Ok(view)
    } else {
        Ok(view.contiguous()?)
    }
}

/// `y[t, c] = sum_i window[t + i, c] * weight[c, i]` for `L` rows; `weight` is `[K, C]`.
///
/// Written as K products and sums, so that a row's result cannot depend on how many rows there are.
pub fn causal_conv(window: &Array, weight: &Array, rows: i32) -> Result<Array> {
    let kernel = weight.shape()[0];
    let mut sum: Option<Array> = None;
    for i in 0..kernel {
        let term = slice(window, 1, i, i + rows)?.multiply(slice(weight, 0, i, i + 1)?)?;
        sum = Some(match sum {
            None => term,
            Some(sum) => sum.add(term)?,
        });
    }
    sum.ok_or_else(|| crate::Error::backend("a convolution needs a kernel"))
}
