//! One chat turn: the store remembers it, the engine runs it, a listener watches it.

mod continued;
mod origin;
mod relay;
mod request;
mod sink;
mod slot;
mod title;
mod tokens;

use std::sync::Arc;

use models::{DrafterState, Engine, Error as EngineError, FinishReason, Generated, SpeculationState};
use tokio::sync::mpsc;

use crate::bench::{Estimate, Runner, conditions};
use crate::error::Error;
use crate::ipc::{AppError, ChatConfig, ChatSummary, LocalModel, Message, MessageStatus, Run, TurnEvent, TurnOptions};
use crate::library::{Library, Ready};
use crate::store::{Begun, Ending, Made, Store};

pub use request::{build as request_of, check_options, count, fresh_seed, run_of, sampling, speculation};
pub use slot::{Stop, Taken};
pub use title::{title_of, title_of_exchange};

use relay::Relay;
use sink::Wishes;
use slot::Slot;

/// Takes a turn's events; answers whether anyone still listens. The turn runs to its end either way.
pub type Listener = Box<dyn FnMut(TurnEvent) -> bool + Send>;

/// Events that the engine may be ahead of the store and the window.
const EVENTS_AHEAD: usize = 64;

/// Runs turns, one at a time; clones share it.
#[derive(Clone)]
pub struct Turns {
    engine: Engine,
    runner: Arc<dyn Runner + Send + Sync>,
    store: Store,
    library: Library,
    slot: Slot,
}

impl Turns {
    /// No turn is running.
    #[must_use]
    pub fn new(engine: Engine, store: Store, library: Library) -> Self {
        Turns {
            runner: Arc::new(engine.clone()),
            engine,
            store,
            library,
            slot: Slot::default(),
        }
    }

    /// The same, with replies by what `make` wraps around the engine.
    #[must_use]
    pub fn with_runner(self, make: impl FnOnce(Engine) -> Arc<dyn Runner + Send + Sync>) -> Self {
        let runner = make(self.engine.clone());
        Turns { runner, ..self }
    }

    /// Answers `text` in a chat, or in a new one. The last event is `done` with the message that
    /// is returned too, or `failed` with the error.
    pub async fn send(
        &self,
        chat_id: Option<i32>,
        text: &str,
        options: &TurnOptions,
        listener: Listener,
    ) -> Result<Message, AppError> {
        self.send_with(chat_id, text, None, options, listener).await
    }

    /// The same, with what is to hold for a chat that is new.
    pub async fn send_with(
        &self,
        chat_id: Option<i32>,
        text: &str,
        config: Option<&ChatConfig>,
        options: &TurnOptions,
        listener: Listener,
    ) -> Result<Message, AppError> {
        let begin = async {
            if text.trim().is_empty() {
                return Err(Error::EmptyMessage);
            }
            let title = title_of(text);
            Ok(self.store.begin_turn_with(chat_id, &title, text, config).await?)
        };
        self.turn(begin, options, listener).await
    }

    /// Answers another version of one of the person's messages, on a branch of its own.
    pub async fn edit(
        &self,
        message_id: i32,
        text: &str,
        options: &TurnOptions,
        listener: Listener,
    ) -> Result<Message, AppError> {
        let begin = async {
            if text.trim().is_empty() {
                return Err(Error::EmptyMessage);
            }
            Ok(self.store.begin_edited(message_id, text).await?)
        };
        self.turn(begin, options, listener).await
    }

    /// Goes on with a reply that broke off. Sampling is as it was: the text becomes what it would have become.
    pub async fn go_on(&self, message_id: i32, options: &TurnOptions, listener: Listener) -> Result<Message, AppError> {
        let begin = async { Ok(self.store.begin_continued(message_id).await?) };
        self.turn(begin, options, listener).await
    }

    /// Answers a message that has no reply: its reply was deleted, or the chat came so from elsewhere.
    pub async fn answer(
        &self,
        message_id: i32,
        options: &TurnOptions,
        listener: Listener,
    ) -> Result<Message, AppError> {
        let begin = async { Ok(self.store.begin_answer(message_id).await?) };
        self.turn(begin, options, listener).await
    }

    /// Answers once more, on a branch of its own.
    pub async fn regenerate(
        &self,
        message_id: i32,
        options: &TurnOptions,
        listener: Listener,
    ) -> Result<Message, AppError> {
        let again = self.again(message_id, options).await;
        let begin = async { Ok(self.store.begin_again(message_id).await?) };
        self.turn(begin, &again, listener).await
    }

    /// What a reply is written again with. With its seed it becomes what it was, also where the person ended its thinking.
    async fn again(&self, message_id: i32, options: &TurnOptions) -> TurnOptions {
        // Whoever cannot be asked for it fails when it is written.
        let made = self.store.made_of(message_id).await.ok().flatten();
        let same = made.filter(|made| options.seed.is_some() && made.options.seed == options.seed);
        let ended = same.filter(|made| made.was_ended_by_the_person());
        TurnOptions {
            thinking_budget: ended.map_or(options.thinking_budget, |made| made.options.thinking_budget),
            ..options.clone()
        }
    }

    /// Has the model of the running turn stop thinking within a round, if it thinks, and answer.
    pub fn answer_now(&self) {
        self.slot.want_answer();
    }

    /// Ends the running turn within a round or a prefill chunk; what there is of the reply is kept.
    pub fn stop(&self) {
        self.slot.stop(None);
    }

    /// Takes the only place on the engine for something else than a reply, until the answer is dropped.
    pub fn reserve(&self) -> Result<Taken, Error> {
        self.slot.take()
    }

    /// Whether a turn is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.slot.is_taken()
    }

    /// Ends the running turn, if it is in this chat, and waits until it is stored.
    pub async fn stop_chat(&self, chat_id: i32) {
        if self.slot.stop(Some(chat_id)) {
            self.slot.free().await;
        }
    }

    /// Ends the running turn and waits until it is stored.
    pub async fn stop_and_wait(&self) {
        self.slot.stop(None);
        self.slot.free().await;
    }

    async fn turn(
        &self,
        begin: impl Future<Output = Result<Begun, Error>>,
        options: &TurnOptions,
        mut listener: Listener,
    ) -> Result<Message, AppError> {
        let started = async {
            check_options(options)?;
            let taken = self.slot.take()?;
            Ok::<_, Error>((begin.await?, taken))
        };
        let (begun, taken) = match started.await {
            Ok(started) => started,
            Err(error) => {
                let error = AppError::from(error);
                listener(TurnEvent::Failed {
                    error: error.clone(),
                    message: None,
                });
                return Err(error);
            }
        };
        taken.in_chat(begun.chat.id);
        listener(TurnEvent::Started {
            chat: begun.chat.clone(),
            user: begun.user.clone(),
            assistant: begun.assistant.clone(),
        });
        let mut relay = Relay::new(self.store.clone(), &begun, listener);
        let ending = self.reply(&begun, options, taken.stop(), &mut relay).await;
        let stored = self.store.finish_turn(begun.assistant.id, &ending).await;
        // Whoever reacts to the last event may send the next message at once.
        drop(taken);
        let (error, message) = match (stored, ending.error) {
            (Ok((message, chat)), None) => {
                let chat = self.titled(&begun, &message, chat).await;
                relay.tell(TurnEvent::Done {
                    message: message.clone(),
                    chat,
                });
                return Ok(message);
            }
            (Ok((message, _)), Some(error)) => (error, Some(message)),
            (Err(_), Some(error)) => (error, None),
            (Err(error), None) => (error.into(), None),
        };
        relay.tell(TurnEvent::Failed {
            error: error.clone(),
            message,
        });
        Err(error)
    }

    /// The chat with a title made of its first exchange, if it has the one made of its first message.
    async fn titled(&self, begun: &Begun, reply: &Message, chat: ChatSummary) -> ChatSummary {
        let asked = &begun.user.content;
        if begun.history.len() > 1 || chat.title != title_of(asked) {
            return chat;
        }
        let title = title_of_exchange(asked, &reply.content);
        if title == chat.title {
            return chat;
        }
        // A title is worth less than the reply.
        let retitled = self.store.retitle_chat(chat.id, &chat.title, &title).await;
        retitled.unwrap_or(chat)
    }

    /// Generates the reply; whatever happens, what there is of it comes back.
    async fn reply(&self, begun: &Begun, options: &TurnOptions, stop: Arc<Stop>, relay: &mut Relay) -> Ending {
        let ready = tokio::select! {
            ready = self.library.ready() => ready,
            () = stop.requested() => return relay.ending(MessageStatus::Stopped, None),
        };
        match ready {
            Ok(ready) => self.generate(&ready, begun, options, stop, relay).await,
            Err(error) => relay.ending(MessageStatus::Failed, Some(error)),
        }
    }

    async fn generate(
        &self,
        ready: &Arc<Ready>,
        begun: &Begun,
        options: &TurnOptions,
        stop: Arc<Stop>,
        relay: &mut Relay,
    ) -> Ending {
        let options = &continued::options(begun.continued.as_ref(), options);
        let mut request = request::build(&begun.history, &begun.system_prompt, options, &ready.loaded.defaults);
        if let Err(error) = continued::prepare(begun, &ready.model.id, ready.kv, &mut request) {
            return relay.ending(MessageStatus::Failed, Some(error.into()));
        }
        relay.describe(
            ready.model.name.clone(),
            ready.loaded.self_check.clone(),
            request.sampling.seed,
        );
        let made = Made {
            model: ready.model.id.clone(),
            options: TurnOptions {
                seed: Some(request.sampling.seed as f64),
                ..options.clone()
            },
            system_prompt: Some(begun.system_prompt.clone()),
            thought: begun.continued.as_ref().and_then(|c| c.made.thought.clone()),
            kv: ready.kv,
        };
        // Without it the reply can only be written again if it breaks off.
        let _ = self.store.describe_turn(begun.assistant.id, &made).await;
        let (events, mut incoming) = mpsc::channel(EVENTS_AHEAD);
        let sink = Wishes { events, stop };
        let runner = self.runner.clone();
        let generation = tokio::task::spawn_blocking(move || runner.generate(request, Box::new(sink)));
        relay.run(&mut incoming).await;
        let ending = match generation.await {
            Ok(Ok(generated)) => {
                let status = status_of(&generated);
                self.keep_estimate(ready, &generated).await;
                relay.complete(generated);
                let ending = relay.ending(status, None);
                // Block sizes do not compare.
                let is_default = |run: &&Run| match &ready.loaded.drafter {
                    DrafterState::Ready { block_size, .. } => {
                        run.state == "fixed" && run.block_size == count(*block_size)
                    }
                    DrafterState::Unavailable { .. } => false,
                };
                if let Some(run) = ending
                    .run
                    .as_ref()
                    .filter(is_default)
                    .filter(|_| begun.continued.is_none())
                {
                    let LocalModel { path, drafter_path, .. } = &ready.model;
                    // The reply counts more than what it taught about the drafter.
                    let _ = self.store.add_wiring(path, drafter_path.as_deref(), run).await;
                }
                ending
            }
            Ok(Err(error)) => {
                if matches!(error, EngineError::EngineLost { .. } | EngineError::NotLoaded) {
                    self.library.reload();
                }
                relay.flush();
                relay.ending(MessageStatus::Failed, Some(error.into()))
            }
            Err(error) => {
                relay.flush();
                relay.ending(MessageStatus::Failed, Some(error.into()))
            }
        };
        if let Some(thought) = relay.thought() {
            // Without it the reply does not say how long it thought.
            let _ = self.store.describe_turn(begun.assistant.id, &made.after(thought)).await;
        }
        ending
    }
}

impl Turns {
    /// Keeps what automatic depth worked out in a reply; without it the next one works it out again.
    async fn keep_estimate(&self, ready: &Arc<Ready>, generated: &Generated) {
        // A head that took another one's place is no part of the pair.
        if ready.mismatch.is_some() || !matches!(generated.stats.speculation.state, SpeculationState::Auto(_)) {
            return;
        }
        let dtype = Some(ready.loaded.dtype.to_owned());
        let Ok(under) = tokio::task::spawn_blocking(|| conditions::circumstances(dtype)).await else {
            return;
        };
        let Some(estimate) = Estimate::of(&generated.stats, conditions::now(), under) else {
            return;
        };
        let LocalModel { path, drafter_path, .. } = &ready.model;
        // The reply counts more than what it taught about the pair.
        let _ = self
            .store
            .add_estimate(&ready.machine, path, drafter_path.as_deref(), &estimate)
            .await;
    }
}

fn status_of(generated: &Generated) -> MessageStatus {
    match generated.finish {
        FinishReason::Stop => MessageStatus::Complete,
        FinishReason::Length => MessageStatus::Length,
        FinishReason::Cancelled => MessageStatus::Stopped,
    }
}
