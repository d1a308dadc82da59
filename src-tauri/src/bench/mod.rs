//! The same requests with speculation off and on: whether the text is the same, and what it gains.

#[allow(clippy::module_inception)]
mod bench;
mod compare;
pub mod conditions;
#[cfg(test)]
mod fake;
mod figures;
mod place;
mod prompts;
mod regression;
mod report;
mod run;
mod session;
pub mod stats;
mod summary;
mod verdict;
mod words;

pub use bench::{BenchPlan, TellBench, bench};
pub use compare::{ComparePlan, Reply, Tell, compare};
pub use place::{place, shared};
pub use prompts::{BenchPrompt, prompts};
pub use regression::{comparable, name, regressions};
pub use report::{json, markdown, regression_line, texts};
pub use run::{Runner, Subject};
pub use session::Benches;
pub use verdict::{Estimate, Now, PairHistory, judge};
pub use words::{against, cut, verdict};
