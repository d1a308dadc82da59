//! Comparisons and benchmarks of the running app: they take the only place that replies take, and are kept.

use std::sync::Arc;

use models::{Engine, Exactness, SamplingParams};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{BenchPlan, ComparePlan, Reply, Subject, bench, compare, prompts, regressions};
use crate::error::Error;
use crate::ipc::{
    Agreement, AppError, BenchEvent, BenchReport, BenchRequest, CompareEvent, CompareRequest, Comparison, Measurements,
    Message, MessageStatus, OpenBench, Regression, Role, SpeculationChoice, TurnOptions,
};
use crate::library::{Library, Ready};
use crate::store::Store;
use crate::turn::{Stop, Turns, check_options, request_of};

/// Most runs a side or prompt: beyond that nothing is learned, and the machine is lost for an hour.
const MOST_REPETITIONS: u32 = 50;
/// Tokens of a comparison whose options name no limit.
const USUAL_TOKENS: u32 = 300;
/// A reply that was cut short is compared for at least as many.
const LEAST_TOKENS: u32 = 64;

/// Runs comparisons and benchmarks; clones share it.
#[derive(Clone)]
pub struct Benches {
    engine: Engine,
    store: Store,
    library: Library,
    turns: Turns,
}

impl Benches {
    /// Nothing is running.
    #[must_use]
    pub fn new(engine: Engine, store: Store, library: Library, turns: Turns) -> Self {
        Benches {
            engine,
            store,
            library,
            turns,
        }
    }

    /// Runs a request with speculation off and on. The last event is `done` with what is returned too, or `failed`.
    pub async fn compare(
        &self,
        request: &CompareRequest,
        mut listener: impl FnMut(CompareEvent) -> bool + Send,
    ) -> Result<Comparison, AppError> {
        let outcome = self.compare_quietly(request, &mut listener).await;
        match &outcome {
            Ok((id, comparison)) => listener(CompareEvent::Done {
                id: *id,
                comparison: comparison.clone(),
            }),
            Err(error) => listener(CompareEvent::Failed { error: error.clone() }),
        };
        outcome.map(|(_, comparison)| comparison)
    }

    async fn compare_quietly(
        &self,
        request: &CompareRequest,
        listener: &mut (impl FnMut(CompareEvent) -> bool + Send),
    ) -> Result<(Option<i32>, Comparison), AppError> {
        check_options(&request.options)?;
        check_repetitions(request.repetitions)?;
        let taken = self.turns.reserve()?;
        let asked = self.asked(request).await?;
        let ready = self.ready(&taken.stop()).await?;
        if let Some(model) = asked.made_by.filter(|made_by| !made_by.is(&ready)) {
            return Err(Error::OtherModel { model: model.name() }.into());
        }
        let plan = ComparePlan {
            request: request_of(
                &asked.history,
                &asked.instructions,
                &asked.options,
                &ready.loaded.defaults,
            ),
            speculation: match asked.options.speculation {
                // Someone who chats without it wants to see what it would be like.
                SpeculationChoice::Off => SpeculationChoice::Auto,
                on => on,
            },
            repetitions: request.repetitions as usize,
            message_id: request.message_id,
            reply: asked.reply,
            prompt: asked.history.last().map(|m| m.content.clone()).unwrap_or_default(),
        };
        let (events, mut incoming) = unbounded_channel();
        let (engine, stop) = (self.engine.clone(), taken.stop());
        let running = tokio::task::spawn_blocking(move || {
            let tell = telling(events);
            let subject = Subject {
                model: &ready.model,
                loaded: &ready.loaded,
            };
            compare(&engine, subject, &plan, &stop, &tell)
        });
        while let Some(event) = incoming.recv().await {
            // Nobody listening is no reason to end: the result is kept.
            listener(event);
        }
        let comparison = self.ended(running.await)?;
        if let Agreement::Different { difference } = &comparison.agreement
            && difference
                .recheck
                .is_some_and(|found| found.block < found.block_before || !difference.suspects.is_empty())
        {
            // The next load checks anew and runs in parts what it must. Without it, that is left to an update.
            let _ = self.store.forget_self_check(&comparison.setup.check_key).await;
        }
        // What cannot be stored can still be shown.
        let id = match comparison.runs.is_empty() {
            true => None,
            false => self.store.add_comparison(&comparison).await.ok(),
        };
        Ok((id, comparison))
    }

    /// Runs the prompt set. The last event is `done` with the report, or `failed`.
    pub async fn bench(
        &self,
        request: &BenchRequest,
        mut listener: impl FnMut(BenchEvent) -> bool + Send,
    ) -> Result<BenchReport, AppError> {
        let outcome = self.bench_quietly(request, &mut listener).await;
        match outcome {
            Ok((id, report)) => {
                let regressions = self.regressions_of(id, &report).await;
                listener(BenchEvent::Done {
                    id,
                    report: report.clone(),
                    regressions,
                });
                Ok(report)
            }
            Err(error) => {
                listener(BenchEvent::Failed { error: error.clone() });
                Err(error)
            }
        }
    }

    async fn bench_quietly(
        &self,
        request: &BenchRequest,
        listener: &mut (impl FnMut(BenchEvent) -> bool + Send),
    ) -> Result<(Option<i32>, BenchReport), AppError> {
        check_repetitions(request.repetitions)?;
        for arm in &request.arms {
            check_options(&TurnOptions {
                speculation: *arm,
                max_tokens: Some(request.max_tokens),
                ..TurnOptions::default()
            })?;
        }
        let plan = BenchPlan {
            prompts: prompts(&request.kinds),
            arms: request.arms.clone(),
            repetitions: request.repetitions as usize,
            max_tokens: request.max_tokens as usize,
            // Greedy: acceptance then depends on the pair alone.
            sampling: SamplingParams::default(),
            exactness: Exactness::Exact,
        };
        let taken = self.turns.reserve()?;
        let ready = self.ready(&taken.stop()).await?;
        let (events, mut incoming) = unbounded_channel();
        let (engine, stop) = (self.engine.clone(), taken.stop());
        let running = tokio::task::spawn_blocking(move || {
            let subject = Subject {
                model: &ready.model,
                loaded: &ready.loaded,
            };
            // The receiver outlives this; a lost event would only be progress.
            bench(&engine, subject, &plan, &stop, &|event| drop(events.send(event)))
        });
        while let Some(event) = incoming.recv().await {
            listener(event);
        }
        let report = self.ended(running.await)?;
        let id = match report.runs.is_empty() {
            true => None,
            false => self.store.add_bench(&report).await.ok(),
        };
        Ok((id, report))
    }

    /// What a kept benchmark says against the one before it of the same pair on the same machine.
    pub async fn open_bench(&self, id: i32) -> Result<OpenBench, AppError> {
        let report = self.store.bench(id).await?;
        let regressions = self.regressions_of(Some(id), &report).await;
        Ok(OpenBench { report, regressions })
    }

    /// Kept comparisons and benchmarks, the newest first.
    pub async fn history(&self) -> Result<Measurements, AppError> {
        Ok(Measurements {
            comparisons: self.store.comparisons().await?,
            benches: self.store.benches().await?,
        })
    }

    async fn regressions_of(&self, id: Option<i32>, report: &BenchReport) -> Vec<Regression> {
        // Without a history there is nothing to compare with.
        let before = self.store.benches_before(report, id).await.unwrap_or_default();
        regressions(&before, report)
    }

    /// The loaded model, unless a stop comes before it.
    async fn ready(&self, stop: &Stop) -> Result<Arc<Ready>, AppError> {
        tokio::select! {
            ready = self.library.ready() => ready,
            () = stop.requested() => Err(Error::Stopped.into()),
        }
    }

    fn ended<T>(&self, outcome: Result<models::Result<T>, tokio::task::JoinError>) -> Result<T, AppError> {
        let outcome = outcome?;
        if let Err(models::Error::EngineLost { .. } | models::Error::NotLoaded) = &outcome {
            self.library.reload();
        }
        Ok(outcome?)
    }

    /// The conversation and the options of what is to be compared.
    async fn asked(&self, request: &CompareRequest) -> Result<Asked, AppError> {
        let mut options = request.options.clone();
        let Some(message_id) = request.message_id else {
            let text = request.prompt.clone().unwrap_or_default();
            if text.trim().is_empty() {
                return Err(Error::EmptyMessage.into());
            }
            options.max_tokens = options.max_tokens.or(Some(USUAL_TOKENS));
            return Ok(Asked {
                history: vec![said(&text)],
                instructions: String::new(),
                options,
                made_by: None,
                reply: None,
            });
        };
        let chat = self.store.open_chat(self.store.chat_of(message_id).await?).await?;
        let mut history = chat.messages;
        let place = history.iter().position(|m| m.id == message_id);
        let place = place.ok_or(crate::store::Error::NoMessage(message_id))?;
        let mut instructions = chat.config.system_prompt;
        // What a person said is answered as it would be now.
        if history.get(place).is_none_or(|message| message.role != Role::Assistant) {
            history.truncate(place + 1);
            options.max_tokens = options.max_tokens.or(Some(USUAL_TOKENS));
            return Ok(Asked {
                history,
                instructions,
                options,
                made_by: None,
                reply: None,
            });
        }
        let reply = history.drain(place..).next();
        let reply = reply.ok_or(crate::store::Error::NoMessage(message_id))?;
        let mut made_by = None;
        if let Some(run) = &reply.run {
            made_by = Some(MadeBy::Named(run.model.clone()));
            // As it was made; what is asked for is for the next reply.
            if let Some(made) = self.store.made_of(message_id).await? {
                instructions = made.system_prompt.unwrap_or(instructions);
                made_by = Some(MadeBy::Id(made.model));
                options = TurnOptions {
                    speculation: options.speculation,
                    max_tokens: options.max_tokens,
                    ..made.options
                };
            }
            options.seed = Some(run.seed);
            options.exactness = run.exactness;
            options.speculation = match run.state.as_str() {
                "fixed" => SpeculationChoice::Block { size: run.block_size },
                // Replies of earlier versions had the same block size throughout.
                "" if run.speculating => SpeculationChoice::Block { size: run.block_size },
                "on" | "parked" | "probing" => SpeculationChoice::Auto,
                _ => options.speculation,
            };
            let length = run.tokens.max(LEAST_TOKENS);
            options.max_tokens = Some(options.max_tokens.map_or(length, |limit| limit.min(length)));
        }
        Ok(Asked {
            history,
            instructions,
            options,
            made_by,
            reply: whole(reply),
        })
    }
}

struct Asked {
    history: Vec<Message>,
    instructions: String,
    options: TurnOptions,
    /// The model of the reply that it was started from.
    made_by: Option<MadeBy>,
    /// What that reply says.
    reply: Option<Reply>,
}

/// Which model made a reply. Another one's text would be compared with nothing.
enum MadeBy {
    Id(String),
    /// Replies of earlier versions have a name only.
    Named(String),
}

impl MadeBy {
    fn is(&self, ready: &Ready) -> bool {
        match self {
            MadeBy::Id(id) => *id == ready.model.id,
            MadeBy::Named(name) => *name == ready.model.name,
        }
    }

    fn name(self) -> String {
        match self {
            MadeBy::Id(model) | MadeBy::Named(model) => model,
        }
    }
}

/// What a reply says, if it came to an end of its own.
fn whole(reply: Message) -> Option<Reply> {
    let is_cut = match reply.status {
        MessageStatus::Complete => false,
        MessageStatus::Length => true,
        _ => return None,
    };
    Some(Reply {
        reasoning: reply.reasoning.unwrap_or_default(),
        answer: reply.content,
        is_cut,
    })
}

fn said(text: &str) -> Message {
    Message {
        id: 0,
        chat_id: 0,
        role: Role::User,
        content: text.to_owned(),
        reasoning: None,
        thought: None,
        status: crate::ipc::MessageStatus::Complete,
        created_at: 0.0,
        run: None,
        error: None,
        versions: Vec::new(),
        can_continue: false,
    }
}

fn telling(events: UnboundedSender<CompareEvent>) -> super::Tell {
    // The receiver outlives the runs.
    Arc::new(move |event| drop(events.send(event)))
}

fn check_repetitions(repetitions: u32) -> Result<(), Error> {
    if (1..=MOST_REPETITIONS).contains(&repetitions) {
        return Ok(());
    }
    Err(Error::BadOption {
        option: "the number of repetitions",
        value: repetitions.to_string(),
        expected: "from 1 to 50",
    })
}
