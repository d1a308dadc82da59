use serde_json::Value;

use super::export::FORMAT;
use super::{Conversation, Entry, import_chatgpt, import_open_webui};
use crate::ipc::MessageStatus;

/// The chats of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Those that could be read.
    pub chats: Vec<Conversation>,
    /// One sentence for each that could not.
    pub left_out: Vec<String>,
}

/// Reads one chat of a kind of file.
type Reader = fn(&Value) -> Result<Conversation, String>;

/// Reads the chats of a file that this app, ChatGPT or Open WebUI wrote.
///
/// # Errors
/// Why there are none.
pub fn import(text: &str) -> Result<Found, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let (items, read): (Vec<Value>, Reader) = match file {
        Value::Object(mut object) if object.get("format").is_some_and(|format| format == FORMAT) => {
            let Some(Value::Array(chats)) = object.remove("chats") else {
                return Err("it has no list of chats".to_owned());
            };
            (chats, own)
        }
        file => {
            let items = match file {
                Value::Array(items) => items,
                other => vec![other],
            };
            if items.iter().any(|item| item.get("mapping").is_some()) {
                (items, import_chatgpt::read)
            } else if items.iter().any(|item| item.pointer("/chat/history").is_some()) {
                (items, import_open_webui::read)
            } else {
                return Err("it is in a form that is not known here".to_owned());
            }
        }
    };
    let mut found = Found::default();
    for (at, item) in items.iter().enumerate() {
        match read(item).and_then(checked) {
            Ok(chat) => found.chats.push(chat),
            Err(why) => {
                let title = item.get("title").and_then(Value::as_str).unwrap_or_default().trim();
                let name = if title.is_empty() {
                    format!("chat {}", at + 1)
                } else {
                    format!("“{title}”")
                };
                found.left_out.push(format!("{name}: {why}"));
            }
        }
    }
    Ok(found)
}

fn own(item: &Value) -> Result<Conversation, String> {
    serde_json::from_value(item.clone()).map_err(|error| error.to_string())
}

/// Every message comes after the one that it follows, and none is being written.
fn checked(mut chat: Conversation) -> Result<Conversation, String> {
    if chat.messages.is_empty() {
        return Err("it has no messages".to_owned());
    }
    for (at, entry) in chat.messages.iter_mut().enumerate() {
        if entry.parent.is_some_and(|parent| parent >= at) {
            return Err(format!("message {} does not follow the one it names", at + 1));
        }
        if entry.status == MessageStatus::Streaming {
            entry.status = MessageStatus::Interrupted;
        }
    }
    let last = chat.messages.len() - 1;
    chat.shown = Some(chat.shown.filter(|&shown| shown <= last).unwrap_or(last));
    if chat.title.trim().is_empty() {
        let first = chat.branch().first().map(|entry| crate::turn::title_of(&entry.content));
        chat.title = first
            .filter(|title| !title.is_empty())
            .unwrap_or_else(|| "…".to_owned());
    }
    Ok(chat)
}

/// Seconds as others write them, in milliseconds.
pub(super) fn millis(seconds: Option<&Value>) -> Option<f64> {
    let number = seconds?.as_f64()?;
    // Some versions write milliseconds or nanoseconds; seconds stay below this for ten thousand years.
    let seconds = match number {
        n if n > 1e17 => n / 1e9,
        n if n > 3e11 => n / 1e3,
        n => n,
    };
    Some((seconds * 1000.0).round())
}

/// What is shown ends with the newest message below this one.
pub(super) fn newest_below(messages: &[Entry], from: usize) -> usize {
    let mut leaf = from;
    // Each follows what it answers, so this comes to an end.
    while let Some(at) = messages
        .iter()
        .rposition(|entry| entry.parent == Some(leaf))
        .filter(|at| *at > leaf)
    {
        leaf = at;
    }
    leaf
}
