//! What a load finds out about the machine, to be kept for the next one.

use serde::{Deserialize, Serialize};

use crate::generate::{Costs, SelfCheck};

/// What was measured before on this machine, each thing under the key it depends on. What has no entry is measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Self-checks by [`super::Loaded::check_key`].
    pub self_checks: Vec<(String, SelfCheck)>,
    /// Costs by [`super::Loaded::costs_key`].
    pub costs: Vec<(String, Costs)>,
}

impl Measured {
    pub(super) fn self_check(&self, key: &str) -> Option<&SelfCheck> {
        find(&self.self_checks, key)
    }

    pub(super) fn costs(&self, key: &str) -> Option<&Costs> {
        find(&self.costs, key)
    }
}

fn find<'m, T>(list: &'m [(String, T)], key: &str) -> Option<&'m T> {
    list.iter().find(|(k, _)| k == key).map(|(_, found)| found)
}

/// What earlier runs of a pair on this machine say of speculation: automatic depth begins there, and what it measures
/// itself soon outweighs it. It changes time only.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prior {
    /// Drafts a round that were fastest, 0 where plain decoding was; `None` where no winner could be called.
    pub depth: Option<usize>,
    /// How often the draft at each position was right, given that those before it were; empty where it is not known.
    pub acceptance: Vec<f64>,
}

/// Whether costs are measured at load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Calibration {
    /// No: automatic depth starts at the head's own and learns from its rounds.
    #[default]
    Off,
    /// Yes, unless they are known; they hold for these conditions of the machine, e.g. its power mode.
    On {
        /// In words, part of the key.
        conditions: String,
    },
}
