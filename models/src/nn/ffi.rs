//! What mlx-rs does not wrap, or wraps so that it can panic: thin calls into mlx-c.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Once, OnceLock};

use mlx_rs::{Array, Dtype, Stream};

use crate::checkpoint::QuantizationSpec;
use crate::{Error, Result};

thread_local!(static LAST: RefCell<Option<String>> = const { RefCell::new(None) });

unsafe extern "C" {
    // mlx-rs exports its own handler; calling it too keeps the messages of its guarded calls.
    fn default_mlx_error_handler(message: *const c_char, data: *mut c_void);
}

extern "C" fn on_error(message: *const c_char, data: *mut c_void) {
    // SAFETY: mlx-c passes a NUL-terminated text that lives for the call.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    LAST.with(|last| *last.borrow_mut() = Some(text));
    // SAFETY: the same arguments that mlx-c gave us.
    unsafe { default_mlx_error_handler(message, data) };
}

/// Settings that MLX reads from the environment, for those that the person has not set: its CUDA backend counts compiled
/// graphs by shape, holds few, and *fails* once it has to let go of too many. Every length of a conversation is a shape.
///
/// To be called before the process has a second thread: the environment is the process's.
pub(crate) fn prepare_process() {
    for (name, value) in [
        ("MLX_CUDA_GRAPH_CACHE_SIZE", "20000"),
        ("MLX_CUDA_SDPA_CACHE_SIZE", "20000"),
    ] {
        if cfg!(target_os = "linux") && std::env::var_os(name).is_none() {
            // SAFETY: no other thread reads or writes the environment yet, by this function's contract.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

/// Installs the error handler. Without one MLX ends the process at the first error.
pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        super::metal::use_bundled_kernels();
        // Any guarded call installs mlx-rs's own handler, which must come first.
        let _ = mlx_rs::memory::active_memory();
        // SAFETY: the handler is a plain function and needs no data.
        unsafe { mlx_sys::mlx_set_error_handler(Some(on_error), std::ptr::null_mut(), None) };
    });
}

fn failure() -> Error {
    let message = LAST
        .with(|last| last.borrow_mut().take())
        .unwrap_or_else(|| "MLX gave no reason".to_owned());
    Error::backend(&message)
}

/// Runs one call that fills an array.
fn array(call: impl FnOnce(*mut mlx_sys::mlx_array) -> i32) -> Result<Array> {
    init();
    // SAFETY: a fresh handle, which the call fills; it is either owned by the result or freed.
    unsafe {
        let mut handle = mlx_sys::mlx_array_new();
        if call(&mut handle) == 0 {
            Ok(Array::from_ptr(handle))
        } else {
            mlx_sys::mlx_array_free(handle);
            Err(failure())
        }
    }
}

/// An owned empty handle, which mlx-c reads as "not given". It must outlive the call.
struct Absent(mlx_sys::mlx_array);

impl Absent {
    fn new() -> Self {
        // SAFETY: makes an empty handle.
        Self(unsafe { mlx_sys::mlx_array_new() })
    }

    fn or(&self, given: Option<&Array>) -> mlx_sys::mlx_array {
        given.map_or(self.0, Array::as_ptr)
    }
}

impl Drop for Absent {
    fn drop(&mut self) {
        // SAFETY: owned by us and used by nobody else.
        unsafe { mlx_sys::mlx_array_free(self.0) };
    }
}

fn some(value: i32) -> mlx_sys::mlx_optional_int {
    mlx_sys::mlx_optional_int { value, has_value: true }
}

fn mode(spec: QuantizationSpec) -> &'static CStr {
    match spec.mode {
        crate::checkpoint::Mode::Affine => c"affine",
        crate::checkpoint::Mode::Mxfp4 => c"mxfp4",
        crate::checkpoint::Mode::Mxfp8 => c"mxfp8",
        crate::checkpoint::Mode::Nvfp4 => c"nvfp4",
    }
}

/// `a[..., start..stop, ...]` along `axis`; a view.
pub(crate) fn slice(a: &Array, axis: usize, start: i32, stop: i32) -> Result<Array> {
    let ndim = a.ndim();
    let dim = a.shape().get(axis).copied().unwrap_or(0);
    if axis >= ndim || start < 0 || stop > dim || start > stop {
        return Err(Error::backend(&format!(
            "slice {start}..{stop} of axis {axis} of shape {:?}",
            a.shape()
        )));
    }
    if (start, stop) == (0, dim) {
        return Ok(a.clone());
    }
    let (mut from, mut to, step) = (vec![0; ndim], a.shape().to_vec(), vec![1; ndim]);
    (from[axis], to[axis]) = (start, stop);
    let stream = Stream::thread_local_or_default();
    // SAFETY: three lists of `ndim` numbers, alive for the call.
    array(|r| unsafe {
        mlx_sys::mlx_slice(
            r,
            a.as_ptr(),
            from.as_ptr(),
            ndim,
            to.as_ptr(),
            ndim,
            step.as_ptr(),
            ndim,
            stream.as_ref().as_ptr(),
        )
    })
}

/// `a` with `update` written at `start` along `axis`. In place when nobody else holds `a`'s buffer.
pub(crate) fn slice_update(a: &Array, update: &Array, axis: usize, start: i32) -> Result<Array> {
    let ndim = a.ndim();
    let (mut from, mut to, step) = (vec![0; ndim], a.shape().to_vec(), vec![1; ndim]);
    (from[axis], to[axis]) = (start, start + update.shape()[axis]);
    let stream = Stream::thread_local_or_default();
    // SAFETY: as in `slice`.
    array(|r| unsafe {
        mlx_sys::mlx_slice_update(
            r,
            a.as_ptr(),
            update.as_ptr(),
            from.as_ptr(),
            ndim,
            to.as_ptr(),
            ndim,
            step.as_ptr(),
            ndim,
            stream.as_ref().as_ptr(),
        )
    })
}

/// `x @ w.T` for packed weights `w`.
pub(crate) fn quantized_matmul(
    x: &Array,
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    spec: QuantizationSpec,
) -> Result<Array> {
    let (absent, stream) = (Absent::new(), Stream::thread_local_or_default());
    // SAFETY: all handles live for the call.
    array(|r| unsafe {
        mlx_sys::mlx_quantized_matmul(
            r,
            x.as_ptr(),
            w.as_ptr(),
            scales.as_ptr(),
            absent.or(biases),
            true,
            some(spec.group_size),
            some(spec.bits),
            mode(spec).as_ptr(),
            stream.as_ref().as_ptr(),
        )
    })
}

/// `x @ w[e].T` with one expert `e` for each row of `indices`.
pub(crate) fn gather_qmm(
    x: &Array,
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    indices: &Array,
    sorted: bool,
    spec: QuantizationSpec,
) -> Result<Array> {
    let (absent, stream) = (Absent::new(), Stream::thread_local_or_default());
    // SAFETY: all handles live for the call.
    array(|r| unsafe {
        mlx_sys::mlx_gather_qmm(
            r,
            x.as_ptr(),
            w.as_ptr(),
            scales.as_ptr(),
            absent.or(biases),
            absent.0,
            indices.as_ptr(),
            true,
            some(spec.group_size),
            some(spec.bits),
            mode(spec).as_ptr(),
            sorted,
            stream.as_ref().as_ptr(),
        )
    })
}

/// Unpacks weights to `dtype`.
pub(crate) fn dequantize(
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    spec: QuantizationSpec,
    dtype: Dtype,
) -> Result<Array> {
    let (absent, stream) = (Absent::new(), Stream::thread_local_or_default());
    let wanted = mlx_sys::mlx_optional_dtype {
        value: dtype.into(),
        has_value: true,
    };
    // SAFETY: all handles live for the call.
    array(|r| unsafe {
        mlx_sys::mlx_dequantize(
            r,
            w.as_ptr(),
            scales.as_ptr(),
            absent.or(biases),
            some(spec.group_size),
            some(spec.bits),
            mode(spec).as_ptr(),
            absent.0,
            wanted,
            stream.as_ref().as_ptr(),
        )
    })
}

/// Packs a matrix `[..., out, in]`: packed words, scales and, in affine mode, biases.
pub(crate) fn quantize(w: &Array, spec: QuantizationSpec) -> Result<Vec<Array>> {
    init();
    let (absent, stream) = (Absent::new(), Stream::thread_local_or_default());
    // SAFETY: all handles live for the calls; the list is freed once its arrays are taken out.
    unsafe {
        let mut list = mlx_sys::mlx_vector_array_new();
        let status = mlx_sys::mlx_quantize(
            &mut list,
            w.as_ptr(),
            some(spec.group_size),
            some(spec.bits),
            mode(spec).as_ptr(),
            absent.0,
            stream.as_ref().as_ptr(),
        );
        let parts = if status == 0 {
            (0..mlx_sys::mlx_vector_array_size(list))
                .map(|i| array(|r| mlx_sys::mlx_vector_array_get(r, list, i)))
                .collect()
        } else {
            Err(failure())
        };
        mlx_sys::mlx_vector_array_free(list);
        parts
    }
}

/// 8-bit floats (E4M3, one a byte) as `dtype`.
pub(crate) fn from_fp8(x: &Array, dtype: Dtype) -> Result<Array> {
    let stream = Stream::thread_local_or_default();
    // SAFETY: all handles live for the call.
    array(|r| unsafe { mlx_sys::mlx_from_fp8(r, x.as_ptr(), dtype.into(), stream.as_ref().as_ptr()) })
}

/// An array of `dtype` and `shape` from raw little-endian bytes, copied.
///
/// # Errors
/// When the bytes do not fill the shape exactly.
pub(crate) fn from_bytes(bytes: &[u8], shape: &[i32], dtype: Dtype) -> Result<Array> {
    init();
    let expected = shape
        .iter()
        .try_fold(item_size(dtype), |n, &d| n.checked_mul(usize::try_from(d).ok()?));
    if expected != Some(bytes.len()) {
        return Err(Error::backend(&format!(
            "{} bytes do not fill shape {shape:?}",
            bytes.len()
        )));
    }
    // SAFETY: the length was checked above; MLX copies the bytes before the call returns.
    Ok(unsafe { Array::from_raw_data(bytes.as_ptr().cast(), shape, dtype) })
}

fn item_size(dtype: Dtype) -> usize {
    match dtype {
        Dtype::Bool | Dtype::Uint8 | Dtype::Int8 => 1,
        Dtype::Uint16 | Dtype::Int16 | Dtype::Float16 | Dtype::Bfloat16 => 2,
        Dtype::Uint32 | Dtype::Int32 | Dtype::Float32 => 4,
        Dtype::Uint64 | Dtype::Int64 | Dtype::Complex64 => 8,
        _ => 8,
    }
}

/// Waits until everything queued on this thread's default stream is done.
pub(crate) fn synchronize() {
    init();
    // SAFETY: takes nothing and returns a status; a failed computation was reported where it was read.
    unsafe { mlx_sys::mlx_synchronize_default() };
}

/// MLX's version.
pub(crate) fn version() -> String {
    init();
    // SAFETY: a fresh string that the call fills, read before it is freed.
    unsafe {
        let mut text = mlx_sys::mlx_string_new();
        let status = mlx_sys::mlx_version(&mut text);
        let data = mlx_sys::mlx_string_data(text);
        let version = if status == 0 && !data.is_null() {
            CStr::from_ptr(data).to_string_lossy().into_owned()
        } else {
            "of unknown version".to_owned()
        };
        mlx_sys::mlx_string_free(text);
        version
    }
}

/// A quarter of the memory that a model leaves, in bytes, and 4 GiB at most; 1 GiB where MLX sets no limit.
pub(crate) fn spare_memory() -> u64 {
    init();
    const GIB: u64 = 1 << 30;
    let limit = mlx_rs::memory::memory_limit().unwrap_or_default() as u64;
    let used = mlx_rs::memory::active_memory().unwrap_or_default() as u64;
    if limit == 0 || limit > 1 << 50 {
        return GIB;
    }
    (limit.saturating_sub(used) / 4).min(4 * GIB)
}

/// Where MLX runs by default and on what, e.g. `metal Apple M1 Ultra`; without a model where none can be read.
pub(crate) fn device_model() -> String {
    let kind = device_name();
    match model() {
        Some(model) => format!("{kind} {model}"),
        None => kind.to_owned(),
    }
}

/// What MLX calls the default device.
fn model() -> Option<String> {
    // SAFETY: `device` and `info` are made and freed here. The text belongs to `info` and is copied before that is freed.
    unsafe {
        let mut device = mlx_sys::mlx_device_new();
        let mut info = mlx_sys::mlx_device_info_new();
        let mut text: *const c_char = std::ptr::null();
        let found = mlx_sys::mlx_get_default_device(&mut device) == 0
            && mlx_sys::mlx_device_info_get(&mut info, device) == 0
            && mlx_sys::mlx_device_info_get_string(&mut text, info, c"device_name".as_ptr()) == 0
            && !text.is_null();
        let model = found.then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
        mlx_sys::mlx_device_info_free(info);
        mlx_sys::mlx_device_free(device);
        model.filter(|m| !m.is_empty())
    }
}

/// Where MLX runs by default: `metal`, `cuda` or `cpu`. Asked once, as products and attention go by it.
pub(crate) fn device_name() -> &'static str {
    static NAME: OnceLock<&str> = OnceLock::new();
    NAME.get_or_init(|| {
        init();
        let mut available = false;
        // SAFETY: both calls only write the flag.
        unsafe {
            if mlx_sys::mlx_metal_is_available(&mut available) == 0 && available {
                return "metal";
            }
            if mlx_sys::mlx_cuda_is_available(&mut available) == 0 && available {
                return "cuda";
            }
        }
        "cpu"
    })
}
