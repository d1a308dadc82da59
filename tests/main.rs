//! Every test of the engine and the app in one binary: one link, one run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs
)]
// A test is one task: a lock held across an await stops nobody.
#![allow(clippy::await_holding_lock, clippy::cloned_ref_to_slice_refs)]

mod alarms;
mod architecture;
mod bench;
mod bindings;
mod cases;
mod chats;
mod cli;
mod conversation;
mod depth;
mod engine;
mod exactness;
mod faults;
mod fp8;
mod heads;
mod hub;
// Here and not in `hub`: it needs the engine, which the other tests of the hub do without.
#[path = "hub/heads.rs"]
mod hub_heads;
mod inkling;
mod inkling_checkpoints;
mod inventory;
mod library;
mod origin;
mod packed_cache;
mod parity;
mod refusals;
mod rejection;
mod requantized;
mod speculation;
mod store;
mod thinking;
mod trained;
mod transfer;
mod turn;
