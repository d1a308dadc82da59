//! Loads a target and its MTP drafter and generates tokens. No network, no async, no UI.
//!
//! ```no_run
//! use models::{Engine, GenerateRequest, GenerationEvent, LoadRequest, Prompt};
//! use std::ops::ControlFlow;
//!
//! let engine = Engine::start();
//! engine.load(LoadRequest { target: "assets/builtin/target".into(), ..LoadRequest::default() })?;
//! let request = GenerateRequest::new(Prompt::Raw("Once upon a time".to_owned()));
//! let done = engine.generate(request, Box::new(|event: GenerationEvent| {
//!     if let GenerationEvent::Round { answer, .. } = event {
//!         eprint!("{answer}");
//!     }
//!     ControlFlow::Continue(())
//! }))?;
//! eprintln!("{:?}", done.finish);
//! # Ok::<(), models::Error>(())
//! ```
//!
//! The modules below the engine are public for the parity and invariance tests, which look at logits and caches. The
//! app uses the names re-exported here and nothing else; a test keeps it so.

#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod checkpoint;
mod engine;
mod error;
#[doc(hidden)]
pub mod families;
#[doc(hidden)]
pub mod family;
#[doc(hidden)]
pub mod generate;
#[doc(hidden)]
pub mod nn;
#[doc(hidden)]
pub mod registry;
#[doc(hidden)]
pub mod sampler;
#[doc(hidden)]
pub mod text;

pub use checkpoint::{Extracted, Inspection, MtpInspection, MtpLocation, Problem, extract_head, inspect};
pub use engine::{
    Acceptance, ActivationDtype, Calibration, ControllerState, Costs, DraftKind, DrafterState, Engine, Exactness,
    FinishReason, GenerateRequest, Generated, GenerationEvent, GenerationStats, KvFormat, LoadRequest, Loaded,
    MAX_BLOCK_SIZE, Margin, Measured, Message, OpVerdict, Piece, Prior, Prompt, Role, RoundStats, SamplingParams,
    Scored, SelfCheck, Sink, Speculation, SpeculationState, SpeculationStats, ThinkingEnd, Thought, WiringTally,
    exactness_sentence,
};
pub use error::{Error, Result};

/// MLX's version.
#[must_use]
pub fn mlx_version() -> String {
    nn::ffi::version()
}

/// Where the arithmetic runs: `cpu`, `metal` or `cuda`.
#[must_use]
pub fn device() -> &'static str {
    nn::ffi::device_name()
}

/// Sets what MLX reads from the environment, unless it is set already. The first thing a program does: it must not have
/// a second thread yet.
pub fn prepare_process() {
    nn::ffi::prepare_process();
}
