//! The quantization block of a config, and which bits a module has.

use serde_json::{Map, Value};

use super::Fields;
use crate::{Error, Result};

/// How packed weights encode numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Integers with a scale and a bias a group.
    Affine,
    /// 4-bit floats, groups of 32 with a power-of-two scale.
    Mxfp4,
    /// 8-bit floats, groups of 32 with a power-of-two scale.
    Mxfp8,
    /// 4-bit floats, groups of 16 with an 8-bit float scale.
    Nvfp4,
}

impl Mode {
    /// MLX's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Affine => "affine",
            Mode::Mxfp4 => "mxfp4",
            Mode::Mxfp8 => "mxfp8",
            Mode::Nvfp4 => "nvfp4",
        }
    }

    fn parse(name: &str) -> Result<Self> {
        match name {
            "affine" => Ok(Mode::Affine),
            "mxfp4" => Ok(Mode::Mxfp4),
            "mxfp8" => Ok(Mode::Mxfp8),
            "nvfp4" => Ok(Mode::Nvfp4),
            other => Err(Error::UnsupportedQuantization {
                method: other.to_owned(),
            }),
        }
    }
}

/// Bits, group size and mode of one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuantizationSpec {
    /// How numbers are encoded.
    pub mode: Mode,
    /// Bits a weight.
    pub bits: i32,
    /// Weights that share a scale.
    pub group_size: i32,
}

impl std::fmt::Display for QuantizationSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}-bit, groups of {}",
            self.mode.as_str(),
            self.bits,
            self.group_size
        )
    }
}

/// The quantization block of a config.
#[derive(Debug, Clone, Default)]
pub struct Quantization {
    default: Option<QuantizationSpec>,
    overrides: std::collections::BTreeMap<String, Option<QuantizationSpec>>,
    by_shapes: bool,
    fp8_block: Option<[i32; 2]>,
}

impl Quantization {
    /// Reads `quantization`, or `quantization_config` where that is its MLX copy or block-scaled FP8.
    ///
    /// # Errors
    /// A method this engine does not read, by name, and values no mode has.
    pub fn read(config: &Map<String, Value>) -> Result<Self> {
        for key in ["quantization", "quantization_config"] {
            let holder = [
                config,
                config.get("text_config").and_then(Value::as_object).unwrap_or(config),
            ];
            for object in holder {
                let Some(block) = Fields::new(object).object(key)? else {
                    continue;
                };
                if let Some(method) = block.text("quant_method")? {
                    if method == "fp8" {
                        return Self::fp8(block);
                    }
                    return Err(Error::UnsupportedQuantization {
                        method: method.to_owned(),
                    });
                }
                if let Some(Value::Object(block)) = object.get(key) {
                    return Self::parse(block);
                }
            }
        }
        Ok(Self::default())
    }

    /// Reads one block.
    ///
    /// # Errors
    /// As [`Quantization::read`].
    pub fn parse(block: &Map<String, Value>) -> Result<Self> {
        let fields = Fields::new(block);
        let default = if fields.get("bits").is_some() || fields.get("mode").is_some() {
            Some(spec(fields, None)?)
        } else {
            None
        };
        let mut overrides = std::collections::BTreeMap::new();
        for (path, value) in block {
            match value {
                Value::Bool(false) => {
                    overrides.insert(path.clone(), None);
                }
                Value::Object(inner) => {
                    overrides.insert(path.clone(), Some(spec(Fields::new(inner), default)?));
                }
                _ => {}
            }
        }
        Ok(Self {
            default,
            overrides,
            ..Self::default()
        })
    }

    /// FP8 with one scale a block: E4M3, blocks named by the config.
    fn fp8(block: Fields<'_>) -> Result<Self> {
        if let Some(format) = block.text("fmt")?.filter(|f| *f != "e4m3") {
            return Err(Error::UnsupportedQuantization {
                method: format!("fp8 ({format})"),
            });
        }
        let sides = block.ints("weight_block_size", 1, 4096)?;
        let Some([rows, columns]) = sides.as_deref() else {
            return Err(Error::UnsupportedQuantization {
                method: "fp8 without weight_block_size".to_owned(),
            });
        };
        Ok(Self {
            fp8_block: Some([*rows, *columns]),
            ..Self::default()
        })
    }

    /// Rows and columns of the blocks that share a scale, where the config says FP8.
    #[must_use]
    pub fn fp8_block(&self) -> Option<[i32; 2]> {
        self.fp8_block
    }

    /// For tensors that come without a config: each module's shapes say how it is packed.
    #[must_use]
    pub fn by_shapes() -> Self {
        Self {
            by_shapes: true,
            ..Self::default()
        }
    }

    /// Whether the config says nothing at all.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.default.is_none() && self.overrides.is_empty() && self.fp8_block.is_none()
    }

    /// Whether shapes decide.
    #[must_use]
    pub fn is_by_shapes(&self) -> bool {
        self.by_shapes
    }

    /// Lists modules under other names too: for conversions that keep the settings of parts they have fused.
    #[must_use]
    pub fn also_as(mut self, others: impl Fn(&str) -> Vec<String>) -> Self {
        let added: Vec<_> = (self.overrides.iter())
            .flat_map(|(path, spec)| others(path).into_iter().map(|other| (other, *spec)))
            .collect();
        for (path, spec) in added {
            self.overrides.entry(path).or_insert(spec);
        }
        self
    }

    /// The whole model's setting.
    #[must_use]
    pub fn default_spec(&self) -> Option<QuantizationSpec> {
        self.default
    }

    /// What the config says of a module that has `.scales`, under any of the names it may be listed by.
    #[must_use]
    pub fn spec(&self, paths: &[String]) -> Option<QuantizationSpec> {
        for path in paths {
            if let Some(found) = self.overrides.get(path) {
                return *found;
            }
        }
        self.default
    }
}

impl QuantizationSpec {
    /// The only way in which `input` numbers a row fit packed rows of `words` u32 and `groups` scales a row.
    #[must_use]
    pub fn of_shapes(input: i32, words: i64, groups: i64, has_biases: bool) -> Option<Self> {
        let input = i64::from(input);
        if groups <= 0 || input % groups != 0 || words * 32 % input != 0 {
            return None;
        }
        let (bits, group_size) = ((words * 32 / input) as i32, i32::try_from(input / groups).ok()?);
        let mode = match (has_biases, bits, group_size) {
            (true, 2 | 3 | 4 | 5 | 6 | 8, 32 | 64 | 128) => Mode::Affine,
            (false, 4, 32) => Mode::Mxfp4,
            (false, 8, 32) => Mode::Mxfp8,
            (false, 4, 16) => Mode::Nvfp4,
            _ => return None,
        };
        Some(Self { mode, bits, group_size })
    }
}

fn spec(fields: Fields<'_>, base: Option<QuantizationSpec>) -> Result<QuantizationSpec> {
    let mode = match fields.text("mode")? {
        Some(name) => Mode::parse(name)?,
        // An exception without a mode is affine whatever the rest is, as MLX reads it.
        None => Mode::Affine,
    };
    let (default_bits, default_group) = match mode {
        Mode::Affine => (4, 64),
        Mode::Mxfp4 => (4, 32),
        Mode::Mxfp8 => (8, 32),
        Mode::Nvfp4 => (4, 16),
    };
    let base = base.filter(|b| b.mode == mode);
    let bits = fields
        .int("bits", 1, 32)?
        .unwrap_or(base.map_or(default_bits, |b| b.bits));
    let group_size = fields
        .int("group_size", 1, 4096)?
        .unwrap_or(base.map_or(default_group, |b| b.group_size));
    let allowed = match mode {
        Mode::Affine => [2, 3, 4, 5, 6, 8].contains(&bits) && [32, 64, 128].contains(&group_size),
        _ => bits == default_bits && group_size == default_group,
    };
    if !allowed {
        let (field, value, expected) = match mode {
            Mode::Affine if ![2, 3, 4, 5, 6, 8].contains(&bits) => ("bits", bits, "2, 3, 4, 5, 6 or 8".to_owned()),
            Mode::Affine => ("group_size", group_size, "32, 64 or 128".to_owned()),
            _ if bits != default_bits => ("bits", bits, format!("{default_bits} for {}", mode.as_str())),
            _ => (
                "group_size",
                group_size,
                format!("{default_group} for {}", mode.as_str()),
            ),
        };
        return Err(Fields::error(field, value, expected));
    }
    Ok(QuantizationSpec { mode, bits, group_size })
}
