//! The registry: one module and one row a family.

pub mod inkling;
pub mod qwen3_5;

use crate::registry::Entry;

/// Every family this engine runs.
pub static FAMILIES: &[Entry] = &[Entry::of::<qwen3_5::Family>(), Entry::of::<inkling::Family>()];
