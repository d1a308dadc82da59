//! What a model remembers of a sequence: values handed in, never fields of a model.

mod kv;

pub use kv::{KvCache, KvFormat};

use mlx_rs::Array;

use crate::Result;

/// One layer's memory. Which parts a layer uses is its family's business.
#[derive(Debug, Clone, Default)]
pub struct LayerCache {
    /// Keys and values of attention.
    pub kv: KvCache,
    /// Carried states, e.g. convolution windows and recurrent matrices; empty before the first token.
    pub state: Vec<Array>,
}

/// A sequence's memory, layer by layer.
#[derive(Debug, Clone)]
pub struct Cache {
    /// One entry a layer.
    pub layers: Vec<LayerCache>,
    /// Tokens it holds.
    pub len: i32,
}

/// A point to go back to: lengths and handles, no copies. Keys and values are append-only, so going back is setting a
/// length; states are replaced, never written to, so a handle keeps the old one.
#[derive(Debug, Clone)]
pub struct Snapshot {
    layers: Vec<(i32, Vec<Array>)>,
    len: i32,
}

impl Cache {
    /// An empty cache of this many layers.
    #[must_use]
    pub fn new(layers: usize) -> Self {
        Self::with(layers, KvFormat::Plain)
    }

    /// An empty cache of this many layers, whose keys and values are held so.
    #[must_use]
    pub fn with(layers: usize, format: KvFormat) -> Self {
        let layer = LayerCache {
            kv: KvCache::new(format),
            state: Vec::new(),
        };
        Self {
            layers: vec![layer; layers],
            len: 0,
        }
    }

    /// Where the sequence stands now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            layers: self.layers.iter().map(|l| (l.kv.len(), l.state.clone())).collect(),
            len: self.len,
        }
    }

    /// Goes back to a snapshot of this cache.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        for (layer, (len, state)) in self.layers.iter_mut().zip(&snapshot.layers) {
            layer.kv.trim(*len);
            layer.state.clone_from(state);
        }
        self.len = snapshot.len;
    }

    /// A cache of the first `len` tokens' keys and values that shares no slab with this one. Carried states are not
    /// written to and stay as they are: restoring a snapshot sets them.
    ///
    /// # Errors
    /// What MLX says.
    pub fn copy(&self, len: i32) -> Result<Self> {
        let layers = self.layers.iter().map(|l| {
            Ok(LayerCache {
                kv: l.kv.copy(len)?,
                state: l.state.clone(),
            })
        });
        Ok(Self {
            layers: layers.collect::<Result<_>>()?,
            len: self.len.min(len),
        })
    }

    /// Every array, to be evaluated.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.layers.iter().flat_map(|l| l.kv.arrays().chain(&l.state))
    }
}

impl Snapshot {
    /// A layer's states at that point.
    #[must_use]
    pub fn state(&self, layer: usize) -> &[Array] {
        &self.layers[layer].1
    }

    /// The states of all layers.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.layers.iter().flat_map(|(_, states)| states)
    }

    /// Tokens held at that point.
    #[must_use]
    pub fn len(&self) -> i32 {
        self.len
    }

    /// Whether it is the very start.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
