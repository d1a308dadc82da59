//! Keys and values of one attention layer.

use mlx_rs::{Array, Dtype};

use crate::checkpoint::{Mode, QuantizationSpec};
use crate::nn::{dequantize, quantize, slice, slice_update, zeros};
use crate::{Error, Result};

/// Rows a slab grows by.
const STEP: i32 = 256;
/// Rows a slab has beyond a multiple of that. MLX's CUDA backend takes slabs of a multiple of 256 rows for those of its own
/// caches, and attends to them from 256 keys on with another kernel, which rounds otherwise; and only where the allocator
/// happened to give a buffer of that very size, so not even two plain runs agree.
const ODD: i32 = 8;

/// How keys and values are held.
///
/// Packing is row by row, so a row is held alike whether it came alone or in a block: speculation leaves the text alone in
/// either format. Between the formats the text differs, as packed numbers are rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KvFormat {
    /// As the activations are.
    #[default]
    Plain,
    /// Packed in integers of so many bits with a scale and a bias for every 64 or 32 numbers: 8 or 4.
    Packed(u8),
}

/// Append-only keys and values `[1, H, len, D]` in a slab with room to spare. What lies past `len` is garbage.
#[derive(Debug, Clone, Default)]
pub struct KvCache {
    slabs: Option<(Slab, Slab)>,
    len: i32,
    format: KvFormat,
}

/// Rows in the format they are held in: one array, or packed words, scales and biases. Rows are axis 2 of each.
#[derive(Debug, Clone)]
struct Slab {
    parts: Vec<Array>,
    packing: Option<(QuantizationSpec, Dtype)>,
}

impl Slab {
    /// Rows `[1, H, L, D]` as they will be held.
    fn of(rows: &Array, format: KvFormat) -> Result<Self> {
        let KvFormat::Packed(bits) = format else {
            return Ok(Self {
                parts: vec![rows.clone()],
                packing: None,
            });
        };
        let size = rows.shape()[3];
        let Some(group_size) = [64, 32].into_iter().find(|g| size % g == 0) else {
            return Err(Error::Usage {
                message: format!(
                    "keys and values of {size} numbers cannot be packed, only multiples of 32 can: load this model \
                     without packing them"
                ),
            });
        };
        let spec = QuantizationSpec {
            mode: Mode::Affine,
            group_size,
            bits: bits.into(),
        };
        Ok(Self {
            parts: quantize(rows, spec)?,
            packing: Some((spec, rows.dtype())),
        })
    }

    fn rows(&self) -> i32 {
        self.parts.first().map_or(0, |a| a.shape()[2])
    }

    /// Rows `0..len` as numbers.
    fn view(&self, len: i32) -> Result<Array> {
        let part = |i: usize, rows: i32| match self.parts.get(i) {
            Some(part) => slice(part, 2, 0, rows),
            None => Err(Error::backend("keys and values without a part")),
        };
        match self.packing {
            None => part(0, len),
            Some((spec, dtype)) => {
                // Made anew each time, so of that very size: a row more, which is cut off, for the reason of [`ODD`].
                let made = if len % STEP == 0 {
                    (len + 1).min(self.rows())
                } else {
                    len
                };
                let all = dequantize(&part(0, made)?, &part(1, made)?, Some(&part(2, made)?), spec, dtype)?;
                slice(&all, 2, 0, len)
            }
        }
    }

    /// The same with every part made anew by `change`.
    fn map(&self, change: impl Fn(usize, &Array) -> Result<Array>) -> Result<Self> {
        let parts = self.parts.iter().enumerate();
        Ok(Self {
            parts: parts.map(|(i, a)| change(i, a)).collect::<Result<_>>()?,
            packing: self.packing,
        })
    }
}

impl KvCache {
    /// Holds nothing yet.
    #[must_use]
    pub fn new(format: KvFormat) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Rows held.
    #[must_use]
    pub fn len(&self) -> i32 {
        self.len
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `[1, H, L, D]` each and returns views of everything held.
    ///
    /// # Errors
    /// [`Error::Usage`] when rows of this size cannot be packed, and what MLX says.
    pub fn append(&mut self, keys: &Array, values: &Array) -> Result<(Array, Array)> {
        let end = self.len + keys.shape()[2];
        let (keys, values) = (Slab::of(keys, self.format)?, Slab::of(values, self.format)?);
        // Taken out, so that nobody else holds the slabs and the update happens in place.
        let (k, v) = match self.slabs.take() {
            Some((k, v)) if k.rows() >= end => (k, v),
            Some((k, v)) => (self.grow(Some(&k), &keys, end)?, self.grow(Some(&v), &values, end)?),
            None => (self.grow(None, &keys, end)?, self.grow(None, &values, end)?),
        };
        let write = |slab: Slab, rows: &Slab| {
            let mut parts = Vec::with_capacity(slab.parts.len());
            for (part, new) in slab.parts.into_iter().zip(&rows.parts) {
                parts.push(slice_update(&part, new, 2, self.len)?);
            }
            Ok::<_, Error>(Slab {
                parts,
                packing: slab.packing,
            })
        };
        let (k, v) = (write(k, &keys)?, write(v, &values)?);
        let views = (k.view(end)?, v.view(end)?);
        self.slabs = Some((k, v));
        self.len = end;
        Ok(views)
    }

    /// A slab with room for `end` rows, the held ones of `old` at its start.
    fn grow(&self, old: Option<&Slab>, like: &Slab, end: i32) -> Result<Slab> {
        let room = (end + STEP - 1) / STEP * STEP + ODD;
        like.map(|i, part| {
            let s = part.shape();
            let held = old.and_then(|old| old.parts.get(i));
            let missing = room - held.map_or(0, |_| self.len);
            let fresh = zeros(&[s[0], s[1], missing, s[3]], part.dtype())?;
            match held {
                Some(held) => Ok(mlx_rs::ops::concatenate(&[&slice(held, 2, 0, self.len)?, &fresh], 2)?),
                None => Ok(fresh),
            }
        })
    }

    /// Moves the `count` rows from `from` on to `to`, and forgets what lies behind them.
    ///
    /// # Errors
    /// Rows that are not held, and what MLX says.
    pub fn pull(&mut self, from: i32, count: i32, to: i32) -> Result<()> {
        if to < 0 || to > from || from + count > self.len {
            return Err(Error::backend("keys and values are moved that are not there"));
        }
        if from != to {
            let moved = |slab: Slab| {
                let mut parts = Vec::with_capacity(slab.parts.len());
                for part in slab.parts {
                    let rows = slice(&part, 2, from, from + count)?;
                    parts.push(slice_update(&part, &rows, 2, to)?);
                }
                Ok::<_, Error>(Slab {
                    parts,
                    packing: slab.packing,
                })
            };
            if let Some((k, v)) = self.slabs.take() {
                self.slabs = Some((moved(k)?, moved(v)?));
            }
        }
        self.len = to + count;
        Ok(())
    }

    /// Forgets all rows from `len` on.
    pub fn trim(&mut self, len: i32) {
        self.len = self.len.min(len);
    }

    /// The first `len` rows in slabs of their own.
    ///
    /// # Errors
    /// What MLX says.
    pub fn copy(&self, len: i32) -> Result<Self> {
        let len = self.len.min(len);
        let copied = |slab: &Slab| slab.map(|_, part| Ok(slice(part, 2, 0, len)?.contiguous()?));
        let slabs = match &self.slabs {
            Some((k, v)) if len > 0 => Some((copied(k)?, copied(v)?)),
            _ => None,
        };
        Ok(Self {
            slabs,
            len,
            format: self.format,
        })
    }

    /// The slabs, to be evaluated.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.slabs.iter().flat_map(|(k, v)| k.parts.iter().chain(&v.parts))
    }

    /// Keys and values held, `[1, H, len, D]` each; `None` when empty.
    ///
    /// # Errors
    /// What MLX says.
    pub fn held(&self) -> Result<Option<(Array, Array)>> {
        match &self.slabs {
            Some((k, v)) if self.len > 0 => Ok(Some((k.view(self.len)?, v.view(self.len)?))),
            _ => Ok(None),
        }
    }
}
