//! Keys and values of one attention layer.

use mlx_rs::Array;

use crate::Result;
use crate::nn::{slice, slice_update, zeros};

/// Rows a slab grows by.
const STEP: i32 = 256;

/// Append-only keys and values `[1, H, len, D]` in a slab with room to spare. What lies past `len` is garbage.
#[derive(Debug, Clone, Default)]
pub struct KvCache {
    slabs: Option<(Array, Array)>,
    len: i32,
}

impl KvCache {
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
    pub fn append(&mut self, keys: &Array, values: &Array) -> Result<(Array, Array)> {
        let rows = keys.shape()[2];
        let end = self.len + rows;
        // Taken out, so that nobody else holds the slabs and the update happens in place.
        let (k, v) = match self.slabs.take() {
            Some((k, v)) if k.shape()[2] >= end => (k, v),
            old => {
                let room = (end + STEP - 1) / STEP * STEP;
                let grow = |old: Option<Array>, like: &Array| -> Result<Array> {
                    let s = like.shape();
                    let missing = room - old.as_ref().map_or(0, |_| self.len);
                    let fresh = zeros(&[s[0], s[1], missing, s[3]], like.dtype())?;
                    match old {
                        Some(old) => Ok(mlx_rs::ops::concatenate(&[&slice(&old, 2, 0, self.len)?, &fresh], 2)?),
                        None => Ok(fresh),
                    }
                };
                let (k, v) = old.map_or((None, None), |(k, v)| (Some(k), Some(v)));
                (grow(k, keys)?, grow(v, values)?)
            }
        };
        let (k, v) = (
            slice_update(&k, keys, 2, self.len)?,
            slice_update(&v, values, 2, self.len)?,
        );
        let views = (slice(&k, 2, 0, end)?, slice(&v, 2, 0, end)?);
        self.slabs = Some((k, v));
        self.len = end;
        Ok(views)
    }

    /// Forgets all rows from `len` on.
    pub fn trim(&mut self, len: i32) {
        self.len = self.len.min(len);
    }

    /// The first `len` rows in slabs of their own.
    pub fn copy(&self, len: i32) -> Result<Self> {
        let len = self.len.min(len);
        let copied = |a: &Array| -> Result<Array> { Ok(slice(a, 2, 0, len)?.contiguous()?) };
        let slabs = match &self.slabs {
            Some((k, v)) if len > 0 => Some((copied(k)?, copied(v)?)),
            _ => None,
        };
        Ok(Self { slabs, len })
    }

    /// The slabs, to be evaluated.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.slabs.iter().flat_map(|(k, v)| [k, v])
    }

    /// Keys and values held, `[1, H, len, D]` each; `None` when empty.
    pub fn held(&self) -> Result<Option<(Array, Array)>> {
        match &self.slabs {
            Some((k, v)) if self.len > 0 => Ok(Some((slice(k, 2, 0, self.len)?, slice(v, 2, 0, self.len)?))),
            _ => Ok(None),
        }
    }
}
