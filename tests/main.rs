//! Every test of the engine and the app in one binary: one link, one run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs
)]

mod architecture;
mod bindings;
mod cases_sampling;
mod cases_text;
mod cli;
mod parity;
mod speculation;
mod store;
mod trained;
mod turn;
