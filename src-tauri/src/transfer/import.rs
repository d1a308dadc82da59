use serde_json::{Map, Value};

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
type Reader = fn(Value) -> Result<Conversation, String>;

/// The text of a file.
///
/// # Errors
/// What it is instead, and what to do.
pub fn decode(bytes: &[u8]) -> Result<String, String> {
    let wide = |little: bool, bytes: &[u8]| {
        let (pairs, odd) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| match little {
            true => u16::from_le_bytes(*pair),
            false => u16::from_be_bytes(*pair),
        });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok()
            .filter(|_| odd.is_empty())
            .ok_or_else(|| "its text is damaged: export or download it again".to_owned())
    };
    match bytes {
        [b'P', b'K', 3, 4, ..] => Err("it is a ZIP archive: unpack it, and choose conversations.json in it".to_owned()),
        [0xff, 0xfe, rest @ ..] => wide(true, rest),
        [0xfe, 0xff, rest @ ..] => wide(false, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => {
            let text = std::str::from_utf8(rest)
                .map_err(|error| format!("byte {} is not text: export or download it again", error.valid_up_to()))?;
            if text.trim_start().starts_with('<') {
                return Err("it is a page: choose the JSON file that came with it".to_owned());
            }
            Ok(text.to_owned())
        }
    }
}

/// Reads the chats of a file that this app, ChatGPT or Open WebUI wrote.
///
/// # Errors
/// Why there are none, and what to do.
pub fn import(text: &str) -> Result<Found, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| match error.classify() {
        _ if text.trim().is_empty() => "it is empty".to_owned(),
        serde_json::error::Category::Eof => {
            "it breaks off before its end: export, download or copy it again".to_owned()
        }
        _ => format!("it is not JSON: {error}"),
    })?;
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
            } else if items.iter().any(import_open_webui::is_chat) {
                (items, import_open_webui::read)
            } else {
                return Err("it is in a form that is not known here".to_owned());
            }
        }
    };
    let mut found = Found::default();
    for (at, item) in items.into_iter().enumerate() {
        let title = item.get("title").and_then(Value::as_str).unwrap_or_default().trim();
        let name = if title.is_empty() {
            format!("chat {}", at + 1)
        } else {
            format!("“{title}”")
        };
        match read(item).and_then(checked) {
            Ok(chat) => found.chats.push(chat),
            Err(why) => found.left_out.push(format!("{name}: {why}")),
        }
    }
    Ok(found)
}

fn own(item: Value) -> Result<Conversation, String> {
    serde_json::from_value(item).map_err(|error| error.to_string())
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

/// A message with the names of what went with it and is not in the file.
pub(super) fn with_names(content: String, names: &[String]) -> String {
    let listed = names.iter().map(|name| format!("[{name}]"));
    let parts = listed.chain((!content.trim().is_empty()).then_some(content));
    parts.collect::<Vec<_>>().join("\n\n")
}

/// The nodes that follow one: those it names, then those that name it.
pub(super) fn followers<'a>(
    nodes: &'a Map<String, Value>,
    id: &str,
    named: Option<&Value>,
    parent: &str,
) -> Vec<&'a String> {
    let named = named.and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<&String> = named
        .filter_map(|child| nodes.get_key_value(child.as_str()?))
        .map(|(id, _)| id)
        .collect();
    if found.is_empty() {
        let names_it = |node: &Value| node.get(parent).and_then(Value::as_str) == Some(id);
        found.extend(nodes.iter().filter(|(_, node)| names_it(node)).map(|(id, _)| id));
    }
    found
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
