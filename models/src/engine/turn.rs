//! One generation: prompt to ids, rounds to text, figures.

use std::ops::ControlFlow;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::figures::Figures;
use super::loading::{Model, TextParts};
use super::{
    DrafterState, FinishReason, GenerateRequest, Generated, GenerationEvent, MAX_BLOCK_SIZE, Message, Prompt,
    RoundStats, Sink, Speculation,
};
use crate::family::wiring_place;
use crate::generate::{Limits, Round};
use crate::registry::StartRequest;
use crate::text::{Delta, RenderInput, TextStream, ThinkingParser};
use crate::{Error, Result};

/// A prompt, ready to run.
struct Prepared {
    ids: Vec<u32>,
    /// The text it was made from; its end tells whether the reply starts inside a thinking block.
    text: String,
    tools: Option<Value>,
    /// Whether the reply is a chat turn, whose thinking is shown apart.
    chat: bool,
}

/// Runs one generation and remembers how often the drafts of its wiring were right.
pub(super) fn generate(model: &Model, request: &GenerateRequest, sink: &mut dyn Sink) -> Result<Generated> {
    let generated = run(model, request, sink)?;
    let s = &generated.stats.speculation;
    let is_default = model.pair.block_size() == Some(s.block_size);
    if let Some(wiring) = s.wiring.as_ref().filter(|_| is_default) {
        model.wirings.add(wiring, s.rounds, s.drafted, s.accepted);
    }
    Ok(generated)
}

fn run(model: &Model, request: &GenerateRequest, sink: &mut dyn Sink) -> Result<Generated> {
    let start = Instant::now();
    let prompt = prepare(&model.text, request)?;
    let context = model.pair.context();
    if prompt.ids.len() >= context {
        return Err(Error::ContextFull {
            prompt: prompt.ids.len(),
            context,
        });
    }
    let room = context - prompt.ids.len();
    let limits = Limits {
        max_tokens: request.max_tokens.map_or(room, |n| n.min(room)),
        eos: if request.ignore_eos {
            Vec::new()
        } else {
            model.text.eos.clone()
        },
    };
    let (block_size, reason) = speculation(model, request.speculation)?;
    let mut figures = Figures::new(start, prompt.ids.len(), block_size, reason);
    if let Some(name) = request.wiring.as_deref().filter(|_| !model.pair.wirings().is_empty()) {
        wiring_place(model.pair.wirings(), Some(name))?;
    }
    let wiring = match &request.wiring {
        _ if block_size.is_none() => None,
        Some(name) => Some(name.clone()),
        None => model.wirings.choose(),
    };
    figures.wired(wiring.clone().filter(|_| model.wirings.is_open()));
    let sampler = model.pair.sampler(&request.sampling)?;
    let accept = sampler.acceptance(request.accept);
    figures.accepting(accept);
    let total = prompt.ids.len();
    let mut progress = |done: usize| sink.event(GenerationEvent::Prefill { done, total });
    let mut reply = Reply::new(&model.text, request, &prompt, limits.clone())?;
    let started = if progress(0).is_break() {
        None
    } else {
        let request = StartRequest {
            prompt: &prompt.ids,
            block_size,
            accept,
            wiring: wiring.as_deref(),
            limits,
            progress: &mut progress,
        };
        model.pair.start(&sampler, request)?
    };
    let Some(mut decoder) = started else {
        return Ok(reply.end(FinishReason::Cancelled, figures));
    };
    loop {
        let Some(round) = decoder.next_round()? else {
            return Ok(reply.end(FinishReason::Length, figures));
        };
        let (delta, kept, finish) = reply.take(&round);
        figures.add(&round, kept);
        let event = GenerationEvent::Round {
            reasoning: delta.reasoning,
            answer: delta.answer,
            round: RoundStats {
                drafted: round.drafted,
                accepted: round.accepted.min(kept),
                tokens: round.tokens,
            },
            stats: figures.stats(reply.tokens.len()),
        };
        let flow = sink.event(event);
        if let Some(finish) = finish {
            return Ok(reply.end(finish, figures));
        }
        if flow.is_break() {
            return Ok(reply.end(FinishReason::Cancelled, figures));
        }
    }
}

/// The block size to decode with, or why it is plain.
fn speculation(model: &Model, asked: Speculation) -> Result<(Option<usize>, Option<String>)> {
    if let Speculation::Block(size) = asked
        && !(2..=MAX_BLOCK_SIZE).contains(&size)
    {
        return Err(Error::Usage {
            message: format!("block size is {size}, but must be from 2 to {MAX_BLOCK_SIZE}"),
        });
    }
    Ok(match (asked, &model.loaded.drafter) {
        (Speculation::Off, _) => (None, Some("speculation is switched off".to_owned())),
        (_, DrafterState::Unavailable { reason }) => (None, Some(reason.clone())),
        (Speculation::Auto, DrafterState::Ready { block_size, .. }) => (Some(*block_size), None),
        (Speculation::Block(size), DrafterState::Ready { .. }) => (Some(size), None),
    })
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

fn tokenizer(parts: &TextParts) -> Result<&crate::text::Tokenizer> {
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

/// The reply as it grows.
struct Reply<'m> {
    parts: &'m TextParts,
    stream: TextStream,
    parser: ThinkingParser,
    limits: Limits,
    tokens: Vec<u32>,
    text: String,
}

impl<'m> Reply<'m> {
    fn new(parts: &'m TextParts, request: &GenerateRequest, prompt: &Prepared, limits: Limits) -> Result<Self> {
        if parts.tokenizer.is_none() && request.stop.iter().any(|s| !s.is_empty()) {
            tokenizer(parts)?;
        }
        let format = if prompt.chat {
            parts.format
        } else {
            crate::text::OutputFormat::Plain
        };
        Ok(Self {
            parts,
            stream: TextStream::new(&request.stop),
            parser: ThinkingParser::new(format, &prompt.text, prompt.tools.as_ref()),
            limits,
            tokens: Vec::new(),
            text: String::new(),
        })
    }

    /// Takes a round's tokens: the text to show, how many of them count, and whether they end the reply.
    fn take(&mut self, round: &Round) -> (Delta, usize, Option<FinishReason>) {
        let from = self.text.len();
        let mut finish = None;
        let mut kept = 0;
        for token in &round.tokens {
            kept += 1;
            if self.limits.eos.contains(token) {
                finish = Some(FinishReason::Stop);
                break;
            }
            self.tokens.push(*token);
            let piece = self
                .parts
                .tokenizer
                .as_ref()
                .map(|t| t.token_bytes(*token))
                .unwrap_or_default();
            if self.stream.push(&piece, &mut self.text) == ControlFlow::Break(()) {
                finish = Some(FinishReason::Stop);
                break;
            }
        }
        if finish.is_none() && self.tokens.len() >= self.limits.max_tokens {
            finish = Some(FinishReason::Length);
        }
        (self.parser.push(&self.text[from..]), kept, finish)
    }

    fn end(mut self, finish: FinishReason, figures: Figures) -> Generated {
        let from = self.text.len();
        if self.stream.stop().is_none() {
            self.stream.finish(&mut self.text);
        }
        self.parser.push(&self.text[from..]);
        let outcome = self.parser.finish(finish == FinishReason::Length);
        Generated {
            stats: figures.stats(self.tokens.len()),
            tokens: self.tokens,
            text: self.text,
            reasoning: outcome.reasoning,
            answer: outcome.answer,
            thinking_used_budget: outcome.thinking_used_budget,
            finish,
        }
    }
}
