//! Filters and tests that differ between minijinja and Jinja2.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, State, Value};

use super::python;

pub(super) fn add(env: &mut Environment) {
    env.add_test("iterable", is_iterable);
    env.add_test("sequence", is_sequence);
    env.add_filter("string", |state: &State, value: &Value| python::str_of(state, value));
    for name in ["e", "escape", "forceescape"] {
        env.add_filter(name, escape);
    }
}

fn is_iterable(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Undefined
    )
}

/// What has a length and can be indexed; the slices that minijinja makes lazily are lists in Jinja2, generators are not.
fn is_sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Iterable => value.len().is_some(),
        kind => matches!(kind, ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined),
    }
}

fn escape(state: &State, value: &Value) -> Result<Value, Error> {
    let text = python::str_of(state, value)?;
    if value.is_safe() {
        return Ok(value.clone());
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    Ok(Value::from_safe_string(out))
}
