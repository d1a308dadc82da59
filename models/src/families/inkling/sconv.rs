//! The short convolution with its residual: `y[t] = x[t] + sum_i window[t + i] * weight[i]`.

use mlx_rs::{Array, Dtype};

use crate::Result;
use crate::checkpoint::Weights;
use crate::nn::{causal_conv, conv_window};

/// A depthwise causal convolution that is added to its input.
#[derive(Debug)]
pub(super) struct ShortConv {
    /// `[K, C]`, f32.
    weight: Array,
}

impl ShortConv {
    /// Takes `path.conv.weight`.
    pub(super) fn load(w: &mut Weights<'_>, path: &str, channels: i32, kernel: i32) -> Result<Self> {
        let weight = w.take_conv(&format!("{path}.conv.weight"), channels, kernel)?;
        Ok(Self {
            weight: w.convert(weight, Dtype::Float32)?,
        })
    }

    /// `x` `[1, L, C]` to the same shape, summed in f32, and the window that the next state is sliced from.
    pub(super) fn forward(&self, x: &Array, state: Option<&Array>) -> Result<(Array, Array)> {
        let window = conv_window(state, x, self.weight.shape()[0])?; // [1, K-1+L, C]
        let wide = window.as_dtype(Dtype::Float32)?;
        let sum = causal_conv(&wide, &self.weight, x.shape()[1])?;
        let out = sum.add(x.as_dtype(Dtype::Float32)?)?.as_dtype(x.dtype())?;
        Ok((out, window))
    }
}
