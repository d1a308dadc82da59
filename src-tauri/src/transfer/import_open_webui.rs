//! Open WebUI's export: a list of chats, each a tree of messages by id, or in older ones a list of messages. Thinking and
//! the use of tools are folded into the text as HTML.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::import::{followers, millis, newest_below, with_names};
use super::{Conversation, Entry};
use crate::ipc::{ChatConfig, Role};

/// Whether it is a chat in one of the forms.
pub(super) fn is_chat(item: &Value) -> bool {
    let chat = item.get("chat").unwrap_or(item);
    chat.pointer("/history/messages").is_some_and(Value::is_object)
        || chat
            .get("messages")
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().any(|message| message.get("role").is_some()))
}

/// Messages by id.
type Nodes = Map<String, Value>;

/// The messages, and the id of the one that is shown last.
fn tree(chat: &Value) -> Option<(Cow<'_, Nodes>, Option<String>)> {
    let nodes = chat.pointer("/history/messages").and_then(Value::as_object);
    if let Some(nodes) = nodes.filter(|nodes| !nodes.is_empty()) {
        let current = chat.pointer("/history/currentId").and_then(Value::as_str);
        return Some((Cow::Borrowed(nodes), current.map(str::to_owned)));
    }
    // Each follows the one before it.
    let mut nodes = Map::new();
    let mut last: Option<String> = None;
    for (at, message) in chat.get("messages")?.as_array()?.iter().enumerate() {
        let Value::Object(mut node) = message.clone() else {
            continue;
        };
        let id = at.to_string();
        node.insert("parentId".to_owned(), Value::from(last.replace(id.clone())));
        node.remove("childrenIds");
        nodes.insert(id, Value::Object(node));
    }
    Some((Cow::Owned(nodes), last))
}

pub(super) fn read(item: Value) -> Result<Conversation, String> {
    let chat = item.get("chat").unwrap_or(&item);
    let (nodes, current) = tree(chat).ok_or("it has no messages")?;
    let nodes = nodes.as_ref();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let created_at = millis(item.get("created_at").or_else(|| chat.get("timestamp"))).unwrap_or_default();

    let mut messages: Vec<Entry> = Vec::new();
    let mut places: Vec<(&str, usize)> = Vec::new();
    let mut system_prompt = text(chat.pointer("/params/system").or_else(|| chat.get("system")));
    let mut open: Vec<(&String, Option<usize>)> = nodes
        .iter()
        .filter(|(_, node)| parent(node, nodes).is_none())
        .map(|(id, _)| (id, None))
        .collect();
    open.reverse();
    let mut seen = HashSet::new();
    while let Some((id, before)) = open.pop() {
        let Some(node) = nodes.get(id).filter(|_| seen.insert(id)) else {
            continue;
        };
        let mut place = before;
        let content = said(node);
        let role = match node.get("role").and_then(Value::as_str) {
            Some("user") => Some(Role::User),
            Some("assistant") => Some(Role::Assistant),
            Some("system") => {
                if system_prompt.is_empty() {
                    system_prompt.clone_from(&content);
                }
                None
            }
            _ => None,
        };
        if let Some(role) = role {
            let (reasoning, content) = unfolded(&content);
            let time = millis(node.get("timestamp")).unwrap_or(created_at);
            messages.push(Entry {
                reasoning,
                ..Entry::new(before, role, content, time)
            });
            place = Some(messages.len() - 1);
        }
        if let Some(place) = place {
            places.push((id, place));
        }
        for child in followers(nodes, id, node.get("childrenIds"), "parentId")
            .into_iter()
            .rev()
        {
            open.push((child, place));
        }
    }
    let shown = places
        .iter()
        .find(|(id, _)| Some(*id) == current.as_deref())
        .map(|(_, place)| newest_below(&messages, *place));
    let tags = item.pointer("/meta/tags").or_else(|| chat.get("tags"));
    Ok(Conversation {
        title: text(item.get("title").or_else(|| chat.get("title"))),
        created_at,
        updated_at: millis(item.get("updated_at")).unwrap_or(created_at),
        pinned: item.get("pinned") == Some(&Value::Bool(true)),
        tags: tags
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|tag| tag.as_str().or_else(|| tag.get("name")?.as_str()))
            .map(str::to_owned)
            .collect(),
        config: ChatConfig {
            system_prompt,
            options: None,
        },
        messages,
        shown,
    })
}

fn parent<'a>(node: &'a Value, nodes: &Nodes) -> Option<&'a str> {
    let parent = node.get("parentId").and_then(Value::as_str)?;
    nodes.contains_key(parent).then_some(parent)
}

/// The text of a message, which may come in parts, with the names of its files.
fn said(node: &Value) -> String {
    let content = node.get("content");
    let text = match content.and_then(Value::as_array) {
        Some(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n\n")
        }
        None => content.and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let files = node.get("files").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<String> = files
        .filter_map(|file| match file.get("type").and_then(Value::as_str) {
            Some("image") => Some("image".to_owned()),
            _ => Some(format!("file: {}", file.get("name")?.as_str()?)),
        })
        .collect();
    with_names(text, &names)
}

/// Thinking and answer of a text with `<details type="reasoning"><summary>…</summary> > thinking </details>` in it. What
/// tools were asked is left out.
fn unfolded(content: &str) -> (Option<String>, String) {
    const OPEN: &str = "<details type=\"";
    let mut thoughts: Vec<String> = Vec::new();
    let mut answer = String::new();
    let mut rest = content;
    while let Some((before, block)) = rest.split_once(OPEN) {
        // One that is not closed, or of another kind, is what the model wrote.
        let Some((kind, inside, after)) = folded(block) else {
            break;
        };
        answer.push_str(before);
        match kind {
            "reasoning" => thoughts.push(unquoted(inside)),
            "tool_calls" => {}
            _ => answer.push_str(inside),
        }
        rest = after.strip_prefix('\n').unwrap_or(after);
    }
    if rest.len() == content.len() {
        return (None, content.to_owned());
    }
    answer.push_str(rest);
    thoughts.retain(|thought| !thought.is_empty());
    let reasoning = (!thoughts.is_empty()).then(|| thoughts.join("\n\n"));
    (reasoning, answer.trim().to_owned())
}

/// The kind, the inside and what comes after a block that begins with its kind.
fn folded(block: &str) -> Option<(&str, &str, &str)> {
    let (kind, tag) = block.split_once('"')?;
    if !["reasoning", "tool_calls", "code_interpreter"].contains(&kind) {
        return None;
    }
    let (_, inside) = tag.split_once('>')?;
    let (inside, after) = inside.split_once("</details>")?;
    let inside = inside.split_once("</summary>").map_or(inside, |(_, rest)| rest);
    Some((kind, inside, after))
}

/// Newer versions escape what they quote.
fn unquoted(inside: &str) -> String {
    let escaped = inside.trim_start().starts_with("&gt;");
    let lines: Vec<String> = inside
        .trim()
        .lines()
        .map(|line| {
            let plain = if escaped { unescaped(line) } else { line.to_owned() };
            match plain.strip_prefix('>') {
                Some(quoted) => quoted.strip_prefix(' ').unwrap_or(quoted).to_owned(),
                None => plain,
            }
        })
        .collect();
    lines.join("\n")
}

fn unescaped(text: &str) -> String {
    // The sign that begins them comes last: what it makes is not read again.
    text.replace("&gt;", ">")
        .replace("&lt;", "<")
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}
