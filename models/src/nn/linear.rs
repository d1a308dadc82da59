//! Matrix products with dense or packed weights.

use mlx_rs::{Array, Dtype, ops};

use super::packed::Packed;
use super::rows::{CHECKED_ROWS, Op, Probe, in_rows, noise};
use super::{ffi, slice};
use crate::Result;
use crate::checkpoint::QuantizationSpec;

/// Numbers that a check of a product compares, and most inputs it tries for that.
const COMPARED: i32 = 1 << 16;
const TRIES: i32 = 16;

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
    /// `x @ weight.T`: `[1, L, in]` to `[1, L, out]`.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let rows = x.shape()[1];
        let run = |from, to, gathered| self.product(&slice(x, 1, from, to)?, gathered);
        // Gathered kernels for packed weights are those of single rows; for dense ones nothing says so but samples, so
        // these run row by row where they have to.
        let can_gather = matches!(self, Linear::Quantized { .. });
        in_rows(self.op(x.dtype()), rows, can_gather, &run, || self.probe(x.dtype()))
    }

    fn product(&self, x: &Array, gathered: bool) -> Result<Array> {
        if gathered {
            return self.gathered(x);
        }
        match self {
            Linear::Dense { weight } => Ok(x.matmul(weight.transpose_axes(&[1, 0])?)?),
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
            .product(x),
        }
    }

    /// Each row as if it had gone to an expert of its own, all of them with these weights: one call, a row at a time.
    fn gathered(&self, x: &Array) -> Result<Array> {
        let (rows, inputs) = (x.shape()[1], x.shape()[2]);
        let apart = x.reshape(&[rows, 1, inputs])?;
        let all_first = super::zeros(&[rows], Dtype::Uint32)?;
        let stack = |a: &Array| a.expand_dims(0);
        let out = match self {
            Linear::Dense { weight } => {
                let weights = stack(weight)?.swap_axes(1, 2)?;
                ops::gather_mm(apart, weights, None, &all_first, false)?
            }
            Linear::Quantized {
                weight,
                scales,
                biases,
                spec,
            } => {
                let biases = biases.as_ref().map(stack).transpose()?;
                let stacked = Packed {
                    weight: &stack(weight)?,
                    scales: &stack(scales)?,
                    biases: biases.as_ref(),
                    spec: *spec,
                };
                stacked.gathered(&apart, &all_first, false)?
            }
        };
        Ok(out.reshape(&[1, rows, -1])?)
    }

    /// Whether a check compares enough numbers to trust that two kernels add up in the same order.
    pub(super) fn is_telling(outputs: i32) -> bool {
        CHECKED_ROWS * outputs * TRIES >= COMPARED
    }

    fn op(&self, dtype: Dtype) -> Op {
        match self {
            Linear::Dense { weight } => Op::Dense {
                inputs: weight.shape()[1],
                outputs: weight.shape()[0],
                weights: weight.dtype(),
                dtype,
            },
            Linear::Quantized { weight, spec, .. } => Op::Packed {
                inputs: weight.shape()[1] * 32 / spec.bits,
                outputs: weight.shape()[0],
                spec: *spec,
                dtype,
            },
        }
    }

    fn probe(&self, dtype: Dtype) -> Result<Probe> {
        let (inputs, outputs) = match self.op(dtype) {
            Op::Dense { inputs, outputs, .. } | Op::Packed { inputs, outputs, .. } => (inputs, outputs),
            _ => (0, 1),
        };
        let tries = match ffi::device_name() {
            "cpu" => 1,
            _ => (COMPARED / (CHECKED_ROWS * outputs)).clamp(1, TRIES),
        };
        // Sums that differ in their last bits round to the same 16-bit number most of the time: several tries.
        let tries = (0..tries).map(|key| noise(&[1, CHECKED_ROWS, inputs], dtype, 100 + key as u64));
        let (linear, tries) = (self.clone(), tries.collect::<Result<Vec<_>>>()?);
        Ok(Box::new(move |from, to, gathered| {
            let outs = tries.iter().map(|x| linear.product(&slice(x, 1, from, to)?, gathered));
            Ok(ops::concatenate(&outs.collect::<Result<Vec<_>>>()?, 2)?)
        }))
    }

    /// The shape of the weights as they are stored, packed or not.
    pub(super) fn packed_shape(&self) -> &[i32] {
        match self {
            Linear::Dense { weight } | Linear::Quantized { weight, .. } => weight.shape(),
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
