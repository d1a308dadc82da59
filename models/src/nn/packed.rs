//! Products with packed weights, kept off a kernel of MLX's CUDA backend that does not repeat itself.
//!
//! From 8 rows on (of experts: 8 pairs of a row and an expert) MLX 0.32.2 runs `qmm_sm80`: `QuantizedMatmul::eval_gpu` and
//! `GatherQMM::eval_gpu` in `mlx/backend/cuda/quantized/quantized.cpp`, `qmm_sm80_mainloop` in
//! `mlx/backend/cuda/device/qmm_sm80.cuh`. The last turn of its loop starts one more copy of inputs to shared memory and
//! waits for all copies but that one (`cp_async_wait<K_PIPE_MAX - 2>`). Its epilogue then stores results in that same memory
//! (`union SharedStorage`). Where the copy lands later, eight numbers of `x` at a time stand in the place of results. That is
//! rare, less so on a GPU that others use too, and enough for the same prompt to give another text now and then.
//!
//! Fewer rows run `qmv`, which takes each by itself, and dense products run cuBLAS. Once the kernel waits for all its copies
//! (`cp_async_wait<0>` and a barrier before the epilogue), this can go.

use mlx_rs::{Array, Dtype, ops};

use super::rows::in_parts;
use super::{STEP_MODE_ROWS, ffi, slice};
use crate::Result;
use crate::checkpoint::QuantizationSpec;

/// Most rows that MLX's CUDA backend runs with `qmv`.
const ROWS_BY_THEMSELVES: i32 = 7;

/// Packed weights `[out, in]`, or a stack of them `[n, out, in]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed<'a> {
    pub(super) weight: &'a Array,
    pub(super) scales: &'a Array,
    pub(super) biases: Option<&'a Array>,
    pub(super) spec: QuantizationSpec,
}

/// How a product is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// At once.
    AsItIs,
    /// In parts of at most [`ROWS_BY_THEMSELVES`] rows, so that every row is what it is alone.
    InParts,
    /// With the weights unpacked: for rows in plenty, which make up for it.
    Unpacked,
}

impl Packed<'_> {
    /// `x @ weight.T`: `[1, L, in]` to `[1, L, out]`.
    pub(super) fn product(&self, x: &Array) -> Result<Array> {
        let rows = x.shape()[1];
        let is_long = rows > STEP_MODE_ROWS;
        self.product_by(self.way(ffi::device_name(), rows, is_long, x.dtype()), x)
    }

    /// `x[i] @ weight[indices[i]].T` of a stack: `[N, 1, in]` to `[N, 1, out]`. `sorted` if the indices are, as they are for
    /// long inputs and no others.
    pub(super) fn gathered(&self, x: &Array, indices: &Array, sorted: bool) -> Result<Array> {
        let way = self.way(ffi::device_name(), x.shape()[0], sorted, x.dtype());
        self.gathered_by(way, x, indices, sorted)
    }

    /// For so many rows in one call. Those of long inputs are prefill, which equals no single rows anyway.
    fn way(&self, device: &str, rows: i32, is_long: bool, dtype: Dtype) -> Way {
        if device != "cuda" || rows <= ROWS_BY_THEMSELVES || !self.is_for_the_kernel(dtype) {
            Way::AsItIs
        } else if is_long {
            Way::Unpacked
        } else {
            Way::InParts
        }
    }

    /// `supports_qmm_sm80` in `mlx/backend/cuda/quantized/qmm/qmm.cu`; other weights go to kernels that wait.
    fn is_for_the_kernel(&self, dtype: Dtype) -> bool {
        let shape = self.weight.shape();
        let [.., outputs, words] = *shape else { return false };
        let inputs = words * 32 / self.spec.bits;
        matches!(self.spec.bits, 4 | 8)
            && matches!(dtype, Dtype::Float16 | Dtype::Bfloat16)
            && outputs % 128 == 0
            && inputs % self.spec.group_size.max(64) == 0
    }

    fn product_by(&self, way: Way, x: &Array) -> Result<Array> {
        let at_once = |x: &Array| ffi::quantized_matmul(x, self.weight, self.scales, self.biases, self.spec);
        match way {
            Way::AsItIs => at_once(x),
            Way::InParts => in_parts(1, x.shape()[1], ROWS_BY_THEMSELVES, |from, to| {
                at_once(&slice(x, 1, from, to)?)
            }),
            Way::Unpacked => Ok(x.matmul(self.unpacked(x.dtype())?.swap_axes(0, 1)?)?),
        }
    }

    fn gathered_by(&self, way: Way, x: &Array, indices: &Array, sorted: bool) -> Result<Array> {
        let at_once = |x: &Array, indices: &Array| {
            ffi::gather_qmm(x, self.weight, self.scales, self.biases, indices, sorted, self.spec)
        };
        match way {
            Way::AsItIs => at_once(x, indices),
            Way::InParts => in_parts(0, x.shape()[0], ROWS_BY_THEMSELVES, |from, to| {
                at_once(&slice(x, 0, from, to)?, &slice(indices, 0, from, to)?)
            }),
            Way::Unpacked => {
                let weights = self.unpacked(x.dtype())?.swap_axes(1, 2)?;
                Ok(ops::gather_mm(x, weights, None, indices, sorted)?)
            }
        }
    }

    fn unpacked(&self, dtype: Dtype) -> Result<Array> {
        ffi::dequantize(self.weight, self.scales, self.biases, self.spec, dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::noise;
    use super::*;
    use crate::checkpoint::Mode;

    fn spec(bits: i32, group_size: i32) -> QuantizationSpec {
        QuantizationSpec {
            mode: Mode::Affine,
            group_size,
            bits,
        }
    }

    struct Parts(Vec<Array>, QuantizationSpec);

    impl Parts {
        fn new(shape: &[i32], spec: QuantizationSpec, dtype: Dtype) -> Self {
            Self(ffi::quantize(&noise(shape, dtype, 1).unwrap(), spec).unwrap(), spec)
        }

        fn packed(&self) -> Packed<'_> {
            Packed {
                weight: &self.0[0],
                scales: &self.0[1],
                biases: self.0.get(2),
                spec: self.1,
            }
        }
    }

    fn numbers(a: &Array) -> Vec<f32> {
        let a = a.as_dtype(Dtype::Float32).unwrap().reshape(&[-1]).unwrap();
        a.to_vec_exact::<f32>().unwrap()
    }

    #[test]
    fn what_the_kernel_would_take_goes_another_way_on_cuda_and_nowhere_else() {
        use Way::{AsItIs, InParts, Unpacked};
        let way = |bits, group, outputs, inputs, dtype, device: &str, rows| {
            let parts = Parts::new(&[outputs, inputs], spec(bits, group), Dtype::Float32);
            parts.packed().way(device, rows, rows > STEP_MODE_ROWS, dtype)
        };
        let half = Dtype::Bfloat16;
        for (rows, expected) in [
            (1, AsItIs),
            (7, AsItIs),
            (8, InParts),
            (16, InParts),
            (17, Unpacked),
            (512, Unpacked),
        ] {
            assert_eq!(way(4, 64, 128, 512, half, "cuda", rows), expected, "{rows} rows");
            assert_eq!(way(8, 128, 256, 256, half, "cuda", rows), expected, "{rows} rows");
            assert_eq!(way(4, 64, 128, 512, half, "metal", rows), AsItIs);
            assert_eq!(way(4, 64, 128, 512, half, "cpu", rows), AsItIs);
        }
        // Not the kernel's: that many bits, outputs, inputs, that type.
        assert_eq!(way(6, 64, 128, 512, half, "cuda", 40), AsItIs);
        assert_eq!(way(6, 64, 128, 512, half, "cuda", 12), AsItIs);
        assert_eq!(way(4, 64, 100, 512, half, "cuda", 40), AsItIs);
        assert_eq!(way(4, 128, 128, 128, half, "cuda", 40), Unpacked);
        assert_eq!(way(4, 32, 128, 96, half, "cuda", 40), AsItIs);
        assert_eq!(way(4, 64, 128, 512, Dtype::Float32, "cuda", 40), AsItIs);
    }

    #[test]
    fn parts_cover_all_rows_once_and_are_small_enough() {
        for rows in 8..200 {
            let x = Array::from_slice(&(0..rows).collect::<Vec<i32>>(), &[rows]);
            let out = in_parts(0, rows, ROWS_BY_THEMSELVES, |from, to| {
                assert!((1..=ROWS_BY_THEMSELVES).contains(&(to - from)), "{rows} rows");
                slice(&x, 0, from, to)
            });
            assert_eq!(
                out.unwrap().to_vec_exact::<i32>().unwrap(),
                (0..rows).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn every_way_gives_the_same_product() {
        for dtype in [Dtype::Float32, Dtype::Bfloat16] {
            let parts = Parts::new(&[96, 128], spec(4, 64), dtype);
            let x = noise(&[1, 19, 128], dtype, 2).unwrap();
            let run = |way| numbers(&parts.packed().product_by(way, &x).unwrap());
            let expected = run(Way::AsItIs);
            assert_eq!(run(Way::InParts), expected);
            assert_near(&run(Way::Unpacked), &expected, dtype);
        }
    }

    #[test]
    fn every_way_gives_the_same_product_of_experts() {
        let dtype = Dtype::Float32; // MLX's CPU backend gathers dense matrices in no other type
        let parts = Parts::new(&[4, 96, 128], spec(4, 64), dtype);
        let x = noise(&[20, 1, 128], dtype, 3).unwrap();
        let indices = Array::from_slice(&(0..20u32).map(|i| i / 5).collect::<Vec<u32>>(), &[20]);
        let run = |way| numbers(&parts.packed().gathered_by(way, &x, &indices, true).unwrap());
        let expected = run(Way::AsItIs);
        assert_eq!(run(Way::InParts), expected);
        assert_near(&run(Way::Unpacked), &expected, dtype);
    }

    /// Within so much of the largest: another kernel, another order of sums, and 8 bits of a number in bf16.
    fn assert_near(found: &[f32], expected: &[f32], dtype: Dtype) {
        let most = expected.iter().fold(0f32, |most, a| most.max(a.abs()));
        let near = most * if dtype == Dtype::Float32 { 1e-5 } else { 0.03 };
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= near, "{a} and {b}, {dtype:?}");
        }
    }
}
