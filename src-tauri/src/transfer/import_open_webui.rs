//! Open WebUI's export: a list of chats, each a tree of messages by id. Thinking is folded into the text as HTML.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::import::{millis, newest_below};
use super::{Conversation, Entry};
use crate::ipc::{ChatConfig, Role};

pub(super) fn read(item: &Value) -> Result<Conversation, String> {
    let chat = item.get("chat").ok_or("it has no chat")?;
    let nodes = chat
        .pointer("/history/messages")
        .and_then(Value::as_object)
        .ok_or("it has no messages")?;
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
        let content = text(node.get("content"));
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
        let children = node.get("childrenIds").and_then(Value::as_array).into_iter().flatten();
        for child in children.filter_map(Value::as_str).rev() {
            if let Some((child, _)) = nodes.get_key_value(child) {
                open.push((child, place));
            }
        }
    }
    let current = chat.pointer("/history/currentId").and_then(Value::as_str);
    let shown = places
        .iter()
        .find(|(id, _)| Some(*id) == current)
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

fn parent<'a>(node: &'a Value, nodes: &Map<String, Value>) -> Option<&'a str> {
    let parent = node.get("parentId").and_then(Value::as_str)?;
    nodes.contains_key(parent).then_some(parent)
}

/// Thinking and answer of `<details type="reasoning"><summary>…</summary> > thinking </details> answer`.
fn unfolded(content: &str) -> (Option<String>, String) {
    let start = content.trim_start();
    let folded = start
        .strip_prefix("<details type=\"reasoning\"")
        .and_then(|rest| rest.split_once('>'))
        .and_then(|(_, rest)| rest.split_once("</details>"));
    let Some((inside, answer)) = folded else {
        return (None, content.to_owned());
    };
    let inside = inside.split_once("</summary>").map_or(inside, |(_, rest)| rest);
    let lines: Vec<&str> = inside
        .trim()
        .lines()
        .map(|line| {
            line.strip_prefix("&gt; ")
                .or_else(|| line.strip_prefix("> "))
                .unwrap_or(line)
        })
        .collect();
    let reasoning = lines.join("\n");
    (
        (!reasoning.is_empty()).then_some(reasoning),
        answer.trim_start().to_owned(),
    )
}
