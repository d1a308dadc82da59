//! Reading the prompt, chunk by chunk.

use std::ops::ControlFlow;

use mlx_rs::Array;

use crate::cache::Cache;
use crate::family::{Hidden, Target};
use crate::{Error, Result};

/// Prompt tokens of one forward pass. The same with and without a drafter, since chunk borders change roundings.
pub const PREFILL_CHUNK: usize = 512;

/// Hears of each chunk: tokens read so far, the chunk's hidden states and its first position. `Break` stops.
pub type PrefillProgress<'a> = dyn FnMut(usize, &Hidden, usize) -> Result<ControlFlow<()>> + 'a;

/// Runs the prompt into `cache`. Returns the last position's hidden state `[1, 1, H]`, or `None` when stopped.
///
/// # Errors
/// An empty prompt, ids outside the vocabulary, and what MLX says.
pub fn prefill<T: Target>(
    target: &T,
    prompt: &[u32],
    cache: &mut Cache,
    progress: &mut PrefillProgress<'_>,
) -> Result<Option<Hidden>> {
    // An id that is not there would read outside the embedding.
    if let Some(id) = prompt.iter().find(|id| **id as usize >= target.vocabulary()) {
        return Err(Error::Usage {
            message: format!("token id {id} is not in the vocabulary of {}", target.vocabulary()),
        });
    }
    let mut last = None;
    let mut from = 0;
    for chunk in prompt.chunks(PREFILL_CHUNK) {
        let tokens = Array::from_slice(chunk, &[1, chunk.len() as i32]);
        let hidden = target.forward(&tokens, cache)?;
        let done = from + chunk.len();
        if progress(done, &hidden, from)?.is_break() {
            return Ok(None);
        }
        // One chunk's intermediates at a time.
        if done < prompt.len() {
            mlx_rs::transforms::eval(cache.arrays())?;
            mlx_rs::memory::clear_cache()?;
        }
        let rows = hidden.len();
        last = Some(hidden.rows(rows - 1, rows)?);
        from = done;
    }
    last.map(Some).ok_or_else(|| Error::Usage {
        message: "the prompt is empty".to_owned(),
    })
}
