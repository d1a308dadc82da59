//! What to generate from, as the command line gives it.

use std::io::Read;
use std::path::{Path, PathBuf};

use models::{Message, Prompt, Role};
use serde_json::Value;

use crate::error::Error;

/// Exactly one of them.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Source {
    /// The text.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// A file with the text; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// A JSON file: a list of {role, content}, or an object with `messages` (and `tools`).
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    messages: Option<PathBuf>,
    /// Token ids, used as they are; needs no tokenizer.
    #[arg(long, value_name = "IDS", value_delimiter = ',', allow_hyphen_values = true)]
    prompt_ids: Option<Vec<u32>>,
}

impl Source {
    /// Reads it. `raw` takes text as it is, without the chat template.
    pub(super) fn read(&self, raw: bool) -> Result<Prompt, Error> {
        if let Some(ids) = &self.prompt_ids {
            return Ok(Prompt::Ids(ids.clone()));
        }
        if let Some(path) = &self.messages {
            return conversation(path);
        }
        let text = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => read(path)?,
            // The group is required: clap has refused this already.
            (None, None) => String::new(),
        };
        Ok(if raw {
            Prompt::Raw(text)
        } else {
            Prompt::Messages(vec![Message {
                role: Role::User,
                content: text,
                reasoning: None,
            }])
        })
    }
}

fn conversation(path: &Path) -> Result<Prompt, Error> {
    let value: Value =
        serde_json::from_str(&read(path)?).map_err(|error| input(path, format!("it is not JSON: {error}")))?;
    let messages = if value.is_array() { &value } else { &value["messages"] };
    let whole = messages.as_array().is_some_and(|list| {
        !list.is_empty()
            && list
                .iter()
                .all(|message| message.get("role").is_some_and(Value::is_string))
    });
    if whole {
        Ok(Prompt::Json(value))
    } else {
        Err(input(
            path,
            "it must be a list of messages with roles, or an object with such a list as `messages`".to_owned(),
        ))
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| input(path, error.to_string()))
}

fn input(path: &Path, message: String) -> Error {
    Error::Input {
        path: path.display().to_string(),
        message,
    }
}
