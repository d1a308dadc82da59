//! A model's output split into reasoning, answer and tool calls while it streams.

mod blocks;
mod calls;
mod channel;
mod literal;
mod qwen;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use self::channel::Channel;
use super::Tokenizer;

/// How a model marks the parts of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// All of it is the answer.
    Plain,
    /// `<think>` and `<tool_call>` tags.
    Qwen,
    /// Blocks that a content token opens and `<|end_message|>` closes.
    Inkling,
}

/// Whether the output had a block of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// None, or an empty one: there is nothing to show.
    None,
    /// The output ended inside of it.
    Open,
    /// The model went on to its answer.
    Closed,
}

/// A tool call that the model wrote in full.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Name of the function.
    pub name: String,
    /// Its arguments, an object wherever the model kept to its format.
    pub arguments: Value,
}

/// Text to append to what is shown; what was handed out is never taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// More of the reasoning.
    pub reasoning: String,
    /// More of the answer.
    pub answer: String,
}

/// A run of bytes of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Bytes of the output before it.
    pub at: usize,
    /// Its own.
    pub bytes: usize,
}

/// Where the text that was shown stands in the output, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Of the reasoning.
    pub reasoning: Vec<Stretch>,
    /// Of the answer.
    pub answer: Vec<Stretch>,
}

/// The whole output, split.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was still held back: the last thing to show.
    pub last: Delta,
    /// Whether there is reasoning to show.
    pub thinking: Thinking,
    /// All of the reasoning, without the line breaks before it and the white space after it.
    pub reasoning: String,
    /// All of the answer, trimmed in the same way.
    pub answer: String,
    /// Complete tool calls in the order they were written.
    pub tool_calls: Vec<ToolCall>,
    /// The length limit was reached and the model has only been thinking.
    pub thinking_used_budget: bool,
}

/// Splits one reply. Text may come in any pieces; the result does not depend on them.
///
/// The text must hold the names of special tokens such as `<think>`, but not the end token.
#[derive(Debug)]
pub struct ThinkingParser {
    state: State,
    parts: Parts,
}

#[derive(Debug)]
enum State {
    Plain,
    Qwen(qwen::Parser),
    Inkling(blocks::Parser),
}

/// What a format's parser writes to.
#[derive(Debug)]
struct Parts {
    /// Bytes of the output up to now.
    seen: usize,
    reasoning: Channel,
    answer: Channel,
    tool_calls: Vec<ToolCall>,
}

impl OutputFormat {
    /// The format that the vocabulary speaks of.
    #[must_use]
    pub fn of(tokenizer: &Tokenizer) -> OutputFormat {
        let has = |token: &&str| tokenizer.token_id(token).is_some();
        if ["<|content_text|>", "<|content_thinking|>", "<|end_message|>"]
            .iter()
            .all(has)
        {
            OutputFormat::Inkling
        } else if ["<think>", "</think>"].iter().all(has) {
            OutputFormat::Qwen
        } else {
            OutputFormat::Plain
        }
    }
}

impl OutputFormat {
    /// What ends a block of reasoning in the model's place, which `has_begun` if there is any of it. `None` where the format
    /// has no such blocks.
    #[must_use]
    pub fn end_of_thinking(self, has_begun: bool) -> Option<&'static str> {
        match self {
            OutputFormat::Plain => None,
            OutputFormat::Qwen if has_begun => Some(qwen::END_OF_THINKING),
            OutputFormat::Qwen => Some(qwen::END_OF_NO_THINKING),
            OutputFormat::Inkling => Some(blocks::END_OF_THINKING),
        }
    }
}

impl ThinkingParser {
    /// A parser for the reply to `prompt`, of which the end decides whether the output starts inside of a block.
    ///
    /// `tools` are the declared tools as given to the chat template; their schemas say what arguments are.
    #[must_use]
    pub fn new(format: OutputFormat, prompt: &str, tools: Option<&Value>) -> ThinkingParser {
        let state = match format {
            OutputFormat::Plain => State::Plain,
            OutputFormat::Qwen => State::Qwen(qwen::Parser::new(prompt, calls::schemas(tools))),
            OutputFormat::Inkling => State::Inkling(blocks::Parser::new(prompt)),
        };
        let channel = || {
            if format == OutputFormat::Plain {
                Channel::exact()
            } else {
                Channel::trimmed()
            }
        };
        ThinkingParser {
            state,
            parts: Parts {
                seen: 0,
                reasoning: channel(),
                answer: channel(),
                tool_calls: Vec::new(),
            },
        }
    }

    /// Takes more output; what may be shown now.
    pub fn push(&mut self, text: &str) -> Delta {
        let before = self.parts.seen;
        self.parts.seen += text.len();
        match &mut self.state {
            State::Plain => self.parts.answer.push(text, before),
            State::Qwen(parser) => parser.push(text, &mut self.parts),
            State::Inkling(parser) => parser.push(text, &mut self.parts),
        }
        self.parts.take()
    }

    /// Where what was shown since the last call stands in the output.
    pub fn take_sources(&mut self) -> Sources {
        self.parts.take_sources()
    }

    /// Whether what comes next belongs to a block of reasoning.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        match &self.state {
            State::Plain => false,
            State::Qwen(parser) => parser.is_thinking(),
            State::Inkling(parser) => parser.is_thinking(),
        }
    }

    /// Ends the output; `reached_limit` when the number of tokens did.
    #[must_use]
    pub fn finish(self, reached_limit: bool) -> Outcome {
        self.finish_with_sources(reached_limit).0
    }

    /// The same, and where what was shown since they were last asked for stands in the output.
    #[must_use]
    pub fn finish_with_sources(mut self, reached_limit: bool) -> (Outcome, Sources) {
        let is_open = match self.state {
            State::Plain => false,
            State::Qwen(parser) => parser.finish(&mut self.parts),
            State::Inkling(parser) => parser.finish(&mut self.parts),
        };
        let last = self.parts.take();
        let sources = self.parts.take_sources();
        let Parts {
            reasoning,
            answer,
            tool_calls,
            ..
        } = self.parts;
        let (reasoning, answer) = (reasoning.into_text(), answer.into_text());
        let is_blank = |text: &str| text.trim().is_empty();
        let outcome = Outcome {
            thinking: match is_open {
                true => Thinking::Open,
                false if is_blank(&reasoning) => Thinking::None,
                false => Thinking::Closed,
            },
            thinking_used_budget: reached_limit && is_blank(&answer) && tool_calls.is_empty() && !is_blank(&reasoning),
            last,
            reasoning,
            answer,
            tool_calls,
        };
        (outcome, sources)
    }
}

impl Parts {
    /// Takes the first `bytes` of `pending`, the end of the output, as reasoning.
    fn think(&mut self, pending: &str, bytes: usize) {
        self.reasoning.push(&pending[..bytes], self.seen - pending.len());
    }

    /// The same as a part of the answer.
    fn say(&mut self, pending: &str, bytes: usize) {
        self.answer.push(&pending[..bytes], self.seen - pending.len());
    }

    fn take_sources(&mut self) -> Sources {
        Sources {
            reasoning: self.reasoning.take_sources(),
            answer: self.answer.take_sources(),
        }
    }

    fn take(&mut self) -> Delta {
        Delta {
            reasoning: self.reasoning.take(),
            answer: self.answer.take(),
        }
    }
}

/// Bytes at the end of `text` with which one of `tags` begins.
fn held_len(text: &str, tags: &[&str]) -> usize {
    let longest = tags.iter().map(|tag| tag.len()).max().unwrap_or(0);
    let start = text.len().saturating_sub(longest);
    (start..text.len())
        .find(|&at| text.is_char_boundary(at) && tags.iter().any(|tag| tag.starts_with(&text[at..])))
        .map_or(0, |at| text.len() - at)
}

/// Declared parameters by function name.
type Schemas = Map<String, Value>;
