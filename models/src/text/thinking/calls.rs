//! Tool calls from the text between their tags.

use serde_json::{Map, Number, Value};

use super::{Schemas, ToolCall, literal};

/// Parameter schemas by function name, from tools as the chat template gets them.
pub(super) fn schemas(tools: Option<&Value>) -> Schemas {
    let mut schemas = Map::new();
    for tool in tools.and_then(Value::as_array).into_iter().flatten() {
        let function = tool.get("function").unwrap_or(tool);
        if let Some(name) = function.get("name").and_then(Value::as_str)
            && !schemas.contains_key(name)
        {
            let properties = function
                .get("parameters")
                .and_then(|parameters| parameters.get("properties"));
            schemas.insert(name.to_owned(), properties.cloned().unwrap_or_default());
        }
    }
    schemas
}

/// A call in XML tags or as a JSON object; `None` for what is neither.
pub(super) fn parse(body: &str, schemas: &Schemas) -> Option<ToolCall> {
    parse_xml(body, schemas).or_else(|| parse_json(body))
}

/// `{"name": …, "arguments": …}`, or with `args`.
pub(super) fn parse_json(body: &str) -> Option<ToolCall> {
    let Ok(Value::Object(mut object)) = serde_json::from_str(body) else {
        return None;
    };
    let name = object.get("name")?.as_str()?.to_owned();
    let arguments = object.remove("arguments").or_else(|| object.remove("args"));
    Some(ToolCall {
        name,
        arguments: arguments.unwrap_or_else(|| Value::Object(Map::new())),
    })
}

/// `<function=NAME>` with `<parameter=KEY>VALUE</parameter>` in it.
fn parse_xml(body: &str, schemas: &Schemas) -> Option<ToolCall> {
    let inner = body.trim().strip_prefix("<function=")?.strip_suffix("</function>")?;
    let (name, mut rest) = inner.split_once('>')?;
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '<') {
        return None;
    }
    let schema = schemas.get(name);
    let mut arguments = Map::new();
    while let Some((_, tail)) = rest.split_once("<parameter=") {
        rest = tail;
        let Some((key, tail)) = tail
            .split_once('>')
            .filter(|(key, _)| !key.is_empty() && !key.contains('\n'))
        else {
            continue;
        };
        let Some((value, tail)) = tail.split_once("</parameter>") else {
            break;
        };
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let declared = schema.and_then(|schema| schema.get(key)?.get("type"));
        arguments.insert(key.to_owned(), typed(value, declared));
        rest = tail;
    }
    Some(ToolCall {
        name: name.to_owned(),
        arguments: Value::Object(arguments),
    })
}

/// `text` as its declared type; what does not fit stays text.
fn typed(text: &str, declared: Option<&Value>) -> Value {
    if text.eq_ignore_ascii_case("null") {
        return Value::Null;
    }
    let as_text = || Value::String(text.to_owned());
    let kinds: Vec<String> = match declared {
        Some(Value::String(kind)) => vec![kind.trim().to_lowercase()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_lowercase).collect(),
        _ => return as_text(),
    };
    let starts = |prefixes: &[&str]| {
        kinds
            .iter()
            .any(|kind| prefixes.iter().any(|prefix| kind.starts_with(prefix)))
    };
    if starts(&["str", "text", "varchar", "char", "enum"]) || kinds.is_empty() {
        return as_text();
    }
    if starts(&["int", "uint", "long", "short", "unsigned"])
        && let Some(number) = integer(text.trim())
    {
        return number;
    }
    if starts(&["num", "float", "double"])
        && let Some(number) = real(text.trim())
    {
        return number;
    }
    if starts(&["bool", "binary"]) {
        let is_only = kinds
            .iter()
            .all(|kind| kind.starts_with("bool") || kind == "binary" || kind == "null");
        let word = text.trim().to_lowercase();
        if is_only || word == "true" || word == "false" {
            return Value::Bool(word == "true");
        }
    }
    let is_number = kinds.iter().all(|kind| {
        ["int", "uint", "long", "short", "unsigned", "num", "float", "double"]
            .iter()
            .any(|prefix| kind.starts_with(prefix))
    });
    if is_number {
        return as_text();
    }
    serde_json::from_str(text)
        .ok()
        .or_else(|| literal::parse(text))
        .unwrap_or_else(as_text)
}

fn integer(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let exact = digits
        .parse::<i64>()
        .map(Number::from)
        .or_else(|_| digits.parse::<u64>().map(Number::from));
    if let Ok(number) = exact {
        return Some(Value::Number(number));
    }
    let float = finite(text)?.trunc();
    (float.abs() < 9.0e18).then(|| Value::from(float as i64))
}

/// A whole number is written without a fraction.
fn real(text: &str) -> Option<Value> {
    let float = finite(text)?;
    if float.fract() == 0.0 {
        return integer(text).or(Some(Value::from(float)));
    }
    Some(Value::from(float))
}

fn finite(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}
