//! Text in and out of a model: chat template, tokenizer, streaming text, stop strings, thinking and tool calls, end tokens.

mod defaults;
mod end_tokens;
mod json;
mod stops;
mod stream;
mod template;
mod thinking;
mod tokenizer;

pub use chrono::NaiveDateTime as LocalTime;
pub use defaults::GenerationDefaults;
pub use end_tokens::EndTokens;
pub use stream::TextStream;
pub use template::{ChatTemplate, RenderInput};
pub use thinking::{Delta, Outcome, OutputFormat, Sources, Stretch, Thinking, ThinkingParser, ToolCall};
pub use tokenizer::Tokenizer;
