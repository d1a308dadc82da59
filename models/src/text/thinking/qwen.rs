//! Qwen's output: `<think>` … `</think>`, an answer, and `<tool_call>` … `</tool_call>` in it.

use super::{Parts, Schemas, calls, held_len};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// The makers' own words for it: the model knows them as a reason to answer now.
pub(super) const END_OF_THINKING: &str = "\n\nConsidering the limited time by the user, I have to give the solution based on \
                                          the thinking directly now.\n</think>\n\n";
/// The rest of the templates' empty block.
pub(super) const END_OF_NO_THINKING: &str = "\n</think>\n\n";
const CALL: &str = "<tool_call>";
const CALL_END: &str = "</tool_call>";
const TURN: &str = "<|im_start|>";
/// What follows the tag of a call that is meant as one.
const CALL_BODIES: [&str; 2] = ["<function", "{"];

#[derive(Debug)]
pub(super) struct Parser {
    stage: Stage,
    /// Text that is not yet given out.
    pending: String,
    /// Bytes of `pending` that need not be looked at again.
    scanned: usize,
    schemas: Schemas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing but white space so far: a leading `<think>` opens, or repeats what the prompt has opened.
    Start {
        inside: bool,
    },
    Thinking,
    Answer,
    /// `pending` begins with the tag of a call.
    Call,
}

enum Follows {
    Call,
    Text,
    Unknown,
}

impl Parser {
    pub(super) fn new(prompt: &str, schemas: Schemas) -> Parser {
        // Tags of earlier turns say nothing about this one.
        let turn = prompt.rfind(TURN).map_or(prompt, |at| &prompt[at..]);
        let stage = match (turn.rfind(OPEN), turn.rfind(CLOSE)) {
            (open, close) if open > close => Stage::Start { inside: true },
            (_, Some(_)) => Stage::Answer,
            _ => Stage::Start { inside: false },
        };
        Parser {
            stage,
            pending: String::new(),
            scanned: 0,
            schemas,
        }
    }

    pub(super) fn push(&mut self, text: &str, parts: &mut Parts) {
        self.pending.push_str(text);
        while self.step(parts) {}
    }

    /// Gives out what is held back; whether the output ended inside of the thinking block.
    pub(super) fn finish(self, parts: &mut Parts) -> bool {
        match self.stage {
            Stage::Thinking | Stage::Start { inside: true } => parts.think(&self.pending, self.pending.len()),
            // An unfinished call is neither shown nor run.
            Stage::Answer if self.pending.starts_with(CALL) => {}
            Stage::Answer | Stage::Start { inside: false } => parts.say(&self.pending, self.pending.len()),
            Stage::Call => {}
        }
        self.is_thinking()
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.stage, Stage::Thinking | Stage::Start { inside: true })
    }

    /// One step; whether another may follow.
    fn step(&mut self, parts: &mut Parts) -> bool {
        match self.stage {
            Stage::Start { inside } => self.start(inside),
            Stage::Thinking => self.think(parts),
            Stage::Answer => self.answer(parts),
            Stage::Call => self.call(parts),
        }
    }

    fn start(&mut self, inside: bool) -> bool {
        let text = self.pending[self.scanned..].trim_start();
        self.scanned = self.pending.len() - text.len();
        if text.starts_with(OPEN) {
            self.drop_front(self.scanned + OPEN.len());
            self.stage = Stage::Thinking;
        } else if OPEN.starts_with(text) {
            return false;
        } else {
            self.scanned = 0;
            self.stage = if inside { Stage::Thinking } else { Stage::Answer };
        }
        true
    }

    fn think(&mut self, parts: &mut Parts) -> bool {
        let close = self.pending[self.scanned..].find(CLOSE).map(|at| self.scanned + at);
        let call = self.find_call(close.unwrap_or(self.pending.len()));
        match (call, close) {
            (Some((at, Follows::Call)), _) => {
                parts.think(&self.pending, at);
                self.drop_front(at);
                self.stage = Stage::Call;
            }
            (_, Some(at)) => {
                parts.think(&self.pending, at);
                self.drop_front(at + CLOSE.len());
                self.stage = Stage::Answer;
            }
            (call, None) => {
                let free = call.map_or_else(
                    || self.pending.len() - held_len(&self.pending, &[CLOSE, CALL]),
                    |(at, _)| at,
                );
                parts.think(&self.pending, free);
                self.drop_front(free);
                return false;
            }
        }
        true
    }

    fn answer(&mut self, parts: &mut Parts) -> bool {
        let call = self.find_call(self.pending.len());
        let free = match &call {
            Some((at, _)) => *at,
            None => self.pending.len() - held_len(&self.pending, &[CALL]),
        };
        parts.say(&self.pending, free);
        self.drop_front(free);
        let is_call = matches!(call, Some((_, Follows::Call)));
        if is_call {
            self.stage = Stage::Call;
        }
        is_call
    }

    fn call(&mut self, parts: &mut Parts) -> bool {
        let from = self.scanned.max(CALL.len());
        let Some(at) = self.pending[from..].find(CALL_END).map(|at| from + at) else {
            self.scanned = self.pending.len() - held_len(&self.pending, &[CALL_END]);
            return false;
        };
        match calls::parse(&self.pending[CALL.len()..at], &self.schemas) {
            Some(call) => parts.tool_calls.push(call),
            None => parts.say(&self.pending, at + CALL_END.len()),
        }
        self.drop_front(at + CALL_END.len());
        self.stage = Stage::Answer;
        true
    }

    /// The first call tag before `end` that is, or may yet be, the start of a call.
    fn find_call(&self, end: usize) -> Option<(usize, Follows)> {
        let mut from = 0;
        while let Some(at) = self.pending[from..end].find(CALL).map(|at| from + at) {
            from = at + CALL.len();
            match follows(&self.pending[from..]) {
                Follows::Text => {}
                verdict => return Some((at, verdict)),
            }
        }
        None
    }

    fn drop_front(&mut self, bytes: usize) {
        self.pending.drain(..bytes);
        self.scanned = 0;
    }
}

fn follows(text: &str) -> Follows {
    let text = text.trim_start();
    if CALL_BODIES.iter().any(|body| text.starts_with(body)) {
        Follows::Call
    } else if CALL_BODIES.iter().any(|body| body.starts_with(text)) {
        Follows::Unknown
    } else {
        Follows::Text
    }
}
