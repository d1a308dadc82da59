//! Chat templates: exact prompt text, or a named error.

use std::path::Path;
use std::time::{Duration, Instant};

use models::Error;
use models::text::{ChatTemplate, RenderInput};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Check, case_of_child, in_child, list, number, root, run, same, text, write_files};

/// Template errors as the cases name them.
fn template_kind(error: &Error) -> &'static str {
    match error {
        Error::TemplateSyntax { .. } => "template_syntax",
        Error::TemplateRaised { .. } => "template_raised",
        Error::TemplateRuntime { .. } => "template_runtime",
        Error::TemplateLimit { .. } => "template_limit",
        Error::TemplateMissing => "template_missing",
        _ => "other",
    }
}

fn template_of(case: &Value, folder: &Path) -> models::Result<ChatTemplate> {
    if let Some(file) = case["file"].as_str() {
        return Ok(ChatTemplate::from_source(
            std::fs::read_to_string(folder.join(file)).unwrap(),
        ));
    }
    if let Some(parts) = case["build"].as_array() {
        let part = |part: &Value| match part["text"].as_str() {
            Some(text) => text.to_owned(),
            None => text(&part["repeat"]).repeat(number(&part["times"])),
        };
        return Ok(ChatTemplate::from_source(parts.iter().map(part).collect::<String>()));
    }
    if let Some(files) = case["files"].as_object() {
        let dir = tempfile::tempdir().unwrap();
        write_files(dir.path(), files.iter());
        return ChatTemplate::load(dir.path())?.ok_or(Error::TemplateMissing);
    }
    Ok(ChatTemplate::from_source(text(&case["template"])))
}

fn render(case: &Value) -> models::Result<String> {
    let built = list(&case["messages_build"]["repeat"]);
    let messages = match case.get("messages") {
        Some(messages) => messages.clone(),
        None => (0..case["messages_build"]["times"].as_u64().unwrap_or(0))
            .flat_map(|_| built.to_vec())
            .collect(),
    };
    let vars = case["vars"].as_object().cloned().unwrap_or_default();
    template_of(case, &root().join("templates"))?.render(RenderInput {
        messages: &messages,
        tools: case.get("tools").filter(|tools| !tools.is_null()),
        add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap_or(false),
        vars: &vars,
        now: case["now"].as_str().map(|now| now.parse().unwrap()),
    })
}

fn check_template(case: &Value) -> Check {
    let start = Instant::now();
    let result = render(case);
    let took = start.elapsed();
    let expect = &case["expect"];
    if let Some(limit) = expect["within_ms"].as_u64()
        && took > Duration::from_millis(limit)
    {
        return Err(format!("took {took:?}, allowed are {limit} ms"));
    }
    let kinds: Vec<&str> = match expect["error"].as_str() {
        Some(kind) => vec![kind],
        None => list(&expect["error_any"]).iter().map(text).collect(),
    };
    match result {
        Ok(found) => {
            if let Some(sum) = expect["sha256"].as_str() {
                same("length", found.len(), number(&expect["utf8_bytes"]))?;
                return same("sha256", sha256(found.as_bytes()).as_str(), sum);
            }
            match expect["text"].as_str().or(expect["or_text"].as_str()) {
                Some(text) => same("text", found.as_str(), text),
                None => Err(format!(
                    "no error, but the text {:?}",
                    found.chars().take(80).collect::<String>()
                )),
            }
        }
        Err(error) => {
            let shown = error.to_string();
            if !kinds.contains(&template_kind(&error)) {
                return Err(format!("{} ({shown}), expected {kinds:?}", template_kind(&error)));
            }
            match expect["message"].as_str() {
                Some(message) if !shown.contains(message) => Err(format!("{shown:?} does not say {message:?}")),
                _ => Ok(()),
            }
        }
    }
}

#[test]
fn templates() {
    run("templates", |case| {
        check_template(case)?;
        let is_about_limits = list(&case["expect"]["error_any"])
            .iter()
            .any(|kind| kind == "template_limit");
        if is_about_limits {
            in_child("cases::templates::one_template_with_little_memory", text(&case["id"]))
        } else {
            Ok(())
        }
    });
}

/// The child's part; by itself it has nothing to do.
#[test]
fn one_template_with_little_memory() {
    if let Some(case) = case_of_child("templates") {
        check_template(&case).unwrap();
    }
}

/// The cases give long texts by their sum.
fn sha256(message: &[u8]) -> String {
    Sha256::digest(message)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
