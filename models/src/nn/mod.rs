//! Building blocks that belong to no family: arrays in, arrays out, nothing read back to the host.

mod attention;
mod conv;
pub(crate) mod ffi;
mod gated_delta;
mod linear;
pub(crate) mod memory;
mod metal;
mod moe;
mod packed;
mod rotation;
pub mod rows;

pub use attention::{attention, attention_where};
pub use conv::{causal_conv, conv_carried, conv_window};
pub use gated_delta::{GatedDeltaInputs, STEP_MODE_ROWS, gated_delta};
pub use linear::{Embedding, Linear, quantize};
pub use moe::{Experts, top_k};
pub use rotation::rotate;

use mlx_rs::{Array, Dtype, ops};

use crate::Result;

pub(crate) use attention::{Reach, checked_keys, in_reach};
pub(crate) use ffi::{dequantize, slice, slice_update};

/// `x / sqrt(mean(x²) + eps) * weight` over the last axis; reduced in f32, in `x`'s type.
pub fn rms_norm(x: &Array, weight: Option<&Array>, eps: f32) -> Result<Array> {
    Ok(mlx_rs::fast::rms_norm(x, weight, eps)?)
}

/// `x * sigmoid(x)`.
pub fn silu(x: &Array) -> Result<Array> {
    Ok(x.multiply(ops::sigmoid(x)?)?)
}

/// `log(1 + exp(x))` without overflow.
pub(crate) fn softplus(x: &Array) -> Result<Array> {
    Ok(ops::logaddexp(x, zero(x.dtype())?)?)
}

/// A scalar of this type.
pub(crate) fn scalar(value: f32, dtype: Dtype) -> Result<Array> {
    Ok(Array::from_f32(value).as_dtype(dtype)?)
}

pub(crate) fn zero(dtype: Dtype) -> Result<Array> {
    scalar(0.0, dtype)
}

/// Zeros of a shape and type.
pub(crate) fn zeros(shape: &[i32], dtype: Dtype) -> Result<Array> {
    Ok(ops::zeros_dtype(shape, dtype)?)
}
