//! Which file of a checkpoint holds its chat template: transformers' order.

use std::path::Path;

use serde_json::Value;

use super::Texts;
use crate::text::json;
use crate::{Error, Result};

const ADDITIONAL: &str = "additional_chat_templates";

pub(super) fn texts(dir: &Path) -> Result<Option<Texts>> {
    if let Some(texts) = from_jinja_files(dir)? {
        return Ok(Some(texts));
    }
    for file in ["tokenizer_config.json", "chat_template.json"] {
        let Some(object) = json::read_object(dir, file)? else {
            continue;
        };
        if let Some(texts) = from_value(file, object.get("chat_template"))? {
            return Ok(Some(texts));
        }
    }
    Ok(None)
}

/// Template files stand alone: where there is one, the text in the JSON files does not count.
fn from_jinja_files(dir: &Path) -> Result<Option<Texts>> {
    let default = read_text(&dir.join("chat_template.jinja"))?;
    let folder = dir.join(ADDITIONAL);
    let mut named = Vec::new();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.collect::<std::io::Result<Vec<_>>>(),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    };
    for entry in entries.map_err(|source| Error::Io { path: folder, source })? {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "jinja")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
            && let Some(text) = read_text(&path)?
        {
            named.push((name.to_owned(), text));
        }
    }
    named.sort();
    match (default, named.is_empty()) {
        (None, true) => Ok(None),
        (Some(text), true) => Ok(Some(Texts::One(text))),
        (default, false) => {
            named.splice(0..0, default.map(|text| ("default".to_owned(), text)));
            Ok(Some(Texts::Named(named)))
        }
    }
}

fn from_value(file: &str, value: Option<&Value>) -> Result<Option<Texts>> {
    let invalid = || Error::ConfigValue {
        field: format!("chat_template in {file}"),
        value: value.map_or_else(String::new, |value| value.to_string().chars().take(80).collect()),
        expected: "text or a list of {name, template}".to_owned(),
    };
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(Texts::One(text.clone()))),
        Some(Value::Array(list)) => {
            let pair = |item: &Value| {
                Some((
                    item.get("name")?.as_str()?.to_owned(),
                    item.get("template")?.as_str()?.to_owned(),
                ))
            };
            let named = list.iter().map(pair).collect::<Option<Vec<_>>>().ok_or_else(invalid)?;
            Ok(Some(Texts::Named(named)))
        }
        Some(Value::Object(map)) => {
            let pair = |(name, text): (&String, &Value)| Some((name.clone(), text.as_str()?.to_owned()));
            Ok(Some(Texts::Named(
                map.iter().map(pair).collect::<Option<Vec<_>>>().ok_or_else(invalid)?,
            )))
        }
        Some(_) => Err(invalid()),
    }
}

fn read_text(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io {
            path: path.to_owned(),
            source,
        }),
    }
}
