//! Whether a block of rows gives, bit for bit, what its rows give alone: checked on the device in use.
//!
//! First operation by operation, which finds out how each has to be run (the *policy*); then the whole target under that
//! policy, which finds out up to which block size the promise holds. Kernels are chosen by shape and type and never by
//! the numbers, so made-up numbers tell.

use std::collections::BTreeMap;
use std::rc::Rc;

use mlx_rs::{Array, Dtype, ops};
use serde::{Deserialize, Serialize};

use super::read_ids;
use crate::cache::Cache;
use crate::engine::MAX_BLOCK_SIZE;
use crate::family::{Hidden, Target};
use crate::nn::rows::{self, CHECKED_ROWS, Probe, Recorded, RowPolicy, Way};
use crate::{Error, Result};

/// How one operation of a checkpoint has to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpVerdict {
    /// The operation, its shapes and types.
    pub op: String,
    /// Most rows that run at once and equal single rows; [`CHECKED_ROWS`] when nothing has to be done.
    pub rows: usize,
    /// Whether all rows run in one call that takes each by itself.
    pub gathered: bool,
}

impl OpVerdict {
    fn new(op: String, way: Way) -> Self {
        let (rows, gathered) = match way {
            Way::Together(rows) => (rows as usize, false),
            Way::Gathered => (1, true),
        };
        Self { op, rows, gathered }
    }

    fn way(&self) -> Way {
        match self.gathered {
            true => Way::Gathered,
            false => Way::Together((self.rows as i32).clamp(1, CHECKED_ROWS)),
        }
    }

    /// Whether the operation runs as it is.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.way().is_native()
    }
}

/// What the check of a target found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Each kind of operation once, by name.
    pub ops: Vec<OpVerdict>,
    /// Most tokens a block may have; 1 when not even two rows can be made equal to single ones.
    pub block: usize,
}

/// Checks a target, or takes over what is known of the same checkpoint on the same device. Returns what was found and
/// the policy that makes it hold.
///
/// # Errors
/// What MLX says.
pub fn self_check<T: Target>(target: &T, known: Option<&SelfCheck>) -> Result<(SelfCheck, Rc<RowPolicy>)> {
    let recorded = rows::record(|| {
        let mut cache = target.new_cache();
        let hidden = target.forward(&tokens(target, 0, 2), &mut cache)?;
        target.logits(&hidden).map(drop)
    })?;
    // Of another version of the checkpoint or of this program: as if nothing were known.
    let known = known.filter(|k| {
        let names = recorded.iter().map(|r| r.op.to_string());
        k.ops.iter().map(|v| v.op.clone()).eq(names)
    });
    let ways = match known {
        Some(known) => known.ops.iter().map(OpVerdict::way).collect(),
        None => find_ways(&recorded)?,
    };
    let mut policy = RowPolicy::native();
    let mut ops = Vec::new();
    for (one, way) in recorded.iter().zip(ways) {
        policy.set(one.op, way);
        ops.push(OpVerdict::new(one.op.to_string(), way));
    }
    drop(recorded);
    let policy = Rc::new(policy);
    let block = match known {
        Some(known) => known.block,
        None => {
            let _installed = rows::install(policy.clone());
            whole(target)?
        }
    };
    Ok((SelfCheck { ops, block }, policy))
}

/// Compares each operation with itself; those that share their kernels are run the way that is right for all of them.
///
/// # Errors
/// What MLX says.
pub fn find_ways(recorded: &[Recorded]) -> Result<Vec<Way>> {
    let mut classes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, one) in recorded.iter().enumerate() {
        classes.entry(one.op.class()).or_default().push(i);
    }
    let mut ways = vec![Way::Together(1); recorded.len()];
    for members in classes.values() {
        let members: Vec<(usize, &Recorded)> = members.iter().filter_map(|i| Some((*i, recorded.get(*i)?))).collect();
        let mut together = CHECKED_ROWS;
        for (_, one) in &members {
            together = together.min(most_together(one, together)?);
            mlx_rs::memory::clear_cache()?;
        }
        // In parts of four, weights are read twice a block at most; below that one gathered call is worth more.
        let mut way = Way::Together(together);
        if together < 4 && members.iter().all(|(_, one)| one.can_gather) {
            let mut agree = true;
            for (_, one) in &members {
                agree = agree && can_gather(one)?;
                mlx_rs::memory::clear_cache()?;
            }
            if agree {
                way = Way::Gathered;
            }
        }
        for (i, one) in members {
            if let Some(slot) = ways.get_mut(i) {
                let is_sure = way.is_native() || one.op.is_telling();
                *slot = if is_sure { way } else { Way::Together(1) };
            }
        }
    }
    Ok(ways)
}

/// Most rows, up to `limit`, that give what they give alone.
fn most_together(one: &Recorded, limit: i32) -> Result<i32> {
    let alone = singles(&one.probe)?;
    let is_same = |n: i32| same(&(one.probe)(0, n, false)?, &crate::nn::slice(&alone, 1, 0, n)?);
    if takes_rows_apart() && is_same(2)? && is_same(limit)? {
        return Ok(limit);
    }
    for n in 2..=limit {
        if !is_same(n)? {
            return Ok(n - 1);
        }
    }
    Ok(limit)
}

/// The CPU backend computes rows one after the other, whatever their number: there the border cases tell, and everything
/// is compared only where one of them differs.
fn takes_rows_apart() -> bool {
    crate::nn::ffi::device_name() == "cpu"
}

/// Whether the gathered kernel agrees with single rows.
fn can_gather(one: &Recorded) -> Result<bool> {
    let alone = singles(&one.probe)?;
    for n in [2, 3, CHECKED_ROWS] {
        // A device without such a kernel says so.
        let Ok(rows) = (one.probe)(0, n, true) else {
            return Ok(false);
        };
        if !same(&rows, &crate::nn::slice(&alone, 1, 0, n)?).unwrap_or(false) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn singles(probe: &Probe) -> Result<Array> {
    let rows = (0..CHECKED_ROWS)
        .map(|t| {
            let row = probe(t, t + 1, false)?;
            // One at a time, as in decoding.
            row.eval()?;
            Ok(row)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(ops::concatenate(&rows, 1)?)
}

/// Most rows of a block whose hidden states, scores and cache equal those of single steps.
fn whole<T: Target>(target: &T) -> Result<usize> {
    if takes_rows_apart() && most_exact(target, 4, CHECKED_ROWS, &[2, CHECKED_ROWS])? == CHECKED_ROWS as usize {
        return Ok(MAX_BLOCK_SIZE);
    }
    // Blocks past what is checked by operation are rare: their sizes in between go with the next larger one.
    let most = MAX_BLOCK_SIZE as i32;
    let sizes: Vec<i32> = (2..=CHECKED_ROWS).chain([12, most]).collect();
    most_exact(target, 24, most, &sizes)
}

/// The last of `sizes` before the first block that differs from as many of `rows` single steps, after `before` tokens; 1
/// where the first differs.
fn most_exact<T: Target>(target: &T, before: i32, rows: i32, sizes: &[i32]) -> Result<usize> {
    let mut cache = target.new_cache();
    // Enough to leave no state at its start.
    target.forward(&tokens(target, 100, before), &mut cache)?;
    mlx_rs::transforms::eval(cache.arrays())?;
    let start = cache.snapshot();
    let mut steps = Vec::new();
    for t in 0..rows {
        let hidden = target.forward(&tokens(target, t, 1), &mut cache)?;
        let row = seen(target, &hidden, &cache, 1)?;
        mlx_rs::transforms::eval(row.iter())?;
        steps.push(row);
    }
    let mut most = 1;
    for &n in sizes {
        cache.restore(&start);
        let hidden = target.forward(&tokens(target, 0, n), &mut cache)?;
        let block = seen(target, &hidden, &cache, n)?;
        let Some(last) = steps.get(n as usize - 1) else { break };
        let rows: Vec<&[Array]> = steps.iter().take(n as usize).map(Vec::as_slice).collect();
        if !same_as_steps(&block, &rows, last)? {
            break;
        }
        most = n as usize;
    }
    Ok(most)
}

/// Hidden states and scores `[1, n, ..]`, the last `n` keys and values of every layer, then every carried state. Copies:
/// the next step writes into the same slabs.
fn seen<T: Target>(target: &T, hidden: &Hidden, cache: &Cache, n: i32) -> Result<Vec<Array>> {
    let mut all = vec![hidden.array().clone(), target.logits(hidden)?];
    for layer in &cache.layers {
        if let Some((keys, values)) = layer.kv.held()? {
            for held in [keys, values] {
                let len = held.shape()[2];
                let rows = crate::nn::slice(&held, 2, len - n, len)?.swap_axes(1, 2)?; // [1, n, H, D]
                all.push(rows.contiguous()?);
            }
        }
    }
    all.extend(cache.layers.iter().flat_map(|l| l.state.iter().cloned()));
    Ok(all)
}

/// Arrays with a row a token are compared row by row, the others with those after the last step.
fn same_as_steps(block: &[Array], steps: &[&[Array]], last: &[Array]) -> Result<bool> {
    let n = steps.len() as i32;
    let states = last.len();
    let mut verdicts = Vec::new();
    for (i, a) in block.iter().enumerate() {
        let by_row = last.get(i).is_some_and(|l| l.shape() != a.shape() && l.shape()[1] == 1);
        let expected = if by_row {
            let rows: Option<Vec<&Array>> = steps.iter().map(|s| s.get(i)).collect();
            ops::concatenate(&rows.ok_or_else(|| Error::backend("a step without an array"))?, 1)?
        } else {
            last.get(i)
                .cloned()
                .ok_or_else(|| Error::backend("a step without an array"))?
        };
        if by_row && a.shape()[1] != n {
            return Ok(false);
        }
        verdicts.push(equal_bits(a, &expected)?);
    }
    if block.len() != states {
        return Ok(false);
    }
    let all: Vec<Array> = verdicts
        .iter()
        .map(|v| v.reshape(&[1, 1]))
        .collect::<std::result::Result<_, _>>()?;
    let read = read_ids(&ops::concatenate(&all, 1)?.as_dtype(Dtype::Uint32)?)?;
    Ok(read.iter().all(|v| *v == 1))
}

fn same(a: &Array, b: &Array) -> Result<bool> {
    if a.shape() != b.shape() {
        return Ok(false);
    }
    let equal = equal_bits(a, b)?.reshape(&[1])?.as_dtype(Dtype::Uint32)?;
    Ok(read_ids(&equal)? == [1])
}

/// Whether every bit is the same: a scalar.
fn equal_bits(a: &Array, b: &Array) -> Result<Array> {
    let bits = |a: &Array| -> Result<Array> {
        Ok(match a.dtype() {
            Dtype::Float32 => a.view_dtype(Dtype::Uint32)?,
            Dtype::Float16 | Dtype::Bfloat16 => a.view_dtype(Dtype::Uint16)?,
            _ => a.clone(),
        })
    };
    Ok(bits(a)?.eq(bits(b)?)?.all(false)?)
}

/// `n` ids spread over the vocabulary, the same for the same start: `[1, n]`.
fn tokens<T: Target>(target: &T, from: i32, n: i32) -> Array {
    let v = target.vocabulary() as u64;
    let ids: Vec<u32> = (from..from + n)
        .map(|i| ((i as u64 * 2_654_435_761 + 12_345) % v) as u32)
        .collect();
    Array::from_slice(&ids, &[1, n])
}
