//! Models and the state of the loaded one, as the window sees them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{AppError, KvChoice};

/// A model that can be loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct LocalModel {
    /// `builtin` or the target's folder.
    pub id: String,
    /// Display name.
    pub name: String,
    /// The target's folder.
    pub path: String,
    /// The drafter's folder, if it is one of its own.
    pub drafter_path: Option<String>,
    /// One plain sentence about it, e.g. that it is a small demonstration model.
    pub note: Option<String>,
    /// Bytes on disk, both parts.
    pub bytes: f64,
}

/// What is loaded now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "state")]
// There is one of them.
#[allow(clippy::large_enum_variant)]
pub enum ModelStatus {
    /// Nothing.
    None,
    /// Reading weights.
    Loading {
        /// What.
        model: LocalModel,
    },
    /// Ready to chat.
    #[serde(rename_all = "camelCase")]
    Ready {
        /// What.
        model: LocalModel,
        /// Family name.
        family: String,
        /// Whether it can speculate.
        can_speculate: bool,
        /// Whether there is a head, and whether it fits.
        speculating: Speculating,
        /// Where the head was found, or why there is none that can be used.
        speculation_note: String,
        /// What exact mode rests on here, in one plain sentence.
        exactness_note: String,
        /// Operations that exact mode runs row by row here.
        in_parts: Vec<String>,
        /// Tokens of the largest block that is exact here.
        exact_block: u32,
        /// Drafts a round that automatic depth begins with; 0 is parked.
        auto_depth: u32,
        /// What target passes cost here, by rows; empty where it was not measured.
        costs: Vec<RowCost>,
        /// One draft step, in milliseconds, where it was measured.
        draft_ms: Option<f64>,
        /// The drafter's default block size; 1 without one.
        default_block_size: u32,
        /// Whether it has thinking that can be ended.
        can_think: bool,
        /// Tokens the context holds.
        context: u32,
        /// `cpu`, `metal` or `cuda`.
        device: String,
        /// Activation type.
        dtype: String,
        /// Milliseconds.
        load_ms: f64,
        /// Bytes held.
        memory_bytes: f64,
        /// How keys and values are held.
        kv: KvChoice,
        /// Oddities of the checkpoint.
        warnings: Vec<String>,
        /// The checkpoint's sampling defaults.
        defaults: SamplingDefaults,
    },
    /// Could not be loaded.
    Failed {
        /// What.
        model: LocalModel,
        /// Why.
        error: AppError,
    },
}

/// Whether a loaded model can speculate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Speculating {
    /// It can.
    Ready,
    /// There is no head.
    Unavailable,
    /// The head that was asked for belongs to another model.
    Mismatch,
}

/// What a target pass costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct RowCost {
    /// Tokens it runs.
    pub rows: u32,
    /// Milliseconds.
    pub ms: f64,
    /// In passes of one token.
    pub ratio: f64,
}

/// A checkpoint's sampling defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SamplingDefaults {
    /// 0 is greedy.
    pub temperature: f64,
    /// Off at 1.
    pub top_p: f64,
    /// Off at 0.
    pub top_k: u32,
    /// Off at 0.
    pub min_p: f64,
}
