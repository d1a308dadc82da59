//! The same requests with speculation off and on: whether the text is the same, and what it gains.

#[allow(clippy::module_inception)]
mod bench;
mod compare;
pub mod conditions;
mod prompts;
mod regression;
mod report;
mod run;
mod session;
pub mod stats;
mod verdict;

pub use bench::{BenchPlan, TellBench, bench};
pub use compare::{ComparePlan, Tell, compare};
pub use prompts::{BenchPrompt, prompts};
pub use regression::{comparable, name, regressions};
pub use report::{against, json, markdown, regression_line, verdict};
pub use run::{Runner, Subject};
pub use session::Benches;
pub use verdict::{Estimate, Now, PairHistory, judge};
