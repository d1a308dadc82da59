//! The checkpoint's own chat template, rendered as transformers renders it.

mod clock;
mod environment;
mod filters;
mod locate;
mod methods;
mod operators;
mod python;
mod rewrite;
#[cfg(test)]
mod tests;
mod tojson;

use std::path::Path;

use serde_json::{Map, Value};

use super::LocalTime;
use crate::{Error, Result};

/// Chat templates of one checkpoint: one text, or several with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    texts: Texts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Texts {
    One(String),
    Named(Vec<(String, String)>),
}

/// What a prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    /// The conversation: a list of objects with `role`, `content` and so on, in order.
    pub messages: &'a Value,
    /// Declared tools, a list; `None` when there are none (the template then sees null).
    pub tools: Option<&'a Value>,
    /// Whether the prompt ends with the opening of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Further variables by name (`enable_thinking`, `bos_token`, ...). What is not here is undefined in the template.
    pub vars: &'a Map<String, Value>,
    /// The time `strftime_now` tells; `None` is the clock's.
    pub now: Option<LocalTime>,
}

impl ChatTemplate {
    /// Takes the template of the checkpoint in `dir`, or `None` where it brings none.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that cannot be read, [`Error::ConfigSyntax`] for one that is not the JSON it should be.
    /// The template's own syntax is not looked at before it is rendered.
    pub fn load(dir: &Path) -> Result<Option<ChatTemplate>> {
        Ok(locate::texts(dir)?.map(|texts| ChatTemplate { texts }))
    }

    /// A single template from its text.
    #[must_use]
    pub fn from_source(source: impl Into<String>) -> ChatTemplate {
        ChatTemplate {
            texts: Texts::One(source.into()),
        }
    }

    /// Renders the prompt. Tool arguments that are JSON objects written as text are given to the template as objects.
    ///
    /// # Errors
    /// [`Error::TemplateRaised`] with the template's own words, [`Error::TemplateSyntax`], [`Error::TemplateRuntime`],
    /// [`Error::TemplateLimit`] after a bounded time and with bounded memory, [`Error::TemplateMissing`] when no template
    /// is meant for this input.
    pub fn render(&self, input: RenderInput<'_>) -> Result<String> {
        environment::render(self.choose(input.tools.is_some())?, &input)
    }

    fn choose(&self, has_tools: bool) -> Result<&str> {
        let named = match &self.texts {
            Texts::One(text) => return Ok(text),
            Texts::Named(named) => named,
        };
        let get = |wanted: &str| {
            named
                .iter()
                .rev()
                .find(|(name, _)| name == wanted)
                .map(|(_, text)| text.as_str())
        };
        if has_tools && let Some(text) = get("tool_use") {
            return Ok(text);
        }
        get("default").ok_or(Error::TemplateMissing)
    }
}
