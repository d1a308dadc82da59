//! Softmax attention whose only notion of position is a learned bias for each distance.

use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};
use mlx_rs::{Array, Dtype, ops};

use super::config::{AttentionShape, Config, LogScaling};
use super::sconv::ShortConv;
use crate::Result;
use crate::cache::LayerCache;
use crate::checkpoint::Weights;
use crate::nn::rows::{CHECKED_ROWS, Op, Probe, in_rows, is_exact, noise};
use crate::nn::{Linear, Reach, checked_keys, in_reach, rms_norm, scalar, slice, zero};

/// Score of a key that is not seen.
const HIDDEN: f32 = -1e30;

/// Who sees whom in one pass: the same for every layer of a kind.
#[derive(Debug)]
pub(super) struct Band {
    /// First key that any row sees.
    first: i32,
    /// Distance of each row to each key from `first` on, kept inside the bias table: `[1, 1, L, S]`.
    distance: Array,
    /// Keys past the bias table, where those have bias 0.
    far: Option<Array>,
    /// Keys ahead, and keys outside the window.
    hidden: Array,
    /// Factor of queries and biases, `[1, 1, L, 1]`.
    tau: Option<Array>,
    /// What it was made of.
    offset: i32,
    shape: AttentionShape,
    scaling: Option<LogScaling>,
    dtype: Dtype,
}

impl Band {
    /// The band of `rows` rows after `offset` held ones.
    pub(super) fn new(
        offset: i32,
        rows: i32,
        shape: AttentionShape,
        scaling: Option<LogScaling>,
        dtype: Dtype,
    ) -> Result<Self> {
        let end = offset + rows;
        // Keys that no row sees are left out: their weight would be exactly 0.
        let first = if shape.sliding {
            (end - rows - shape.extent + 1).max(0)
        } else {
            0
        };
        let queries = Array::arange::<_, i32>(offset, end, None)?.reshape(&[1, 1, rows, 1])?;
        let keys = Array::arange::<_, i32>(first, end, None)?.reshape(&[1, 1, 1, end - first])?;
        let distance = queries.subtract(keys)?; // [1, 1, L, S]
        let (none, last) = (Array::from_int(0), Array::from_int(shape.extent - 1));
        let ahead = distance.lt(&none)?;
        let far = distance.gt(&last)?;
        let (hidden, far) = if shape.sliding {
            (ahead.logical_or(far)?, None)
        } else {
            (ahead, Some(far))
        };
        let tau = scaling.filter(|_| !shape.sliding).map(|s| {
            let factors: Vec<f32> = (offset..end).map(|position| tau(position, s)).collect();
            Array::from_slice(&factors, &[1, 1, rows, 1]).as_dtype(dtype)
        });
        Ok(Self {
            first,
            distance: ops::minimum(ops::maximum(distance, none)?, last)?,
            far,
            hidden,
            tau: tau.transpose()?,
            offset,
            shape,
            scaling,
            dtype,
        })
    }

    /// The band of rows `from..to` alone.
    fn part(&self, from: i32, to: i32) -> Result<Self> {
        Self::new(self.offset + from, to - from, self.shape, self.scaling, self.dtype)
    }

    /// The additive mask `[1, Hq, L, S]` from the biases by distance, `[1, Hq, L, extent]`.
    fn mask(&self, by_distance: &Array) -> Result<Array> {
        let dtype = by_distance.dtype();
        let mut bias = by_distance.take_along_axis(&self.distance, 3)?;
        if let Some(far) = &self.far {
            bias = ops::select(far, zero(dtype)?, bias)?;
        }
        if let Some(tau) = &self.tau {
            bias = bias.multiply(tau)?;
        }
        Ok(ops::select(&self.hidden, scalar(HIDDEN, dtype)?, bias)?)
    }
}

/// What rows `from..to` of a block see after `before` positions.
fn reach(shape: AttentionShape, before: i32, from: i32, to: i32) -> Reach {
    let first = if shape.sliding {
        (before + from + 1).min(shape.extent)
    } else {
        before + from + 1
    };
    Reach {
        first,
        all: first + (to - from - 1),
    }
}

/// `1 + alpha * ln(max((position + 1) / floor, 1))`.
fn tau(position: i32, s: LogScaling) -> f32 {
    let growth = (f64::from(position) + 1.0) / f64::from(s.floor);
    (1.0 + f64::from(s.alpha) * growth.max(1.0).ln()) as f32
}

/// What attention leaves behind: the windows of its two convolutions.
pub(super) struct Windows {
    pub(super) k: Array,
    pub(super) v: Array,
}

/// Attention with relative biases and short convolutions on keys and values.
#[derive(Debug)]
pub(super) struct Attention {
    /// Rows of queries, keys, values and relative queries: one matrix, or four where they are packed differently.
    qkvr: Vec<Linear>,
    o_proj: Linear,
    q_norm: Array,
    k_norm: Array,
    k_sconv: ShortConv,
    v_sconv: ShortConv,
    /// `[d_rel, extent]`.
    rel_proj: Array,
    shape: AttentionShape,
    d_rel: i32,
    eps: f32,
}

impl Attention {
    /// Takes the tensors below `path`.
    pub(super) fn load(w: &mut Weights<'_>, path: &str, shape: AttentionShape, c: &Config) -> Result<Self> {
        let (hidden, d, kernel) = (c.hidden_size, shape.head_dim, c.sconv_kernel_size);
        let (q, kv, r) = (shape.heads * d, shape.kv_heads * d, shape.heads * c.d_rel);
        let at = |name: &str| format!("{path}.{name}");
        let fused = at("qkvr_proj");
        let qkvr = if w.contains(&format!("{fused}.weight")) {
            vec![w.linear(&fused, q + 2 * kv + r, hidden)?]
        } else {
            let parts = [("q_proj", q), ("k_proj", kv), ("v_proj", kv), ("r_proj", r)];
            let parts = parts
                .iter()
                .map(|(name, rows)| w.linear(&at(name), *rows, hidden))
                .collect::<Result<Vec<_>>>()?;
            joined(w, parts)?
        };
        Ok(Self {
            qkvr,
            o_proj: w.linear(&at("o_proj"), hidden, q)?,
            q_norm: w.take_norm(&at("q_norm.weight"), d, false)?,
            k_norm: w.take_norm(&at("k_norm.weight"), d, false)?,
            k_sconv: ShortConv::load(w, &at("k_sconv"), kv, kernel)?,
            v_sconv: ShortConv::load(w, &at("v_sconv"), kv, kernel)?,
            rel_proj: w.take(&at("rel_proj"), &[c.d_rel, shape.extent])?,
            shape,
            d_rel: c.d_rel,
            eps: c.rms_norm_eps,
        })
    }

    /// `x` `[1, L, H]` to `[1, L, H]`. The convolutions' states are `cache.state[0]` and `[1]`.
    pub(super) fn forward(&self, x: &Array, cache: &mut LayerCache, band: &Band) -> Result<(Array, Windows)> {
        let AttentionShape {
            heads,
            kv_heads,
            head_dim,
            ..
        } = self.shape;
        let rows = x.shape()[1];
        // 1. Project; the parts lie side by side.
        let parts = self.qkvr.iter().map(|p| p.forward(x)).collect::<Result<Vec<_>>>()?;
        let qkvr = match parts.as_slice() {
            [one] => one.clone(),
            many => ops::concatenate(many, -1)?,
        }; // [1, L, q + 2 kv + r]
        let (q, kv) = (heads * head_dim, kv_heads * head_dim);
        let part = |from: i32, width: i32| slice(&qkvr, 2, from, from + width);
        // 2. Convolve keys and values, then norm queries and keys.
        let (k, k_window) = self.k_sconv.forward(&part(q, kv)?, cache.state.first())?;
        let (v, v_window) = self.v_sconv.forward(&part(q + kv, kv)?, cache.state.get(1))?;
        let split = |a: &Array, n: i32, d: i32| a.reshape(&[1, rows, n, d]);
        let q_heads = rms_norm(&split(&part(0, q)?, heads, head_dim)?, Some(&self.q_norm), self.eps)?;
        let k_heads = rms_norm(&split(&k, kv_heads, head_dim)?, Some(&self.k_norm), self.eps)?;
        let v_heads = split(&v, kv_heads, head_dim)?.swap_axes(1, 2)?;
        // 3. Attend to what the band sees, with biases by distance.
        let r = split(&part(q + 2 * kv, heads * self.d_rel)?, heads, self.d_rel)?;
        let (keys, values) = cache.kv.append(&k_heads.swap_axes(1, 2)?, &v_heads)?;
        let op = Op::Attention {
            heads,
            kv_heads,
            head_dim,
            window: Some(self.shape.extent),
            dtype: x.dtype(),
        };
        let held = keys.shape()[2];
        let is_exact = is_exact(&op, rows);
        let piece = |from, to| {
            if to - from == rows {
                return attend(&q_heads, &r, &keys, &values, &self.rel_proj, band);
            }
            let cut = |a: &Array| slice(a, 1, from, to);
            let seen = |a: &Array| slice(a, 2, 0, held - rows + to);
            let band = band.part(from, to)?;
            attend(
                &cut(&q_heads)?,
                &cut(&r)?,
                &seen(&keys)?,
                &seen(&values)?,
                &self.rel_proj,
                &band,
            )
        };
        let run = |from, to, _| match is_exact {
            true => in_reach(from, to, reach(self.shape, band.offset, from, to), &piece),
            false => piece(from, to),
        };
        let out = in_rows(op, rows, false, &run, || self.probe(band))?;
        // 5. Project back.
        let out = out.reshape(&[1, rows, heads * head_dim])?;
        let windows = Windows {
            k: k_window,
            v: v_window,
        };
        Ok((self.o_proj.forward(&out)?, windows))
    }

    /// The same attention on made-up numbers, after different numbers of keys.
    fn probe(&self, band: &Band) -> Result<Probe> {
        let (shape, scaling, dtype) = (self.shape, band.scaling, band.dtype);
        let rows = CHECKED_ROWS;
        let most = checked_keys().iter().max().copied().unwrap_or_default() + rows;
        let q = noise(&[1, rows, shape.heads, shape.head_dim], dtype, 13)?;
        let r = noise(&[1, rows, shape.heads, self.d_rel], dtype, 14)?;
        let keys = noise(&[1, shape.kv_heads, most, shape.head_dim], dtype, 15)?;
        let values = noise(&[1, shape.kv_heads, most, shape.head_dim], dtype, 16)?;
        let rel_proj = self.rel_proj.clone();
        Ok(Box::new(move |from, to, _| {
            let mut outs = Vec::new();
            for &before in checked_keys() {
                let run = |from: i32, to: i32| {
                    let band = Band::new(before + from, to - from, shape, scaling, dtype)?;
                    let held = |a: &Array| slice(a, 2, 0, before + to);
                    let cut = |a: &Array| slice(a, 1, from, to);
                    attend(&cut(&q)?, &cut(&r)?, &held(&keys)?, &held(&values)?, &rel_proj, &band)
                };
                outs.push(in_reach(from, to, reach(shape, before, from, to), &run)?);
            }
            Ok(ops::concatenate(&outs, 3)?)
        }))
    }
}

/// Queries `[1, L, Hq, D]` and relative queries `[1, L, Hq, d_rel]` on everything held `[1, Hk, S, D]`: `[1, L, Hq, D]`.
fn attend(q: &Array, r: &Array, keys: &Array, values: &Array, rel_proj: &Array, band: &Band) -> Result<Array> {
    let mask = band.mask(&r.matmul(rel_proj)?.swap_axes(1, 2)?)?; // [1, Hq, L, S]
    let mut queries = q.swap_axes(1, 2)?; // [1, Hq, L, D]
    if let Some(tau) = &band.tau {
        queries = queries.multiply(tau)?;
    }
    let seen = |a: &Array| slice(a, 2, band.first, a.shape()[2]);
    let scale = 1.0 / q.shape()[3] as f32; // not the root
    let mask = ScaledDotProductAttentionMask::Array(&mask);
    let out = scaled_dot_product_attention(&queries, seen(keys)?, seen(values)?, scale, mask, None)?;
    Ok(out.swap_axes(1, 2)?)
}

/// One matrix of all rows where they are packed alike; a row's product does not depend on its neighbours.
fn joined(w: &Weights<'_>, parts: Vec<Linear>) -> Result<Vec<Linear>> {
    let spec = parts.first().and_then(Linear::spec);
    if parts.iter().any(|p| p.spec() != spec) {
        return Ok(parts);
    }
    let stack = |pick: &dyn Fn(&Linear) -> Option<Array>| -> Result<Option<Array>> {
        let rows: Option<Vec<Array>> = parts.iter().map(pick).collect();
        rows.map(|rows| w.settle(ops::concatenate(&rows, 0)?)).transpose()
    };
    let weight = stack(&|p| match p {
        Linear::Dense { weight } | Linear::Quantized { weight, .. } => Some(weight.clone()),
    })?;
    let scales = stack(&|p| match p {
        Linear::Dense { .. } => None,
        Linear::Quantized { scales, .. } => Some(scales.clone()),
    })?;
    let biases = stack(&|p| match p {
        Linear::Dense { .. } => None,
        Linear::Quantized { biases, .. } => biases.clone(),
    })?;
    Ok(match (weight, scales, spec) {
        (Some(weight), None, None) => vec![Linear::Dense { weight }],
        (Some(weight), Some(scales), Some(spec)) => vec![Linear::Quantized {
            weight,
            scales,
            biases,
            spec,
        }],
        _ => parts,
    })
}
