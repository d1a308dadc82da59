//! Inkling's output: blocks, each opened by a content token.

use super::{Parts, ToolCall, calls, held_len};

/// What the model writes itself between the two blocks.
pub(super) const END_OF_THINKING: &str = "<|end_message|><|message_model|><|content_text|>";

const MARKS: [(&str, Mark); 6] = [
    ("<|message_model|>", Mark::Header),
    ("<|content_thinking|>", Mark::Thinking),
    ("<|content_text|>", Mark::Text),
    ("<|content_invoke_tool_json|>", Mark::Call),
    ("<|end_message|>", Mark::End),
    ("<|content_model_end_sampling|>", Mark::End),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// Up to the content token: the name of a tool, or nothing. Never shown.
    Header,
    Thinking,
    Text,
    Call,
    /// Between two blocks.
    End,
}

#[derive(Debug)]
pub(super) struct Parser {
    block: Mark,
    pending: String,
    payload: String,
}

impl Parser {
    pub(super) fn new(prompt: &str) -> Parser {
        let last = MARKS
            .iter()
            .filter_map(|(tag, mark)| Some((prompt.rfind(tag)?, *mark)))
            .max_by_key(|(at, _)| *at);
        let block = match last {
            Some((_, mark @ (Mark::Thinking | Mark::Text))) => mark,
            _ => Mark::Header,
        };
        Parser {
            block,
            pending: String::new(),
            payload: String::new(),
        }
    }

    pub(super) fn push(&mut self, text: &str, parts: &mut Parts) {
        self.pending.push_str(text);
        let mut pending = std::mem::take(&mut self.pending);
        let start = parts.seen - pending.len();
        let mut from = 0;
        while let Some((at, tag, mark)) = first_mark(&pending[from..]) {
            self.give(&pending[from..from + at], start + from, parts);
            self.enter(mark, parts);
            from += at + tag.len();
        }
        let free = pending.len() - held_len(&pending[from..], &MARKS.map(|(tag, _)| tag));
        self.give(&pending[from..free], start + from, parts);
        pending.drain(..free);
        self.pending = pending;
    }

    /// Gives out what is held back; whether the output ended inside of a thinking block.
    pub(super) fn finish(mut self, parts: &mut Parts) -> bool {
        let rest = std::mem::take(&mut self.pending);
        self.give(&rest, parts.seen - rest.len(), parts);
        self.is_thinking()
    }

    pub(super) fn is_thinking(&self) -> bool {
        self.block == Mark::Thinking
    }

    fn give(&mut self, text: &str, source: usize, parts: &mut Parts) {
        match self.block {
            Mark::Thinking => parts.reasoning.push(text, source),
            Mark::Text => parts.answer.push(text, source),
            Mark::Call => self.payload.push_str(text),
            Mark::Header | Mark::End => {}
        }
    }

    fn enter(&mut self, mark: Mark, parts: &mut Parts) {
        let payload = std::mem::take(&mut self.payload);
        if self.block == Mark::Call && mark == Mark::End {
            parts.tool_calls.extend::<Option<ToolCall>>(calls::parse_json(&payload));
        }
        self.block = mark;
    }
}

fn first_mark(text: &str) -> Option<(usize, &'static str, Mark)> {
    let mut from = 0;
    while let Some(at) = text[from..].find("<|").map(|at| from + at) {
        if let Some((tag, mark)) = MARKS.iter().find(|(tag, _)| text[at..].starts_with(tag)) {
            return Some((at, tag, *mark));
        }
        from = at + 2;
    }
    None
}
