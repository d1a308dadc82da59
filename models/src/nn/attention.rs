//! Softmax attention over a growing cache.

use mlx_rs::Array;
use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};

use crate::Result;

/// Causal attention of the last `L` positions: queries `[1, Hq, L, D]`, keys and values `[1, Hk, S, D]` with
/// `S >= L`, result `[1, Hq, L, D]`. Query head `h` reads key head `h / (Hq / Hk)`.
pub fn attention(queries: &Array, keys: &Array, values: &Array, scale: f32) -> Result<Array> {
    let causal = (queries.shape()[2] > 1).then_some(ScaledDotProductAttentionMask::Causal);
    Ok(scaled_dot_product_attention(
        queries, keys, values, scale, causal, None,
    )?)
}
