//! Taking tensors out of a checkpoint: each once, none left over.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use mlx_rs::{Array, Dtype};

use super::{Checkpoint, Mode, Quantization, QuantizationSpec, TensorInfo};
use crate::nn::{Embedding, Linear, ffi};
use crate::{Error, Result};

/// The tensors of one model part under this engine's own names.
///
/// Loading a part takes tensors by name; [`Weights::finish`] then refuses what is left, so that a tensor can be neither
/// missed nor used twice.
pub struct Weights<'a> {
    checkpoint: &'a Checkpoint,
    entries: BTreeMap<String, (String, TensorInfo)>,
    quantization: Quantization,
    /// Prefixes the config may list a module under.
    prefixes: &'static [&'static str],
    /// What this layout writes before most of its names.
    layout_prefix: String,
    dtype: Dtype,
    /// Checks names and shapes but reads no data: arrays come out as zeros that nobody evaluates.
    dry: bool,
    open: HashMap<usize, File>,
}

impl<'a> Weights<'a> {
    /// Collects tensors under the names `rename` gives them; those it answers `None` for are set aside.
    ///
    /// # Errors
    /// Two tensors with one name.
    pub fn new(
        checkpoint: &'a Checkpoint,
        tensors: &BTreeMap<String, TensorInfo>,
        quantization: Quantization,
        prefixes: &'static [&'static str],
        rename: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let mut entries: BTreeMap<String, (String, TensorInfo)> = BTreeMap::new();
        for (source, info) in tensors {
            let Some(name) = rename(source) else { continue };
            if let Some((other, first)) = entries.get(&name) {
                return Err(Error::TensorDuplicate {
                    name: format!("{other}` and `{source}"),
                    first: checkpoint.file_of(first).name.clone(),
                    second: checkpoint.file_of(info).name.clone(),
                });
            }
            entries.insert(name, (source.clone(), info.clone()));
        }
        let mut with_prefix = entries.iter();
        let layout_prefix = with_prefix.find_map(|(ours, (source, _))| source.strip_suffix(ours.as_str()));
        Ok(Self {
            checkpoint,
            layout_prefix: layout_prefix.unwrap_or_default().to_owned(),
            entries,
            quantization,
            prefixes,
            dtype: Dtype::Float32,
            dry: false,
            open: HashMap::new(),
        })
    }

    /// Sets the activation type that floating tensors are converted to.
    #[must_use]
    pub fn with_dtype(mut self, dtype: Dtype) -> Self {
        self.dtype = dtype;
        self
    }

    /// Checks only: reads no data.
    #[must_use]
    pub fn dry(mut self, dry: bool) -> Self {
        self.dry = dry;
        self
    }

    /// The activation type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Whether a tensor is there and not taken yet.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Names that are there and not taken yet.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Whether the config says that matrices are block-scaled FP8.
    #[must_use]
    pub fn is_fp8(&self) -> bool {
        self.quantization.fp8_block().is_some()
    }

    /// A tensor's description, if it is there and not taken yet.
    #[must_use]
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.entries.get(name).map(|(_, info)| info)
    }

    /// Takes a tensor of exactly this shape, in the type it is stored in.
    ///
    /// # Errors
    /// Missing, another shape, an element type this engine does not read, or unreadable data.
    pub fn take_raw(&mut self, name: &str, shape: &[i32]) -> Result<Array> {
        self.take_stored(name, shape, Stored::Any)
    }

    /// Takes a tensor of exactly this shape, stored as `stored` asks for.
    fn take_stored(&mut self, name: &str, shape: &[i32], stored: Stored) -> Result<Array> {
        let (source, info) = self.entries.remove(name).ok_or_else(|| Error::TensorMissing {
            name: self.source_name(name),
        })?;
        let dtype = stored.dtype(&source, info.dtype)?;
        if info.shape.len() != shape.len() || info.shape.iter().zip(shape).any(|(a, b)| *a as i64 != i64::from(*b)) {
            return Err(Error::TensorShape {
                name: source,
                found: format!("{:?}", info.shape),
                expected: format!("{shape:?}"),
            });
        }
        if self.dry {
            return Ok(mlx_rs::ops::zeros_dtype(shape, dtype)?);
        }
        let bytes = self.read(&info)?;
        ffi::from_bytes(&bytes, shape, dtype)
    }

    /// Takes a floating tensor, converted to the activation type.
    ///
    /// # Errors
    /// As [`Weights::take_as`].
    pub fn take(&mut self, name: &str, shape: &[i32]) -> Result<Array> {
        let dtype = self.dtype;
        self.take_as(name, shape, dtype)
    }

    /// Takes a floating tensor, converted to `dtype`.
    ///
    /// # Errors
    /// As [`Weights::take_raw`], and numbers of another type: integers would be read as weights, and load.
    pub fn take_as(&mut self, name: &str, shape: &[i32], dtype: Dtype) -> Result<Array> {
        let raw = self.take_stored(name, shape, Stored::Floating)?;
        self.convert(raw, dtype)
    }

    /// Takes a norm weight of `len` numbers. `shift` adds 1 in the stored type, as MLX conversions do.
    ///
    /// # Errors
    /// As [`Weights::take_as`].
    pub fn take_norm(&mut self, name: &str, len: i32, shift: bool) -> Result<Array> {
        let mut raw = self.take_stored(name, &[len], Stored::Floating)?;
        if shift {
            let one = Array::from_f32(1.0).as_dtype(raw.dtype())?;
            raw = raw.add(one)?;
        }
        let dtype = self.dtype;
        self.convert(raw, dtype)
    }

    /// Takes a depthwise convolution, `[C, 1, K]` raw or `[C, K, 1]` converted, as `[K, C]`.
    ///
    /// # Errors
    /// As [`Weights::take_as`].
    pub fn take_conv(&mut self, name: &str, channels: i32, kernel: i32) -> Result<Array> {
        let raw = self.info(name).is_some_and(|i| i.shape.last() != Some(&1));
        let shape = if raw {
            [channels, 1, kernel]
        } else {
            [channels, kernel, 1]
        };
        let weight = self.take(name, &shape)?;
        self.settle(
            weight
                .reshape(&[channels, kernel])?
                .transpose_axes(&[1, 0])?
                .contiguous()?,
        )
    }

    /// Takes packed bytes, or 8-bit floats as the bytes they are.
    ///
    /// # Errors
    /// As [`Weights::take_raw`].
    pub fn take_packed(&mut self, name: &str, shape: &[i32]) -> Result<Array> {
        self.take_stored(name, shape, Stored::Bytes)
    }

    /// Converts and, unless dry, evaluates at once, so that stored and converted copies never pile up.
    ///
    /// # Errors
    /// What MLX says.
    pub fn convert(&self, raw: Array, dtype: Dtype) -> Result<Array> {
        let out = if raw.dtype() == dtype {
            raw
        } else {
            raw.as_dtype(dtype)?
        };
        self.settle(out)
    }

    /// Evaluates an array made from taken ones, unless dry.
    ///
    /// # Errors
    /// What MLX says.
    pub fn settle(&self, array: Array) -> Result<Array> {
        if !self.dry {
            array.eval()?;
        }
        Ok(array)
    }

    /// Takes a linear layer `[out, in]`, dense or packed as its tensors and the config say.
    ///
    /// # Errors
    /// As [`Weights::take_as`], and bits or group size that do not fit the tensors.
    pub fn linear(&mut self, path: &str, out: i32, input: i32) -> Result<Linear> {
        self.linear_of(path, &[out], input)
    }

    /// Takes a stack of linear layers `[n, out, in]`.
    ///
    /// # Errors
    /// As [`Weights::linear`].
    pub fn linear_stack(&mut self, path: &str, n: i32, out: i32, input: i32) -> Result<Linear> {
        self.linear_of(path, &[n, out], input)
    }

    fn linear_of(&mut self, path: &str, rows: &[i32], input: i32) -> Result<Linear> {
        let with = |last: i32| [rows, &[last]].concat();
        let weight_name = format!("{path}.weight");
        let scales_name = format!("{path}.scales");
        if !self.contains(&scales_name) {
            if let [out] = *rows
                && self.contains(&format!("{path}.weight_scale_inv"))
            {
                return Ok(Linear::Dense {
                    weight: self.take_fp8(path, out, input)?,
                });
            }
            return Ok(Linear::Dense {
                weight: self.take(&weight_name, &with(input))?,
            });
        }
        let spec = self.spec(path, input)?;
        self.check_packing(&weight_name, &scales_name, spec, input)?;
        let weight = self.take_raw(
            &weight_name,
            &with(input / 32 * spec.bits + input % 32 * spec.bits / 32),
        )?;
        let groups = with(input / spec.group_size);
        let (scales, biases) = match spec.mode {
            Mode::Affine => {
                let biases = self.take(&format!("{path}.biases"), &groups)?;
                (self.take(&scales_name, &groups)?, Some(biases))
            }
            _ => (self.take_raw(&scales_name, &groups)?, None),
        };
        let weight = self.settle(weight)?;
        Ok(Linear::Quantized {
            weight,
            scales: self.settle(scales)?,
            biases,
            spec,
        })
    }

    /// Takes a block-scaled FP8 matrix `[out, in]`, unpacked: each number times its block's `weight_scale_inv`, in f32.
    fn take_fp8(&mut self, path: &str, out: i32, input: i32) -> Result<Array> {
        let [rows, columns] = self
            .quantization
            .fp8_block()
            .ok_or_else(|| Error::QuantizationMissing {
                tensor: self.source_name(&format!("{path}.weight")),
            })?;
        let packed = self.take_packed(&format!("{path}.weight"), &[out, input])?;
        let blocks = [(out + rows - 1) / rows, (input + columns - 1) / columns];
        let scales = self.take_as(&format!("{path}.weight_scale_inv"), &blocks, Dtype::Float32)?;
        let spread = scales
            .reshape(&[blocks[0], 1, blocks[1], 1])?
            .multiply(mlx_rs::ops::ones_dtype(&[1, rows, 1, columns], Dtype::Float32)?)?
            .reshape(&[blocks[0] * rows, blocks[1] * columns])?;
        let spread = crate::nn::slice(&crate::nn::slice(&spread, 0, 0, out)?, 1, 0, input)?;
        let weight = ffi::from_fp8(&packed, Dtype::Float32)?.multiply(spread)?;
        self.convert(weight, self.dtype)
    }

    /// Takes token vectors `[vocabulary, hidden]`.
    ///
    /// # Errors
    /// As [`Weights::linear`].
    pub fn embedding(&mut self, path: &str, vocabulary: i32, hidden: i32) -> Result<Embedding> {
        Ok(Embedding::new(self.linear(path, vocabulary, hidden)?, self.dtype))
    }

    /// Refuses tensors that nobody took.
    ///
    /// # Errors
    /// The first of them, by name.
    pub fn finish(self) -> Result<()> {
        match self.entries.values().next() {
            None => Ok(()),
            Some((source, info)) => Err(Error::TensorUnexpected {
                name: source.clone(),
                file: self.checkpoint.file_of(info).name.clone(),
            }),
        }
    }

    /// What the config says of a packed module, under any of its names; where there is none, what the shapes say.
    fn spec(&self, path: &str, input: i32) -> Result<QuantizationSpec> {
        let mut paths: Vec<String> = Vec::new();
        if let Some((source, _)) = self.entries.get(&format!("{path}.weight")) {
            paths.extend(source.strip_suffix(".weight").map(str::to_owned));
        }
        paths.extend(self.prefixes.iter().map(|p| format!("{p}{path}")));
        let said = if self.quantization.is_by_shapes() {
            self.spec_of_shapes(path, input)
        } else {
            self.quantization.spec(&paths)
        };
        said.ok_or_else(|| Error::QuantizationMissing {
            tensor: self.source_name(&format!("{path}.weight")),
        })
    }

    fn spec_of_shapes(&self, path: &str, input: i32) -> Option<QuantizationSpec> {
        let last = |name: &str| {
            let info = self.info(&format!("{path}.{name}"))?;
            Some(*info.shape.last()? as i64)
        };
        let has_biases = self.contains(&format!("{path}.biases"));
        QuantizationSpec::of_shapes(input, last("weight")?, last("scales")?, has_biases)
    }

    /// Bits and group size must be what the shapes say, or the numbers would be misread.
    fn check_packing(&self, weight: &str, scales: &str, spec: QuantizationSpec, input: i32) -> Result<()> {
        let (Some(w), Some(s)) = (self.info(weight), self.info(scales)) else {
            return Ok(());
        };
        let last = |t: &TensorInfo| t.shape.last().map_or(0, |n| *n as i64);
        let fits = i64::from(input) * i64::from(spec.bits) == last(w) * 32
            && last(s) * i64::from(spec.group_size) == i64::from(input);
        let scale_type = match (spec.mode, s.dtype) {
            // Those of another mode: it is the packing that does not fit.
            (Mode::Affine, safetensors::Dtype::U8) => false,
            (Mode::Affine, stored) => Stored::Floating
                .dtype(&self.source_name(scales), stored)
                .map(|_| true)?,
            (_, stored) => stored == safetensors::Dtype::U8,
        };
        if fits && scale_type && w.dtype == safetensors::Dtype::U32 {
            return Ok(());
        }
        Err(Error::QuantizationMismatch {
            tensor: self.source_name(weight),
            shape: w.shape.clone(),
            bits: spec.bits,
            group_size: spec.group_size,
        })
    }

    /// The name as this checkpoint would write it.
    fn source_name(&self, name: &str) -> String {
        if let Some((source, _)) = self.entries.get(name) {
            return source.clone();
        }
        format!("{}{name}", self.layout_prefix)
    }

    fn read(&mut self, info: &TensorInfo) -> Result<Vec<u8>> {
        let file = self.checkpoint.file_of(info);
        let io = |source| Error::Io {
            path: file.path.clone(),
            source,
        };
        let handle = match self.open.entry(info.file) {
            std::collections::hash_map::Entry::Occupied(e) => e.into_mut(),
            std::collections::hash_map::Entry::Vacant(e) => e.insert(File::open(&file.path).map_err(io)?),
        };
        handle.seek(SeekFrom::Start(info.start)).map_err(io)?;
        let mut bytes = vec![0u8; usize::try_from(info.bytes).unwrap_or(usize::MAX)];
        handle.read_exact(&mut bytes).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::FileCorrupt {
                file: file.name.clone(),
                message: "it became shorter while it was read".to_owned(),
            },
            _ => io(e),
        })?;
        Ok(bytes)
    }
}

/// How a tensor has to be stored.
#[derive(Debug, Clone, Copy)]
enum Stored {
    /// In any type that this engine reads.
    Any,
    /// In floating numbers: whole ones would be read as weights, and load.
    Floating,
    /// In bytes, or in 8-bit floats, which come out as the bytes they are.
    Bytes,
}

impl Stored {
    /// The MLX type that tensor `name` of a stored type comes out in.
    fn dtype(self, name: &str, stored: safetensors::Dtype) -> Result<Dtype> {
        use safetensors::Dtype as In;
        let known = match (self, stored) {
            (Self::Any | Self::Floating, In::F32) => Some(Dtype::Float32),
            (Self::Any | Self::Floating, In::F16) => Some(Dtype::Float16),
            (Self::Any | Self::Floating, In::BF16) => Some(Dtype::Bfloat16),
            (Self::Any, In::U32) => Some(Dtype::Uint32),
            (Self::Any, In::U8) | (Self::Bytes, In::U8 | In::F8_E4M3) => Some(Dtype::Uint8),
            _ => None,
        };
        if let Some(known) = known {
            return Ok(known);
        }
        if matches!((self, stored), (Self::Any | Self::Floating, In::F8_E4M3 | In::F8_E5M2)) {
            return Err(Error::UnsupportedQuantization {
                method: format!("fp8 (tensor `{name}`)"),
            });
        }
        let expected = match self {
            Self::Any => "a floating or packed type",
            Self::Floating => "a floating type: F32, F16 or BF16",
            Self::Bytes => "F8_E4M3 or U8",
        };
        Err(Error::TensorShape {
            name: name.to_owned(),
            found: format!("{stored:?}"),
            expected: expected.to_owned(),
        })
    }
}
