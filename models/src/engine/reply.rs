//! A reply as it grows: tokens to text, to what is shown of it, and to its end.

use std::ops::ControlFlow;

use super::figures::Figures;
use super::loading::TextParts;
use super::origin::Ledger;
use super::thinking::Thinking;
use super::turn::{Prepared, tokenizer};
use super::{FinishReason, GenerateRequest, Generated, Piece, RoundStats};
use crate::generate::{Limits, Round};
use crate::text::{Delta, TextStream, ThinkingParser};
use crate::{Error, Result};

/// The reply as it grows.
pub(super) struct Reply<'m> {
    parts: &'m TextParts,
    stream: TextStream,
    parser: ThinkingParser,
    pub(super) thinking: Thinking,
    limits: Limits,
    pub(super) tokens: Vec<u32>,
    text: String,
    ledger: Ledger,
}

/// What became of a round.
#[derive(Default)]
pub(super) struct Taken {
    /// The text to show.
    pub(super) delta: Delta,
    /// Which tokens it came from.
    pub(super) pieces: Vec<Piece>,
    /// How many of the round's tokens count.
    pub(super) kept: usize,
    /// The rejected draft as text.
    pub(super) rejected: Option<String>,
    /// Whether they end the reply.
    pub(super) finish: Option<FinishReason>,
}

impl<'m> Reply<'m> {
    pub(super) fn new(
        parts: &'m TextParts,
        request: &GenerateRequest,
        prompt: &Prepared,
        limits: Limits,
    ) -> Result<Self> {
        if parts.tokenizer.is_none() && request.stop.iter().any(|s| !s.is_empty()) {
            tokenizer(parts)?;
        }
        let format = if prompt.chat {
            parts.format
        } else {
            crate::text::OutputFormat::Plain
        };
        let limit = limits.max_tokens.saturating_add(request.continued.len());
        let mut reply = Self {
            parts,
            stream: TextStream::new(&request.stop),
            parser: ThinkingParser::new(format, &prompt.text, prompt.tools.as_ref()),
            thinking: Thinking::new(format, &prompt.text, request.thinking_budget),
            limits: Limits {
                max_tokens: limit,
                ..limits
            },
            tokens: Vec::new(),
            text: String::new(),
            ledger: Ledger::default(),
        };
        // Shown before.
        if let Some(finish) = reply.take_all(&request.continued).finish {
            return Err(Error::Usage {
                message: format!("the reply that is to go on had ended already ({})", finish.as_str()),
            });
        }
        Ok(reply)
    }

    /// Ends the thinking if it is over: the text to show, what was said for it, and whether that ends the reply.
    pub(super) fn end_thinking(&mut self) -> Result<Option<(Delta, RoundStats, Option<FinishReason>)>> {
        if !self.thinking.is_over() {
            return Ok(None);
        }
        let mut tokens = self.thinking.end(self.parts, &self.tokens)?;
        tokens.truncate(self.limits.max_tokens.saturating_sub(self.tokens.len()));
        let taken = self.take_all(&tokens);
        tokens.truncate(taken.kept);
        let said = RoundStats {
            tokens,
            kept: taken.kept,
            pieces: taken.pieces,
            said: true,
            ..RoundStats::default()
        };
        Ok(Some((taken.delta, said, taken.finish)))
    }

    /// Takes tokens one by one, as no round does: nothing between them ends the thinking.
    fn take_all(&mut self, tokens: &[u32]) -> Taken {
        let mut all = Taken::default();
        for token in tokens {
            let one = Round {
                tokens: vec![*token],
                drafted: 0,
                accepted: 0,
                rejected: None,
            };
            let one = self.take(&one);
            all.delta.reasoning += &one.delta.reasoning;
            all.delta.answer += &one.delta.answer;
            all.pieces.extend(one.pieces);
            all.kept += one.kept;
            all.finish = one.finish;
            if all.finish.is_some() {
                break;
            }
        }
        all
    }

    pub(super) fn take(&mut self, round: &Round) -> Taken {
        let from = self.text.len();
        let mut finish = None;
        let mut rejected = None;
        let mut kept = 0;
        for token in &round.tokens {
            if kept == round.accepted {
                rejected = round.rejected.map(|id| self.reading(id));
            }
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
            self.thinking.push(&piece);
            let flow = self.stream.push(&piece, &mut self.text);
            self.ledger.token(self.text.len() + self.stream.held());
            if flow == ControlFlow::Break(()) {
                finish = Some(FinishReason::Stop);
                break;
            }
            if self.thinking.is_over() {
                break;
            }
        }
        if finish.is_none() && self.tokens.len() >= self.limits.max_tokens {
            finish = Some(FinishReason::Length);
        }
        let delta = self.parser.push(&self.text[from..]);
        Taken {
            delta,
            pieces: self.ledger.pieces(&self.parser.take_sources()),
            kept,
            rejected,
            finish,
        }
    }

    /// How a token would read that came next.
    fn reading(&self, id: u32) -> String {
        match &self.parts.tokenizer {
            Some(tokenizer) => self.stream.reading(&tokenizer.token_bytes(id)),
            None => id.to_string(),
        }
    }

    pub(super) fn end(mut self, finish: FinishReason, figures: Figures) -> Generated {
        let from = self.text.len();
        if self.stream.stop().is_none() {
            self.stream.finish(&mut self.text);
        }
        self.parser.push(&self.text[from..]);
        let (outcome, sources) = self.parser.finish_with_sources(finish == FinishReason::Length);
        Generated {
            stats: figures.stats(self.tokens.len(), self.thinking.thought()),
            tokens: self.tokens,
            text: self.text,
            reasoning: outcome.reasoning,
            answer: outcome.answer,
            late: self.ledger.pieces(&sources),
            thinking_used_budget: outcome.thinking_used_budget,
            finish,
        }
    }
}
