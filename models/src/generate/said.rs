//! Tokens that were said in the model's place: run like those it chose.

use mlx_rs::Array;

use crate::Result;
use crate::cache::Cache;
use crate::family::{Hidden, Target};
use crate::sampler::{Counts, Sampler};

/// Runs `ids` after what the cache holds, up to `rows` at once. The hidden state of each, `[1, 1, H]`.
pub(super) fn run_said<T: Target>(target: &T, cache: &mut Cache, ids: &[u32], rows: usize) -> Result<Vec<Hidden>> {
    let mut read = Vec::with_capacity(ids.len());
    for block in ids.chunks(rows.max(1)) {
        let hidden = target.forward(&Array::from_slice(block, &[1, block.len() as i32]), cache)?;
        for row in 0..hidden.len() {
            read.push(hidden.rows(row, row + 1)?);
        }
    }
    Ok(read)
}

/// The occurrences with `ids` among them.
pub(super) fn count_said(sampler: &Sampler, counts: &Counts, ids: &[u32]) -> Result<Counts> {
    let mut counts = counts.clone();
    if counts.is_some() {
        for id in ids {
            counts = sampler.add(&counts, &Array::from_slice(&[*id], &[1, 1]))?;
        }
    }
    Ok(counts)
}
