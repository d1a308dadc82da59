//! The `tojson` filter as transformers defines it: Python's `json.dumps`, nothing escaped for HTML.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::python::{self, Text};

struct Options {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

pub(super) fn tojson(state: &State, value: &Value, positional: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let mut positional = positional.0.into_iter();
    let mut argument = |name: &str| -> Result<Option<Value>, Error> {
        let given = match positional.next() {
            Some(value) => Some(value),
            None => kwargs.get(name)?,
        };
        Ok(given.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let ensure_ascii = argument("ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = argument("indent")?.map(indentation).transpose()?;
    let separators = argument("separators")?;
    let sort_keys = argument("sort_keys")?.is_some_and(|value| value.is_true());
    if positional.next().is_some() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    kwargs.assert_all_used()?;
    let (item_separator, key_separator) = match separators {
        Some(pair) => (text_at(&pair, 0)?, text_at(&pair, 1)?),
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
    };
    let options = Options {
        ensure_ascii,
        indent,
        item_separator,
        key_separator,
        sort_keys,
    };
    let mut out = Text::new(state);
    write(&mut out, value, &options)?;
    Ok(Value::from(out.finish()))
}

fn indentation(value: Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        // `true` counts as one, as in Python.
        None if value.kind() == ValueKind::Bool => Ok(" ".repeat(usize::from(value.is_true()))),
        None => {
            let width = i64::try_from(value)?;
            usize::try_from(width.max(0))
                .ok()
                .filter(|width| *width <= 1000)
                .map(|width| " ".repeat(width))
                .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "indent is too large"))
        }
    }
}

fn text_at(pair: &Value, index: usize) -> Result<String, Error> {
    let item = pair.get_item_by_index(index)?;
    let text = item
        .as_str()
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "separators must be two texts"))?;
    Ok(text.to_owned())
}

fn write(out: &mut Text, value: &Value, options: &Options) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push("null"),
        ValueKind::Bool => out.push(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push(&number(value)),
        ValueKind::String => out.push(&quoted(value.as_str().unwrap_or_default(), options.ensure_ascii)),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push("[")?;
            let mut empty = true;
            out.nested(|out| {
                for item in value.try_iter()?.checked() {
                    options.lead(out, &mut empty)?;
                    write(out, &item?, options)?;
                }
                Ok(())
            })?;
            options.close(out, empty, "]")
        }
        ValueKind::Map => {
            let mut keys = value.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?;
            if options.sort_keys {
                keys.sort();
            }
            out.push("{")?;
            let mut empty = true;
            out.nested(|out| {
                for key in &keys {
                    options.lead(out, &mut empty)?;
                    out.push(&quoted(&key_text(key)?, options.ensure_ascii))?;
                    out.push(&options.key_separator)?;
                    write(out, &value.get_item(key)?, options)?;
                }
                Ok(())
            })?;
            options.close(out, empty, "}")
        }
        kind => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("a value of type {kind} is not JSON serializable"),
        )),
    }
}

impl Options {
    /// What stands before an item.
    fn lead(&self, out: &mut Text, empty: &mut bool) -> Result<(), Error> {
        if !std::mem::replace(empty, false) {
            out.push(&self.item_separator)?;
        }
        self.new_line(out)
    }

    fn close(&self, out: &mut Text, empty: bool, bracket: &str) -> Result<(), Error> {
        if !empty {
            self.new_line(out)?;
        }
        out.push(bracket)
    }

    fn new_line(&self, out: &mut Text) -> Result<(), Error> {
        let Some(indent) = &self.indent else { return Ok(()) };
        out.push("\n")?;
        for _ in 0..out.depth() {
            out.push(indent)?;
        }
        Ok(())
    }
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()) {
        Ok(float) if float.is_nan() => "NaN".to_owned(),
        Ok(float) if float.is_infinite() => if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Ok(float) => python::float(float),
        Err(_) => value.to_string(),
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::Number => Ok(number(key)),
        kind => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("keys must be text or numbers, not {kind}"),
        )),
    }
}

fn quoted(text: &str, ensure_ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || (ensure_ascii && !(' '..='~').contains(&c)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
