//! Filters and tests that differ between minijinja and Jinja2.

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, State, Value};

use super::python;

pub(super) fn add(env: &mut Environment) {
    env.add_test("iterable", is_iterable);
    env.add_test("sequence", is_sequence);
    env.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
    env.add_filter("string", |state: &State, value: &Value| python::str_of(state, value));
    for name in ["e", "escape", "forceescape"] {
        env.add_filter(name, escape);
    }
    env.add_filter("int", int);
    env.add_filter("float", float);
    env.add_filter("indent", indent);
    env.add_filter("join", join);
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
        kind => matches!(
            kind,
            ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined
        ),
    }
}

pub(super) fn escape(state: &State, value: &Value) -> Result<Value, Error> {
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

/// The argument at `position`, or by `name`.
fn argument(rest: &Rest<Value>, position: usize, kwargs: &Kwargs, name: &str) -> Result<Option<Value>, Error> {
    match rest.get(position) {
        Some(value) => Ok(Some(value.clone())),
        None => kwargs.get(name),
    }
}

/// What is no number becomes the default, where minijinja fails.
fn int(value: &Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let default = argument(&rest, 0, &kwargs, "default")?.unwrap_or_else(|| Value::from(0));
    let base = argument(&rest, 1, &kwargs, "base")?.map_or(Ok(10), u32::try_from)?;
    kwargs.assert_all_used()?;
    if let Some(text) = value.as_str() {
        return Ok(parse_int(text.trim(), base).map_or(default, Value::from));
    }
    Ok(match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.clone(),
        ValueKind::Number => f64::try_from(value.clone())
            .ok()
            .and_then(truncate)
            .map_or(default, Value::from),
        _ => default,
    })
}

fn parse_int(text: &str, base: u32) -> Option<i128> {
    let lower = text.replace('_', "").to_lowercase();
    let (sign, digits) = lower
        .strip_prefix('-')
        .map_or(("", lower.as_str()), |digits| ("-", digits));
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let digits = format!("{sign}{}", digits.strip_prefix(prefix).unwrap_or(digits));
    let whole = (2..=36)
        .contains(&base)
        .then(|| i128::from_str_radix(&digits, base).ok())
        .flatten();
    whole.or_else(|| text.parse::<f64>().ok().and_then(truncate))
}

fn truncate(real: f64) -> Option<i128> {
    (real.abs() < 1e30).then_some(real as i128)
}

fn float(value: &Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let default = argument(&rest, 0, &kwargs, "default")?.unwrap_or_else(|| Value::from(0.0));
    kwargs.assert_all_used()?;
    let real = match (value.as_str(), value.kind()) {
        (Some(text), _) => text.trim().parse::<f64>().ok(),
        (None, ValueKind::Bool) => Some(f64::from(u8::from(value.is_true()))),
        (None, ValueKind::Number) => f64::try_from(value.clone()).ok(),
        _ => None,
    };
    Ok(real.map_or(default, Value::from))
}

/// `width` is a number of blanks or the text to indent with.
fn indent(state: &State, text: &Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let lead = match argument(&rest, 0, &kwargs, "width")? {
        None => " ".repeat(4),
        Some(width) => match width.as_str() {
            Some(lead) => lead.to_owned(),
            None => {
                let width = usize::try_from(i64::try_from(width)?.max(0)).unwrap_or(usize::MAX);
                state.consume_fuel(width as u64)?;
                " ".repeat(width)
            }
        },
    };
    let first = argument(&rest, 1, &kwargs, "first")?.is_some_and(|flag| flag.is_true());
    let blank = argument(&rest, 2, &kwargs, "blank")?.is_some_and(|flag| flag.is_true());
    kwargs.assert_all_used()?;
    let text = python::str_of(state, text)?;
    let mut out = python::Text::new(state);
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push("\n")?;
        }
        if (index == 0 && first) || (index > 0 && (blank || !line.is_empty())) {
            out.push(&lead)?;
        }
        out.push(line)?;
    }
    Ok(out.finish())
}

fn join(state: &State, items: &Value, rest: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let separator =
        argument(&rest, 0, &kwargs, "d")?.map_or(Ok(String::new()), |value| python::str_of(state, &value))?;
    let attribute = argument(&rest, 1, &kwargs, "attribute")?;
    kwargs.assert_all_used()?;
    let mut out = python::Text::new(state);
    for (index, item) in items.try_iter()?.checked().enumerate() {
        let mut item = item?;
        if let Some(path) = &attribute {
            for name in python::str_of(state, path)?.split('.') {
                let key = name.parse::<i64>().map_or_else(|_| Value::from(name), Value::from);
                item = item.get_item(&key)?;
            }
        }
        if index > 0 {
            out.push(&separator)?;
        }
        out.push(&python::str_of(state, &item)?)?;
    }
    Ok(out.finish())
}
