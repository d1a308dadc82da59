//! How many rows an operation may take at once.
//!
//! Plain decoding runs every operation with one row, verification with a block of them. Kernels are chosen by shape, so
//! a row's result may depend on its neighbours in the last bit, and one such bit can change a token. Operations whose
//! kernel depends on the number of rows go through [`in_rows`]: it asks the policy that the engine installed how many
//! rows equal single ones here, and runs longer blocks in parts. Which number that is was measured, on the device in
//! use, by comparing each operation of the checkpoint with itself (`generate::self_check`).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use mlx_rs::{Array, Dtype, ops};

use super::STEP_MODE_ROWS;
use crate::Result;
use crate::checkpoint::QuantizationSpec;

/// Most rows that are compared with single ones; longer blocks run in parts of at most this many.
pub const CHECKED_ROWS: i32 = 8;

/// What decides which kernel runs: the kind of an operation, its shapes and types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// `x @ W.T` with dense weights.
    Dense {
        /// Columns of `x`.
        inputs: i32,
        /// Columns of the result.
        outputs: i32,
        /// Type of the weights.
        weights: Dtype,
        /// Type of `x`.
        dtype: Dtype,
    },
    /// `x @ W.T` with packed weights.
    Packed {
        /// Columns of `x`.
        inputs: i32,
        /// Columns of the result.
        outputs: i32,
        /// How the weights are packed.
        spec: QuantizationSpec,
        /// Type of `x`.
        dtype: Dtype,
    },
    /// A mixture of experts.
    Experts {
        /// Experts there are.
        count: i32,
        /// Experts a row.
        chosen: i32,
        /// Columns of `x`.
        inputs: i32,
        /// Columns inside an expert.
        width: i32,
        /// How the weights are packed; `None` when dense.
        spec: Option<QuantizationSpec>,
        /// Type of `x`.
        dtype: Dtype,
    },
    /// Softmax attention.
    Attention {
        /// Query heads.
        heads: i32,
        /// Key heads.
        kv_heads: i32,
        /// Columns of a head.
        head_dim: i32,
        /// Keys a row can see, for attention with a window or with biases by distance.
        window: Option<i32>,
        /// Type of the queries.
        dtype: Dtype,
    },
    /// Rotation by position.
    Rotation {
        /// Heads.
        heads: i32,
        /// Columns of a head.
        head_dim: i32,
        /// Columns that are rotated.
        rotated: i32,
        /// Type of the heads.
        dtype: Dtype,
    },
    /// The gated delta rule.
    Recurrence {
        /// Value heads.
        heads: i32,
        /// Columns of a key.
        key_dim: i32,
        /// Columns of a value.
        value_dim: i32,
    },
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |dtype: Dtype| format!("{dtype:?}").to_lowercase();
        match self {
            Op::Dense {
                inputs,
                outputs,
                weights,
                dtype,
            } => write!(f, "{} product {inputs} to {outputs}, {}", name(*weights), name(*dtype)),
            Op::Packed {
                inputs,
                outputs,
                spec,
                dtype,
            } => write!(f, "{spec} product {inputs} to {outputs}, {}", name(*dtype)),
            Op::Experts {
                count,
                chosen,
                inputs,
                width,
                spec,
                dtype,
            } => {
                let packing = spec.map_or_else(|| "dense".to_owned(), |s| s.to_string());
                write!(
                    f,
                    "{packing} experts, {chosen} of {count}, {inputs} by {width}, {}",
                    name(*dtype)
                )
            }
            Op::Attention {
                heads,
                kv_heads,
                head_dim,
                window,
                dtype,
            } => {
                write!(
                    f,
                    "attention, {heads} heads on {kv_heads} of {head_dim}, {}",
                    name(*dtype)
                )?;
                window.map_or(Ok(()), |w| write!(f, ", bias table of {w}"))
            }
            Op::Rotation {
                heads,
                head_dim,
                rotated,
                dtype,
            } => write!(
                f,
                "rotation, {heads} heads of {head_dim}, {rotated} rotated, {}",
                name(*dtype)
            ),
            Op::Recurrence {
                heads,
                key_dim,
                value_dim,
            } => write!(f, "recurrence, {heads} heads of {key_dim} by {value_dim}"),
        }
    }
}

impl Op {
    /// Operations that share their kernels: what is found of one holds for all of them. A single one may look the same by
    /// chance, since results are rounded to few bits.
    #[must_use]
    pub fn class(&self) -> String {
        match self {
            Op::Dense { weights, dtype, .. } => format!("dense {weights:?} {dtype:?}"),
            Op::Packed { spec, dtype, .. } => format!("{spec} {dtype:?}"),
            Op::Rotation { dtype, .. } => format!("rotation {dtype:?}"),
            other => other.to_string(),
        }
    }
}

impl Op {
    /// Whether a check of it compares enough numbers to tell kernels apart. What does not is small, and cheap to run row
    /// by row where its kind turns out to depend on the number of rows.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        match self {
            Op::Dense { outputs, .. } | Op::Packed { outputs, .. } => super::Linear::is_telling(*outputs),
            _ => true,
        }
    }
}

/// How a block is run so that each row equals the row alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Up to this many rows at once.
    Together(i32),
    /// All rows in one call of a kernel that takes each by itself.
    Gathered,
}

impl Way {
    /// Whether a checked block runs as it is.
    #[must_use]
    pub fn is_native(self) -> bool {
        self == Way::Together(CHECKED_ROWS)
    }
}

/// The ways of a checkpoint's operations; an operation that is not in it runs as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowPolicy(HashMap<Op, Way>);

impl RowPolicy {
    /// Everything at once, whatever it does to the last bit.
    #[must_use]
    pub fn native() -> Self {
        Self::default()
    }

    /// Sets an operation's way.
    pub fn set(&mut self, op: Op, way: Way) {
        self.0.insert(op, way);
    }
}

/// Rows `from..to` of an operation on made-up numbers, with the rows on axis 1 of the result; gathered or not.
///
/// Their last axis may be long: probes that were made from several keys lie side by side on it.
pub type Probe = Box<dyn Fn(i32, i32, bool) -> Result<Array>>;

/// An operation that a forward pass used.
pub struct Recorded {
    /// Which.
    pub op: Op,
    /// Runs it.
    pub probe: Probe,
    /// Whether there is a gathered way.
    pub can_gather: bool,
}

#[derive(Default)]
struct State {
    policy: Rc<RowPolicy>,
    recorded: Option<BTreeMap<String, Recorded>>,
}

thread_local!(static STATE: RefCell<State> = RefCell::default());

/// Makes a policy this thread's until the guard is dropped.
#[must_use]
pub fn install(policy: Rc<RowPolicy>) -> Installed {
    Installed(STATE.with(|s| std::mem::replace(&mut s.borrow_mut().policy, policy)))
}

/// Puts the policy before it back when dropped.
pub struct Installed(Rc<RowPolicy>);

impl Drop for Installed {
    fn drop(&mut self) {
        STATE.with(|s| s.borrow_mut().policy = self.0.clone());
    }
}

/// Whether the policy of this thread says how blocks of this operation are run, so that rows have to equal single ones.
/// Prefill, and what nobody checked, run as they are.
pub(crate) fn is_exact(op: &Op, rows: i32) -> bool {
    rows <= STEP_MODE_ROWS && STATE.with(|s| s.borrow().policy.0.contains_key(op))
}

/// Runs `pass` and returns the operations in it that depend on the number of rows, each kind once, by name.
///
/// # Errors
/// What `pass` says.
pub fn record(pass: impl FnOnce() -> Result<()>) -> Result<Vec<Recorded>> {
    STATE.with(|s| s.borrow_mut().recorded = Some(BTreeMap::new()));
    let outcome = pass();
    let recorded = STATE.with(|s| s.borrow_mut().recorded.take()).unwrap_or_default();
    outcome.map(|()| recorded.into_values().collect())
}

/// Runs an operation of `rows` rows in the way the policy has for it. `run(from, to, gathered)` gives those rows on axis
/// 1; `probe` makes a [`Probe`] of the same operation, and `can_gather` says whether it has a gathered way.
///
/// Blocks past [`STEP_MODE_ROWS`] are prefill, which runs as it is: it is the same with and without speculation.
pub(crate) fn in_rows(
    op: Op,
    rows: i32,
    can_gather: bool,
    run: &dyn Fn(i32, i32, bool) -> Result<Array>,
    probe: impl FnOnce() -> Result<Probe>,
) -> Result<Array> {
    if rows == 1 || rows > STEP_MODE_ROWS {
        return run(0, rows, false);
    }
    let is_new = STATE.with(|s| {
        let state = s.borrow();
        state
            .recorded
            .as_ref()
            .is_some_and(|r| !r.contains_key(&op.to_string()))
    });
    if is_new {
        let recorded = Recorded {
            op,
            probe: probe()?,
            can_gather,
        };
        STATE.with(|s| {
            if let Some(all) = &mut s.borrow_mut().recorded {
                all.insert(op.to_string(), recorded);
            }
        });
    }
    match STATE.with(|s| s.borrow().policy.0.get(&op).copied()) {
        Some(Way::Gathered) => run(0, rows, true),
        Some(Way::Together(most)) if rows > most => in_parts(1, rows, most, |from, to| run(from, to, false)),
        _ => run(0, rows, false),
    }
}

/// `part(from, to)` of at most `most` rows at a time, side by side along `axis`.
pub(super) fn in_parts(axis: i32, rows: i32, most: i32, part: impl Fn(i32, i32) -> Result<Array>) -> Result<Array> {
    let most = most.max(1);
    let parts = (0..rows)
        .step_by(most as usize)
        .map(|from| part(from, (from + most).min(rows)))
        .collect::<Result<Vec<_>>>()?;
    Ok(ops::concatenate(&parts, axis)?)
}

/// Made-up numbers of about unit size, the same for the same key: `shape` in `dtype`.
pub(crate) fn noise(shape: &[i32], dtype: Dtype, key: u64) -> Result<Array> {
    let key = mlx_rs::random::key(key)?;
    Ok(mlx_rs::random::normal::<f32>(shape, None, None, &key)?.as_dtype(dtype)?)
}
