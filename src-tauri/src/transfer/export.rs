use std::fmt::Write;

use serde_json::json;

use super::{Conversation, Entry};
use crate::ipc::{ExportFormat, Role};
use crate::json::whole;

/// What a file of this app calls itself.
pub(super) const FORMAT: &str = "slipstream-chats";
const VERSION: u32 = 1;
/// Most characters of a file's name.
const LONGEST_NAME: usize = 60;

/// The text of a file with these chats.
#[must_use]
pub fn export(chats: &[Conversation], format: ExportFormat) -> String {
    match format {
        ExportFormat::Markdown => chats.iter().map(markdown).collect::<Vec<_>>().join("\n\n---\n\n"),
        ExportFormat::Json => {
            let file = whole(&json!({ "format": FORMAT, "version": VERSION, "chats": chats }));
            format!("{file:#}\n")
        }
        ExportFormat::Html => page(chats),
    }
}

/// A name for the file, with the ending of its format.
#[must_use]
pub fn file_name(title: &str, format: ExportFormat) -> String {
    let ending = match format {
        ExportFormat::Markdown => "md",
        ExportFormat::Json => "json",
        ExportFormat::Html => "html",
    };
    // What no system forbids in a name.
    let plain: String = title
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.,()'".contains(c) {
                c
            } else {
                ' '
            }
        })
        .collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let name: String = words.trim_matches('.').chars().take(LONGEST_NAME).collect();
    let name = name.trim();
    format!("{}.{ending}", if name.is_empty() { "chat" } else { name })
}

fn speaker(entry: &Entry) -> &str {
    match entry.role {
        Role::System => "Instructions",
        Role::User => "You",
        Role::Assistant => entry.run.as_ref().map_or("Model", |run| run.model.as_str()),
    }
}

fn markdown(chat: &Conversation) -> String {
    let mut text = format!("# {}\n", one_line(&chat.title));
    if !chat.config.system_prompt.is_empty() {
        let _ = write!(text, "\n## Instructions\n\n{}\n", chat.config.system_prompt.trim_end());
    }
    for entry in chat.branch() {
        let _ = write!(text, "\n## {}\n", one_line(speaker(entry)));
        if let Some(reasoning) = &entry.reasoning {
            let quoted: Vec<String> = reasoning.trim().lines().map(|line| format!("> {line}")).collect();
            let _ = write!(text, "\n{}\n", quoted.join("\n"));
        }
        let _ = write!(text, "\n{}\n", entry.content.trim_end());
    }
    text
}

fn page(chats: &[Conversation]) -> String {
    let title = match chats {
        [one] => one.title.as_str(),
        _ => "Chats",
    };
    let mut body = String::new();
    for chat in chats {
        let _ = writeln!(body, "<section>\n<h1>{}</h1>", escaped(&chat.title));
        if !chat.config.system_prompt.is_empty() {
            let _ = writeln!(
                body,
                "<article class=\"system\"><h2>Instructions</h2><div>{}</div></article>",
                escaped(&chat.config.system_prompt)
            );
        }
        for entry in chat.branch() {
            let class = match entry.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            let _ = write!(body, "<article class=\"{class}\"><h2>{}</h2>", escaped(speaker(entry)));
            if let Some(reasoning) = &entry.reasoning {
                let _ = write!(
                    body,
                    "<details><summary>Thinking</summary><div>{}</div></details>",
                    escaped(reasoning.trim())
                );
            }
            let _ = writeln!(body, "<div>{}</div></article>", escaped(&entry.content));
        }
        body.push_str("</section>\n");
    }
    format!(
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n",
        escaped(title)
    )
}

const STYLE: &str = "\n:root { color-scheme: light dark; }\nbody { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; \
                     font: 16px/1.55 system-ui, sans-serif; }\nh2 { font-size: 0.85rem; opacity: 0.7; }\n\
                     article div { white-space: pre-wrap; overflow-wrap: anywhere; }\n\
                     .user div { padding: 0.5rem 1rem; border: 1px solid #8886; border-radius: 0.75rem; }\n\
                     details { opacity: 0.7; }\n";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
