//! How long a reply thinks, and the end of it in the model's place.

use std::time::Instant;

use super::loading::TextParts;
use super::{ThinkingEnd, Thought};
use crate::Result;
use crate::text::{OutputFormat, TextStream, ThinkingParser};

/// Follows a reply token by token. What it says depends on the tokens alone and not on how rounds grouped them or on what
/// is held back from view, so that thinking ends at the same place with speculation on and off.
pub(super) struct Thinking {
    format: OutputFormat,
    parser: ThinkingParser,
    stream: TextStream,
    budget: Option<usize>,
    /// Tokens of the reply.
    seen: usize,
    /// Those of them that are thinking of the model's own.
    tokens: usize,
    /// Tokens of the reply when it had thought enough.
    enough: Option<usize>,
    is_by_person: bool,
    from: Instant,
    to: Option<Instant>,
}

impl Thinking {
    /// Nothing said yet after `prompt`.
    pub(super) fn new(format: OutputFormat, prompt: &str, budget: Option<usize>) -> Self {
        let mut thinking = Self {
            format,
            parser: ThinkingParser::new(format, prompt, None),
            stream: TextStream::new(&[]),
            budget,
            seen: 0,
            tokens: 0,
            enough: None,
            is_by_person: false,
            from: Instant::now(),
            to: None,
        };
        thinking.look();
        thinking
    }

    /// Decoding starts now; what was taken so far was said before.
    pub(super) fn start(&mut self) {
        self.from = Instant::now();
        self.to = None;
    }

    /// Takes the bytes of the next token.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let was = self.parser.is_thinking();
        let mut text = String::new();
        // Without stop strings it never breaks.
        let _ = self.stream.push(piece, &mut text);
        self.parser.push(&text);
        self.seen += 1;
        let is = self.parser.is_thinking();
        if was || is {
            self.to = Some(Instant::now());
        }
        self.tokens += usize::from(was && is && self.enough.is_none());
        self.look();
    }

    /// The person wants the answer.
    pub(super) fn end_now(&mut self) {
        if self.enough.is_none() && self.can_end() {
            self.enough = Some(self.seen);
            self.is_by_person = true;
        }
    }

    /// Whether it is to end here.
    pub(super) fn is_over(&self) -> bool {
        self.enough.is_some() && self.can_end()
    }

    /// Tokens until it may be over, as far as can be told.
    pub(super) fn room(&self) -> usize {
        match self.budget {
            Some(budget) if self.parser.is_thinking() => budget.saturating_sub(self.tokens),
            _ => usize::MAX,
        }
    }

    /// The ids that end it here, after those of the reply; without those that were said before the reply broke off.
    pub(super) fn end(&self, parts: &TextParts, reply: &[u32]) -> Result<Vec<u32>> {
        let (Some(text), Some(tokenizer)) = (self.format.end_of_thinking(self.tokens > 0), &parts.tokenizer) else {
            return Ok(Vec::new());
        };
        let ids = tokenizer.encode(text)?;
        let said = self.enough.and_then(|at| reply.get(at..)).unwrap_or_default();
        Ok(ids.strip_prefix(said).unwrap_or(&ids).to_vec())
    }

    pub(super) fn thought(&self) -> Thought {
        let is_open = self.parser.is_thinking();
        let by = if self.is_by_person {
            ThinkingEnd::Person
        } else {
            ThinkingEnd::Budget
        };
        Thought {
            tokens: self.tokens,
            ms: self
                .to
                .map_or(0.0, |to| to.duration_since(self.from).as_secs_f64() * 1e3),
            is_open,
            ended: self.enough.filter(|_| !is_open).map(|_| by),
        }
    }

    fn look(&mut self) {
        let is_spent = self.budget.is_some_and(|budget| self.tokens >= budget);
        if self.enough.is_none() && is_spent && self.can_end() {
            self.enough = Some(self.seen);
        }
    }

    /// Never inside a character.
    fn can_end(&self) -> bool {
        self.parser.is_thinking() && self.stream.is_whole()
    }
}
