//! One generation: prompt to ids, rounds to text, figures.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::figures::Figures;
use super::loading::{Model, TextParts};
use super::reply::{Reply, Taken};
use super::speculating::plan;
use super::{Exactness, FinishReason, GenerateRequest, Generated, GenerationEvent, Message, Prompt, RoundStats, Sink};
use crate::family::wiring_place;
use crate::generate::Limits;
use crate::nn::rows::CHECKED_ROWS;
use crate::nn::{ffi, rows};
use crate::registry::StartRequest;
use crate::text::{Delta, RenderInput};
use crate::{Error, Result};

/// A prompt, ready to run.
pub(super) struct Prepared {
    ids: Vec<u32>,
    /// The text it was made from; its end tells whether the reply starts inside a thinking block.
    pub(super) text: String,
    pub(super) tools: Option<Value>,
    /// Whether the reply is a chat turn, whose thinking is shown apart.
    pub(super) chat: bool,
}

/// Runs one generation and remembers how often the drafts of its wiring were right.
pub(super) fn generate(model: &Model, request: &GenerateRequest, sink: &mut dyn Sink) -> Result<Generated> {
    // Whatever was to be read ahead, this request knows better.
    model.ahead.replace(Ahead::Nothing);
    let is_on_trial = model.wirings.is_on_trial() && request.wiring.is_none();
    let generated = run(model, request, sink)?;
    // A stopped reply is as likely written anew as gone on from.
    if !request.fresh && !generated.answer.is_empty() && generated.finish != FinishReason::Cancelled {
        let done = Box::new((request.clone(), generated.clone()));
        model.ahead.replace(Ahead::After(done));
    }
    let s = &generated.stats.speculation;
    if !is_on_trial {
        let rounds = s
            .drafted_per_round
            .iter()
            .copied()
            .zip(s.accepted_per_round.iter().copied());
        model.record.add(s.wiring.as_ref(), rounds);
    }
    let is_default = s.is_fixed() && model.pair.block_size() == Some(s.block_size);
    if let Some(wiring) = s.wiring.as_ref().filter(|_| is_default) {
        model.wirings.add(wiring, s.rounds, s.drafted, s.accepted);
    }
    Ok(generated)
}

/// What to read while nothing is asked.
#[derive(Default)]
pub(super) enum Ahead {
    #[default]
    Nothing,
    /// The start of the turn after this reply.
    After(Box<(GenerateRequest, Generated)>),
    /// This prompt, into the drafter too if there is a wiring.
    Prompt(Vec<u32>, Option<String>),
}

/// Reads a chunk of what the next turn is going to start with. Whether there is more.
pub(super) fn read_ahead(model: &Model) -> bool {
    let (prompt, wiring) = match model.ahead.replace(Ahead::Nothing) {
        Ahead::Nothing => return false,
        Ahead::Prompt(prompt, wiring) => (prompt, wiring),
        Ahead::After(done) => {
            let (request, generated) = *done;
            let Some(prompt) = next_prompt(&model.text, &request, &generated) else {
                return false;
            };
            // The next reply is going to be made as this one was.
            let speculates = generated.stats.speculation.enabled;
            let wiring = request.wiring.or_else(|| model.wirings.choose());
            (prompt, wiring.filter(|_| speculates))
        }
    };
    let ends = &model.text.eos;
    let more = model.pair.read_ahead(&prompt, ends, wiring.as_deref()).unwrap_or(false);
    // Nothing stays queued behind a chunk: the process may exit between two.
    ffi::synchronize();
    if more {
        model.ahead.replace(Ahead::Prompt(prompt, wiring));
    }
    more
}

fn run(model: &Model, request: &GenerateRequest, sink: &mut dyn Sink) -> Result<Generated> {
    let start = Instant::now();
    let prompt = prepare(&model.text, request)?;
    let context = model.pair.context();
    let read = prompt.ids.len() + request.continued.len();
    if read >= context {
        return Err(Error::ContextFull { prompt: read, context });
    }
    let room = context - read;
    let limits = Limits {
        max_tokens: request.max_tokens.map_or(room, |n| n.min(room)),
        eos: if request.ignore_eos {
            Vec::new()
        } else {
            model.text.eos.clone()
        },
    };
    let sampler = model.pair.sampler(&request.sampling)?;
    let accept = sampler.acceptance(request.accept);
    let plan = plan(model, request, accept)?;
    let depth = plan.depth();
    let _installed = rows::install(match request.exactness {
        Exactness::Exact => model.policy.clone(),
        Exactness::Fast => Rc::default(),
    });
    if let Some(name) = request.wiring.as_deref().filter(|_| !model.pair.wirings().is_empty()) {
        wiring_place(model.pair.wirings(), Some(name))?;
    }
    let wiring = match &request.wiring {
        _ if depth.is_none() => None,
        Some(name) => Some(name.clone()),
        None => model.wirings.choose(),
    };
    let mut figures = Figures::new(start, prompt.ids.len(), plan, request.exactness);
    let named = wiring.clone().filter(|_| model.wirings.is_open());
    // A wiring on trial may be the wrong one: it says nothing about the head.
    if request.wiring.is_some() || !model.wirings.is_on_trial() {
        figures.judging(model.record.of(named.as_ref()));
    }
    figures.wired(named);
    figures.accepting(accept);
    let mut cached = None;
    let rows = model.loaded.self_check.as_ref();
    let rows = rows.map_or(1, |c| c.block.min(CHECKED_ROWS as usize));
    let mut reply = Reply::new(&model.text, request, &prompt, limits.clone())?;
    // Runs what there is of the reply again.
    let start = |replay: &[u32], progress: &mut dyn FnMut(usize) -> ControlFlow<()>| {
        let limits = Limits {
            max_tokens: limits.max_tokens + request.continued.len() - replay.len(),
            ..limits.clone()
        };
        model.pair.start(
            &sampler,
            StartRequest {
                replay,
                replay_rows: rows,
                turn_ends: &model.text.eos,
                reuse: !request.fresh,
                depth: depth.clone(),
                accept,
                wiring: wiring.as_deref(),
                ..StartRequest::new(&prompt.ids, limits, progress)
            },
        )
    };
    // Thinking that is over before it begins ends with the prompt.
    let first = reply.end_thinking()?;
    if let Some((.., Some(finish))) = first {
        return Ok(reply.end(finish, figures));
    }
    let total = prompt.ids.len() + reply.tokens.len();
    let mut progress = |done: usize| {
        cached.get_or_insert(done);
        sink.event(GenerationEvent::Prefill { done, total })
    };
    let started = start(&reply.tokens, &mut progress)?;
    figures.cached(cached.unwrap_or_default());
    let Some(mut decoder) = started else {
        return Ok(reply.end(FinishReason::Cancelled, figures));
    };
    reply.thinking.start();
    let mut flow = match first {
        Some((delta, said, _)) => sink.event(event(delta, said, &figures, &reply)),
        None => ControlFlow::Continue(()),
    };
    loop {
        if flow.is_break() {
            decoder.finish()?;
            return Ok(reply.end(FinishReason::Cancelled, figures));
        }
        decoder.hold(reply.thinking.room());
        let Some(mut round) = decoder.next_round()? else {
            decoder.finish()?;
            return Ok(reply.end(FinishReason::Length, figures));
        };
        let Taken {
            delta,
            pieces,
            kept,
            rejected,
            mut finish,
        } = reply.take(&round);
        let ms = figures.add(&round, kept);
        let is_whole = kept == round.tokens.len();
        if finish.is_none() {
            round.tokens.truncate(kept);
        }
        let stats = RoundStats {
            drafted: round.drafted,
            accepted: round.accepted.min(kept),
            tokens: round.tokens,
            kept,
            rejected,
            pieces,
            ms,
            said: false,
        };
        flow = sink.event(event(delta, stats, &figures, &reply));
        if finish.is_none() && flow.is_continue() {
            if sink.wants_answer() {
                reply.thinking.end_now();
            }
            if let Some((delta, said, ended)) = reply.end_thinking()? {
                finish = ended;
                if finish.is_none() && is_whole {
                    decoder.say(&said.tokens, rows)?;
                } else if finish.is_none() {
                    // It began and was over inside one round, of which the decoder cannot take back a part.
                    decoder.finish()?;
                    let again = start(&reply.tokens, &mut |_| ControlFlow::Continue(()))?;
                    decoder = again.ok_or_else(|| Error::backend("a reply that nobody stopped did not start"))?;
                }
                flow = sink.event(event(delta, said, &figures, &reply));
            }
        }
        if let Some(finish) = finish {
            decoder.finish()?;
            return Ok(reply.end(finish, figures));
        }
    }
}

fn event(delta: Delta, round: RoundStats, figures: &Figures, reply: &Reply<'_>) -> GenerationEvent {
    GenerationEvent::Round {
        reasoning: delta.reasoning,
        answer: delta.answer,
        round,
        stats: figures.stats(reply.tokens.len(), reply.thinking.thought()),
    }
}

/// What a next turn would start with: the conversation with this reply in it, up to where the person's words would be.
/// It is found by asking the template about two different next messages, since templates write earlier replies anew.
fn next_prompt(parts: &TextParts, request: &GenerateRequest, done: &Generated) -> Option<Vec<u32>> {
    let Prompt::Messages(messages) = &request.prompt else {
        return None;
    };
    let with = |next: &str| {
        let reasoning = Some(done.reasoning.clone()).filter(|r| !r.is_empty());
        let said = |role, content: &str, reasoning| Message {
            role,
            content: content.to_owned(),
            reasoning,
        };
        let reply = said(super::Role::Assistant, &done.answer, reasoning);
        let all = messages
            .iter()
            .cloned()
            .chain([reply, said(super::Role::User, next, None)]);
        let request = GenerateRequest {
            prompt: Prompt::Messages(all.collect()),
            ..request.clone()
        };
        // A template that cannot do it says so when it is asked in earnest.
        prepare(parts, &request).map(|p| p.ids).ok()
    };
    let (one, other) = (with("1")?, with("x y")?);
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    Some(one.get(..same)?.to_vec())
}

/// The ids that a request's prompt stands for.
pub(super) fn prompt_ids(parts: &TextParts, request: &GenerateRequest) -> Result<Vec<u32>> {
    prepare(parts, request).map(|prepared| prepared.ids)
}

fn prepare(parts: &TextParts, request: &GenerateRequest) -> Result<Prepared> {
    let (messages, tools) = match &request.prompt {
        Prompt::Ids(ids) => {
            return Ok(Prepared {
                ids: ids.clone(),
                text: String::new(),
                tools: None,
                chat: false,
            });
        }
        Prompt::Raw(text) => {
            let ids = tokenizer(parts)?.encode(text)?;
            return Ok(Prepared {
                ids,
                text: text.clone(),
                tools: None,
                chat: false,
            });
        }
        Prompt::Messages(messages) => (messages.iter().map(template_message).collect(), None),
        Prompt::Json(Value::Object(object)) => (
            object.get("messages").cloned().unwrap_or(Value::Null),
            object.get("tools").cloned(),
        ),
        Prompt::Json(messages) => (messages.clone(), None),
    };
    if !messages.is_array() {
        return Err(Error::Usage {
            message: "messages must be a list of objects with role and content".to_owned(),
        });
    }
    let tokenizer = tokenizer(parts)?;
    let template = parts.template.as_ref().ok_or(Error::TemplateMissing)?;
    let mut vars: Map<String, Value> = parts.special.clone();
    if let Some(thinking) = request.thinking {
        vars.insert("enable_thinking".to_owned(), Value::Bool(thinking));
    }
    let tools = tools.filter(|t| !t.is_null());
    let text = template.render(RenderInput {
        messages: &messages,
        tools: tools.as_ref(),
        add_generation_prompt: true,
        vars: &vars,
        now: None,
    })?;
    Ok(Prepared {
        ids: tokenizer.encode(&text)?,
        text,
        tools,
        chat: true,
    })
}

/// How many tokens a text has.
pub(super) fn count(parts: &TextParts, text: &str) -> Result<usize> {
    Ok(tokenizer(parts)?.encode(text)?.len())
}

pub(super) fn tokenizer(parts: &TextParts) -> Result<&crate::text::Tokenizer> {
    parts.tokenizer.as_ref().ok_or_else(|| Error::Tokenizer {
        message: "this checkpoint has no tokenizer.json, so it can only continue token ids".to_owned(),
    })
}

fn template_message(message: &Message) -> Value {
    let mut object = json!({ "role": message.role.as_str(), "content": message.content });
    if let (Some(reasoning), Some(object)) = (&message.reasoning, object.as_object_mut()) {
        object.insert("reasoning_content".to_owned(), Value::from(reasoning.as_str()));
    }
    object
}
