//! ChatGPT's `conversations.json`: a list of chats, each a tree of nodes by id.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::import::{followers, millis, newest_below, with_names};
use super::{Conversation, Entry};
use crate::ipc::Role;

pub(super) fn read(item: Value) -> Result<Conversation, String> {
    let nodes = item
        .get("mapping")
        .and_then(Value::as_object)
        .ok_or("it has no messages")?;
    let created_at = millis(item.get("create_time")).unwrap_or_default();
    let mut tree = Tree::default();
    // A node without a parent that is there begins a tree.
    let parent_of = |node: &Value| node.get("parent").and_then(Value::as_str).map(str::to_owned);
    let mut open: Vec<(&String, Option<usize>, Option<String>)> = nodes
        .iter()
        .filter(|(_, node)| parent_of(node).is_none_or(|parent| !nodes.contains_key(&parent)))
        .map(|(id, _)| (id, None, None))
        .collect();
    let mut seen = HashSet::new();
    while let Some((id, parent, thoughts)) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let (place, thoughts) = tree.take(id, node, parent, thoughts, created_at);
        // Taken from the end: the first child comes out first.
        for child in followers(nodes, id, node.get("children"), "parent").into_iter().rev() {
            open.push((child, place, thoughts.clone()));
        }
    }
    let current = item.get("current_node").and_then(Value::as_str);
    let shown = current
        .and_then(|id| tree.places.get(id).copied().flatten())
        .map(|place| newest_below(&tree.messages, place));
    Ok(Conversation {
        title: item.get("title").and_then(Value::as_str).unwrap_or_default().to_owned(),
        created_at,
        updated_at: millis(item.get("update_time")).unwrap_or(created_at),
        shown,
        messages: tree.messages,
        ..Conversation::default()
    })
}

#[derive(Default)]
struct Tree {
    messages: Vec<Entry>,
    /// Where each node went: itself, or what it was left out after.
    places: HashMap<String, Option<usize>>,
    followed: HashSet<usize>,
}

impl Tree {
    /// Takes a node that follows `parent`; its place, and thinking that belongs to the reply after it.
    fn take(
        &mut self,
        id: &str,
        node: &Value,
        parent: Option<usize>,
        thoughts: Option<String>,
        created_at: f64,
    ) -> (Option<usize>, Option<String>) {
        let message = node.get("message").filter(|message| !message.is_null());
        if let Some(thought) = message.and_then(thinking) {
            self.places.insert(id.to_owned(), parent);
            let all = thoughts.map_or(thought.clone(), |before| format!("{before}\n\n{thought}"));
            return (parent, Some(all));
        }
        let Some((role, content)) = message.and_then(said) else {
            // The root, tools and what only the service reads.
            self.places.insert(id.to_owned(), parent);
            return (parent, thoughts);
        };
        let time = message
            .and_then(|message| millis(message.get("create_time")))
            .unwrap_or(created_at);
        let reply_before = parent.filter(|&at| role == Role::Assistant && self.is_reply(at));
        let place = match (reply_before, parent) {
            // A reply that used tools comes in parts.
            (Some(at), _) if !self.followed.contains(&at) => {
                if let Some(entry) = self.messages.get_mut(at) {
                    entry.content = format!("{}\n\n{content}", entry.content);
                }
                at
            }
            (Some(at), _) => {
                let before = self.messages.get(at).and_then(|entry| entry.parent);
                self.push(Entry::new(before, role, content, time))
            }
            (None, parent) => {
                self.followed.extend(parent);
                self.push(Entry::new(parent, role, content, time))
            }
        };
        if role == Role::Assistant
            && let Some(entry) = self.messages.get_mut(place)
            && thoughts.is_some()
        {
            entry.reasoning = thoughts;
        }
        self.places.insert(id.to_owned(), Some(place));
        (Some(place), None)
    }

    fn is_reply(&self, at: usize) -> bool {
        self.messages.get(at).is_some_and(|entry| entry.role == Role::Assistant)
    }

    fn push(&mut self, entry: Entry) -> usize {
        self.messages.push(entry);
        self.messages.len() - 1
    }
}

fn said(message: &Value) -> Option<(Role, String)> {
    let role = match message.pointer("/author/role")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    // Instructions and tool calls are messages to others, but for what the person saw beside the chat.
    let hidden = message.pointer("/metadata/is_visually_hidden_from_conversation") == Some(&Value::Bool(true));
    if hidden {
        return None;
    }
    let content = message.get("content")?;
    let text = match message.get("recipient").and_then(Value::as_str).unwrap_or("all") {
        "all" => text_of(content)?,
        "canmore.create_textdoc" => document(content)?,
        _ => return None,
    };
    let attached = message.pointer("/metadata/attachments").and_then(Value::as_array);
    let names: Vec<String> = attached
        .into_iter()
        .flatten()
        .filter_map(|file| Some(format!("file: {}", file.get("name")?.as_str()?)))
        .collect();
    let text = with_names(text, &names);
    (!text.trim().is_empty()).then_some((role, text))
}

fn text_of(content: &Value) -> Option<String> {
    match content.get("content_type").and_then(Value::as_str).unwrap_or("text") {
        "text" | "multimodal_text" => {
            let parts = content.get("parts").and_then(Value::as_array)?;
            let texts: Vec<String> = parts.iter().filter_map(part).collect();
            Some(without_references(&texts.join("\n\n")))
        }
        "code" => {
            let language = content
                .get("language")
                .and_then(Value::as_str)
                .filter(|name| *name != "unknown");
            Some(fenced(language.unwrap_or_default(), content.get("text")?.as_str()?))
        }
        _ => None,
    }
}

fn part(part: &Value) -> Option<String> {
    if let Some(text) = part.as_str().or_else(|| part.get("text")?.as_str()) {
        return Some(text.to_owned());
    }
    let kind = part.get("content_type")?.as_str()?;
    // What was said aloud comes as a transcript of its own.
    (kind == "image_asset_pointer").then(|| "[image]".to_owned())
}

/// A document of the canvas, as its first version was.
fn document(content: &Value) -> Option<String> {
    let call = content.get("text").or_else(|| content.pointer("/parts/0"))?.as_str()?;
    let call: Value = serde_json::from_str(call).ok()?;
    let text = call.get("content")?.as_str()?;
    match call
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .strip_prefix("code/")
    {
        Some(language) => Some(fenced(language, text)),
        None => Some(text.to_owned()),
    }
}

fn fenced(language: &str, code: &str) -> String {
    let mut fence = "```".to_owned();
    while code.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{code}\n{fence}")
}

/// Citations are signs of the private use area around the names of pages that are not in the file.
fn without_references(text: &str) -> String {
    const OPEN: char = '\u{e200}';
    const CLOSE: char = '\u{e201}';
    let mut pieces = text.split(OPEN);
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        kept.push_str(piece.split_once(CLOSE).map_or(piece, |(_, after)| after));
    }
    kept
}

fn thinking(message: &Value) -> Option<String> {
    let thoughts = message.pointer("/content/thoughts")?.as_array()?;
    let texts: Vec<&str> = thoughts
        .iter()
        .filter_map(|thought| thought.get("content")?.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
