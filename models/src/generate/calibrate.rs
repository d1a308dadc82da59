//! What a target pass costs by its rows, and a draft step: timed on the machine and for the pair in use.

use std::time::{Duration, Instant};

use mlx_rs::{Array, ops, transforms};

use super::{Costs, read_ids};
use crate::cache::Cache;
use crate::family::{Drafter, Target};
use crate::{Error, Result};

/// Rows that are timed; what lies between is taken to be on a line.
const ROWS: [usize; 6] = [1, 2, 3, 4, 6, 8];
/// Tokens before the timed ones: enough to leave no state at its start, few enough to cost nothing.
const BEFORE: i32 = 64;
/// Runs of each size after the first, which may compile kernels; the median counts.
const RUNS: usize = 5;
/// Time after which sizes are run once only: what is measured roughly is followed while generating.
const BUDGET: Duration = Duration::from_secs(3);
/// Drafts of the long chain; a step is what it costs beyond the short one.
const CHAIN: usize = 5;

/// Times target passes of up to `most` rows, as a round runs them, and the drafter's step.
///
/// # Errors
/// What MLX says.
pub fn calibrate<T: Target, D: Drafter<T>>(target: &T, drafter: &D, most: usize) -> Result<Costs> {
    let start = Instant::now();
    let mut cache = target.new_cache();
    let ids = tokens(target.vocabulary(), BEFORE);
    let hidden = target.forward(&ids, &mut cache)?;
    let mut state = drafter.new_state(0);
    let pairs = crate::nn::slice(&ids, 1, 1, BEFORE)?;
    drafter.absorb(target, &mut state, &pairs, &hidden.rows(0, BEFORE - 1)?)?;
    transforms::eval(cache.arrays().chain(drafter.arrays(&state)))?;

    let mut verify_ms = Vec::new();
    for rows in ROWS.into_iter().filter(|rows| *rows <= most.max(1)) {
        let ms = median(start, || pass(target, &mut cache, &ids, rows as i32))?;
        verify_ms.push((rows, ms));
    }
    let mark = drafter.mark(&state);
    let last = hidden.rows(BEFORE - 1, BEFORE)?;
    let token = crate::nn::slice(&ids, 1, 0, 1)?;
    let mut chain = |drafts| {
        median(start, || {
            drafter.back(&mut state, &mark);
            drafter.absorb(target, &mut state, &token, &last)?;
            let mut pick = |logits: &Array, _| greedy(logits);
            let drafted = drafter.draft(target, &mut state, drafts, None, &mut pick)?;
            read_ids(&drafted).map(drop)
        })
    };
    let (short, long) = (chain(1)?, chain(CHAIN)?);
    mlx_rs::memory::clear_cache()?;
    Ok(Costs {
        verify_ms,
        // Noise must not make drafts free.
        draft_ms: ((long - short) / (CHAIN - 1) as f64).max(short / CHAIN as f64),
    })
}

/// One pass over `rows` tokens, with choices and one read, as a round has it; the cache is as before.
fn pass<T: Target>(target: &T, cache: &mut Cache, ids: &Array, rows: i32) -> Result<()> {
    let before = cache.snapshot();
    let block = crate::nn::slice(ids, 1, 0, rows)?;
    let logits = target.logits(&target.verify(&block, cache)?.hidden)?;
    let choices = greedy(&logits)?;
    transforms::async_eval(std::iter::once(&choices).chain(cache.arrays()))?;
    read_ids(&choices)?;
    cache.restore(&before);
    Ok(())
}

fn greedy(logits: &Array) -> Result<Array> {
    Ok(ops::indexing::argmax_axis(logits, -1, false)?)
}

fn median(start: Instant, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    run()?;
    if start.elapsed() > BUDGET {
        return Ok(begin.elapsed().as_secs_f64() * 1e3);
    }
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begin = Instant::now();
        run()?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        if start.elapsed() > BUDGET {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    times
        .get(times.len() / 2)
        .copied()
        .ok_or_else(|| Error::backend("nothing was timed"))
}

/// `n` ids spread over the vocabulary: `[1, n]`. Which ones changes no time, but experts must not all be the same.
fn tokens(vocabulary: usize, n: i32) -> Array {
    let id = |i: i32| (i as u64 * 2_654_435_761 + 99) % vocabulary.max(1) as u64;
    let ids: Vec<u32> = (0..n).map(|i| id(i) as u32).collect();
    Array::from_slice(&ids, &[1, n])
}
