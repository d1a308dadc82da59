//! Matrix products with dense or packed weights.

use mlx_rs::{Array, Dtype};

use super::ffi;
use crate::Result;
use crate::checkpoint::QuantizationSpec;

/// Weights `[out, in]`, dense or packed.
#[derive(Debug, Clone)]
pub enum Linear {
    /// One number an element.
    Dense {
        /// `[out, in]`.
        weight: Array,
    },
    /// Packed.
    Quantized {
        /// `[out, in * bits / 32]`, u32.
        weight: Array,
        /// `[out, in / group_size]`.
        scales: Array,
        /// As scales; affine only.
        biases: Option<Array>,
        /// How it is packed.
        spec: QuantizationSpec,
    },
}

impl Linear {
    /// `x @ weight.T`: `[..., in]` to `[..., out]`.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        match self {
            Linear::Dense { weight } => Ok(x.matmul(weight.transpose_axes(&[1, 0])?)?),
            Linear::Quantized {
                weight,
                scales,
                biases,
                spec,
            } => ffi::quantized_matmul(x, weight, scales, biases.as_ref(), *spec),
        }
    }

    /// How it is packed; `None` when dense.
    #[must_use]
    pub fn spec(&self) -> Option<QuantizationSpec> {
        match self {
            Linear::Dense { .. } => None,
            Linear::Quantized { spec, .. } => Some(*spec),
        }
    }
}

/// Packs a matrix `[..., out, in]` as conversions do: packed words `[..., out, in * bits / 32]`, scales
/// `[..., out, in / group_size]` and, in affine mode, biases. The tests make checkpoints of every mode with it.
///
/// # Errors
/// An input size that is no multiple of the group size.
pub fn quantize(weight: &Array, spec: QuantizationSpec) -> Result<Vec<Array>> {
    ffi::quantize(weight, spec)
}

/// Token vectors `[vocabulary, hidden]`; also the head of tied models.
#[derive(Debug, Clone)]
pub struct Embedding {
    weights: Linear,
    dtype: Dtype,
}

impl Embedding {
    /// `weights` is `[vocabulary, hidden]`; vectors come out as `dtype`.
    #[must_use]
    pub fn new(weights: Linear, dtype: Dtype) -> Self {
        Self { weights, dtype }
    }

    /// Token ids `[1, L]`, each inside the vocabulary, to `[1, L, H]`.
    pub fn forward(&self, ids: &Array) -> Result<Array> {
        match &self.weights {
            Linear::Dense { weight } => Ok(weight.take_axis(ids, 0)?.as_dtype(self.dtype)?),
            Linear::Quantized {
                weight,
                scales,
                biases,
                spec,
            } => {
                let rows = |a: &Array| a.take_axis(ids, 0);
                let biases = biases.as_ref().map(rows).transpose()?;
                ffi::dequantize(&rows(weight)?, &rows(scales)?, biases.as_ref(), *spec, self.dtype)
            }
        }
    }

    /// The same weights as a head: `[..., H]` to `[..., V]`.
    #[must_use]
    pub fn as_linear(&self) -> Linear {
        self.weights.clone()
    }
}
