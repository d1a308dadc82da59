//! The only door the app uses: plain data in, plain data out.
//!
//! One thread owns every array. Calls send it a command and block until it has answered.

mod alarm;
mod event;
mod figures;
mod loading;
mod margin;
mod measured;
mod origin;
mod reply;
mod request;
mod speculating;
mod thinking;
mod turn;
mod wiring;
mod worker;

pub use crate::cache::KvFormat;
pub use crate::generate::{ControllerState, Costs, OpVerdict, SelfCheck};
pub use event::{
    DrafterState, FinishReason, Generated, GenerationEvent, GenerationStats, Loaded, Piece, RoundStats, Sink,
    SpeculationStats, ThinkingEnd, Thought,
};
pub use margin::{Margin, Scored};
pub use measured::{Calibration, Measured, Prior};
pub use request::{
    Acceptance, ActivationDtype, DraftKind, Exactness, GenerateRequest, LoadRequest, MAX_BLOCK_SIZE, Message, Prompt,
    Role, SamplingParams, Speculation,
};

pub use speculating::{SpeculationState, exactness_sentence};
pub use wiring::WiringTally;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use crate::{Error, Result};
use worker::{Command, Worker};

/// A handle to the engine thread. Cheap to clone; dropping the last one ends the thread and waits for it.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    worker: Mutex<Worker>,
    generating: AtomicBool,
}

impl Drop for Shared {
    /// Waits for the thread: MLX must be idle before the process takes it down.
    fn drop(&mut self) {
        let worker = self.worker.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (closed, _) = mpsc::channel();
        drop(std::mem::replace(&mut worker.commands, closed));
        // The last handle may be dropped with a sink, on the thread itself, which then ends by itself.
        if let Some(thread) = worker
            .thread
            .take()
            .filter(|t| t.thread().id() != std::thread::current().id())
        {
            // A panic in it was answered as an error already.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts the engine thread. Nothing is loaded.
    #[must_use]
    pub fn start() -> Self {
        Self {
            shared: Arc::new(Shared {
                worker: Mutex::new(worker::spawn()),
                generating: AtomicBool::new(false),
            }),
        }
    }

    /// Loads a pair in place of what was loaded. Blocks until it is ready.
    ///
    /// # Errors
    /// Whatever is wrong with the checkpoints; nothing is loaded then.
    pub fn load(&self, request: LoadRequest) -> Result<Loaded> {
        self.ask(|reply| Command::Load(request, reply))
    }

    /// Forgets what is loaded and gives its memory back.
    ///
    /// # Errors
    /// [`Error::EngineLost`].
    pub fn unload(&self) -> Result<()> {
        self.ask(Command::Unload)
    }

    /// Generates; blocks until it has ended. Events go to `sink` on the engine thread.
    ///
    /// # Errors
    /// [`Error::Busy`] while another generation runs, and whatever went wrong with this one. The loaded pair stays
    /// usable, except after [`Error::EngineLost`], when it has been loaded anew.
    pub fn generate(&self, request: GenerateRequest, sink: Box<dyn Sink>) -> Result<Generated> {
        if self.shared.generating.swap(true, Ordering::AcqRel) {
            return Err(Error::Busy);
        }
        let outcome = self.ask(|reply| Command::Generate(Box::new(request), sink, reply));
        self.shared.generating.store(false, Ordering::Release);
        outcome
    }

    /// The target's two best tokens after the request's prompt and `before`, run plainly. It waits for the device once.
    ///
    /// # Errors
    /// [`Error::NotLoaded`], a prompt or ids that cannot be run, and what MLX says.
    pub fn margin(&self, request: GenerateRequest, before: Vec<u32>) -> Result<Margin> {
        self.ask(|reply| Command::Margin(Box::new(request), before, reply))
    }

    /// Checks the loaded target anew, as if nothing were known of it. How blocks are run stays as it was at load.
    ///
    /// # Errors
    /// [`Error::NotLoaded`], and what MLX says.
    pub fn self_check(&self) -> Result<SelfCheck> {
        self.ask(Command::SelfCheck)
    }

    /// How many tokens a text has.
    ///
    /// # Errors
    /// [`Error::NotLoaded`], and a checkpoint without a tokenizer.
    pub fn count(&self, text: String) -> Result<usize> {
        self.ask(|reply| Command::Count(text, reply))
    }

    /// Ids as text; without a tokenizer the ids themselves.
    ///
    /// # Errors
    /// [`Error::NotLoaded`].
    pub fn spell(&self, ids: Vec<u32>) -> Result<String> {
        self.ask(|reply| Command::Spell(ids, reply))
    }

    fn ask<T>(&self, command: impl FnOnce(mpsc::SyncSender<Result<T>>) -> Command) -> Result<T> {
        let (reply, answer) = mpsc::sync_channel(1);
        let mut command = command(reply);
        let mut worker = self.shared.worker.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread only ever ends by a bug that its own guard did not catch: a new one takes over.
        if let Err(mpsc::SendError(unsent)) = worker.commands.send(command) {
            command = unsent;
            *worker = worker::spawn();
            worker.commands.send(command).map_err(|_| lost())?;
        }
        drop(worker);
        answer.recv().map_err(|_| lost())?
    }
}

fn lost() -> Error {
    Error::EngineLost {
        message: "its thread ended without an answer".to_owned(),
    }
}
