//! The engine thread: one loop over commands, and what is loaded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::loading::{self, Model};
use super::{GenerateRequest, Generated, LoadRequest, Loaded, Margin, SelfCheck, Sink, margin, turn};
use crate::nn::ffi;
use crate::{Error, Result};

/// What the thread is asked to do, and where the answer goes.
pub(super) enum Command {
    Load(LoadRequest, mpsc::SyncSender<Result<Loaded>>),
    Unload(mpsc::SyncSender<Result<()>>),
    Generate(Box<GenerateRequest>, Box<dyn Sink>, mpsc::SyncSender<Result<Generated>>),
    Margin(Box<GenerateRequest>, Vec<u32>, mpsc::SyncSender<Result<Margin>>),
    SelfCheck(mpsc::SyncSender<Result<SelfCheck>>),
    Count(String, mpsc::SyncSender<Result<usize>>),
    Spell(Vec<u32>, mpsc::SyncSender<Result<String>>),
}

/// The thread's inbox and its handle.
pub(super) struct Worker {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// Starts the thread; it ends when the inbox is dropped.
pub(super) fn spawn() -> Worker {
    let (sender, commands) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("engine".to_owned())
        .stack_size(16 << 20);
    // Without a thread the receiver is gone and every call answers `EngineLost`.
    let thread = thread.spawn(move || run(&commands)).ok();
    Worker {
        commands: sender,
        thread,
    }
}

fn run(commands: &mpsc::Receiver<Command>) {
    ffi::init();
    let mut model: Option<Model> = None;
    while let Some(command) = next(commands, &model) {
        // A reply nobody waits for any more is no fault.
        match command {
            Command::Load(request, reply) => {
                unload(&mut model);
                let outcome = guard(|| loading::load(&request)).flatten().map(|loaded| {
                    let described = loaded.loaded.clone();
                    model = Some(loaded);
                    described
                });
                let _ = reply.send(outcome);
            }
            Command::Unload(reply) => {
                unload(&mut model);
                let _ = reply.send(Ok(()));
            }
            Command::Margin(request, before, reply) => {
                let outcome = match &model {
                    None => Err(Error::NotLoaded),
                    Some(model) => guard(|| margin::margin(model, &request, &before)).flatten(),
                };
                recover(&mut model, &outcome);
                let _ = reply.send(outcome);
            }
            Command::SelfCheck(reply) => {
                let outcome = match &model {
                    None => Err(Error::NotLoaded),
                    Some(model) => guard(|| model.pair.self_check(None)).flatten().map(|(check, _)| check),
                };
                recover(&mut model, &outcome);
                let _ = reply.send(outcome);
            }
            Command::Count(text, reply) => {
                let outcome = match &model {
                    None => Err(Error::NotLoaded),
                    Some(model) => guard(|| turn::count(&model.text, &text)).flatten(),
                };
                let _ = reply.send(outcome);
            }
            Command::Spell(ids, reply) => {
                let text = model.as_ref().map(|model| margin::spell(model, &ids));
                let _ = reply.send(text.ok_or(Error::NotLoaded));
            }
            Command::Generate(request, mut sink, reply) => {
                let outcome = match &model {
                    None => Err(Error::NotLoaded),
                    Some(model) => guard(|| turn::generate(model, &request, sink.as_mut())).flatten(),
                };
                recover(&mut model, &outcome);
                // Work that was queued ahead ends with its generation: the process may exit right after the answer.
                ffi::synchronize();
                drop(sink);
                let _ = reply.send(outcome);
            }
        }
    }
    unload(&mut model);
    ffi::synchronize();
}

/// The next command; `None` when nobody can send one any more. Until one comes, what the last conversation is going to
/// start its next turn with is read ahead, a chunk at a time.
fn next(commands: &mpsc::Receiver<Command>, model: &Option<Model>) -> Option<Command> {
    loop {
        match commands.try_recv() {
            Ok(command) => return Some(command),
            Err(mpsc::TryRecvError::Disconnected) => return None,
            Err(mpsc::TryRecvError::Empty) => {}
        }
        // A failure shows when the prompt is read in earnest; ahead of that it only ends the reading.
        let more = model
            .as_ref()
            .is_some_and(|model| guard(|| turn::read_ahead(model)).unwrap_or(false));
        if !more {
            return commands.recv().ok();
        }
    }
}

/// Whatever a panic left half done goes with the old pair.
fn recover<T>(model: &mut Option<Model>, outcome: &Result<T>) {
    if matches!(outcome, Err(Error::EngineLost { .. })) {
        let again = model.take().map(|m| m.request);
        unload(model);
        *model = again.and_then(|request| guard(|| loading::load(&request)).flatten().ok());
    }
}

fn unload(model: &mut Option<Model>) {
    *model = None;
    // Keeping freed buffers is no fault of the command.
    let _ = mlx_rs::memory::clear_cache();
}

/// Runs one command's work; a panic becomes an error.
fn guard<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "it gave no reason".to_owned());
        Error::EngineLost { message }
    })
}
