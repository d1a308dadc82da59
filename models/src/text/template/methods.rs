//! Methods of Python's text and lists that minijinja's compatibility layer lacks or reads differently.

use minijinja::value::{Kwargs, StringInput, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::python;

pub(super) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => text_method(state, value.as_str().unwrap_or_default(), method, args)?,
        ValueKind::Seq | ValueKind::Iterable => list_method(value, method, args)?,
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => pycompat::unknown_method_callback(state, value, method, args),
    }
}

fn text_method(state: &State, text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let result = match method {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            let cut = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
            Value::from(match method {
                "strip" => text.trim_matches(cut),
                "lstrip" => text.trim_start_matches(cut),
                _ => text.trim_end_matches(cut),
            })
        }
        "split" | "rsplit" => {
            let (separator, limit, kwargs): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
            let separator = separator.map_or_else(|| kwargs.get::<Option<Value>>("sep"), |value| Ok(Some(value)))?;
            let limit = limit.map_or_else(|| kwargs.get::<Option<i64>>("maxsplit"), |value| Ok(Some(value)))?;
            kwargs.assert_all_used()?;
            // A negative limit is none.
            let limit = limit
                .and_then(|limit| usize::try_from(limit).ok())
                .unwrap_or(usize::MAX);
            let separator = separator.filter(|value| !value.is_none());
            let separator = separator.as_ref().map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the separator must be text"))
            });
            list(split(text, separator.transpose()?, limit, method == "rsplit")?)
        }
        "splitlines" => {
            let (keep, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
            let keep = keep.or(kwargs.get("keepends")?).unwrap_or(false);
            kwargs.assert_all_used()?;
            list(lines(text, keep))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            not_empty(separator)?;
            let parts = if method == "partition" {
                text.split_once(separator)
            } else {
                text.rsplit_once(separator)
            };
            let parts = match parts {
                Some((before, after)) => [before, separator, after],
                None if method == "partition" => [text, "", ""],
                None => ["", "", text],
            };
            Value::from(Tuple::from(parts.map(Value::from)))
        }
        "removeprefix" | "removesuffix" => {
            let (affix,): (&str,) = from_args(args)?;
            let rest = if method == "removeprefix" {
                text.strip_prefix(affix)
            } else {
                text.strip_suffix(affix)
            };
            Value::from(rest.unwrap_or(text))
        }
        "title" => {
            let () = from_args(args)?;
            Value::from(title(state, text)?)
        }
        "swapcase" => {
            let () = from_args(args)?;
            let swap = |c: char| {
                if c.is_uppercase() {
                    c.to_lowercase().to_string()
                } else {
                    c.to_uppercase().to_string()
                }
            };
            Value::from(text.chars().map(swap).collect::<String>())
        }
        "casefold" => {
            let () = from_args(args)?;
            Value::from(text.to_lowercase().replace('ß', "ss"))
        }
        "isdecimal" | "isdigit" => {
            let () = from_args(args)?;
            // Fractions and Roman numerals are numbers, but no digits.
            let is_digit =
                |c: char| c.is_numeric() && !c.is_alphabetic() && !matches!(c, '¼'..='¾' | '\u{2150}'..='\u{218b}');
            Value::from(!text.is_empty() && text.chars().all(is_digit))
        }
        "index" | "rindex" => {
            let (what,): (&str,) = from_args(args)?;
            let at = if method == "index" {
                text.find(what)
            } else {
                text.rfind(what)
            };
            let at = at.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "substring not found"))?;
            Value::from(text[..at].chars().count())
        }
        "join" => {
            let (items,): (&Value,) = from_args(args)?;
            let mut out = python::Text::new(state);
            for (index, item) in items.try_iter()?.checked().enumerate() {
                if index > 0 {
                    out.push(text)?;
                }
                let item = item?;
                out.push(
                    item.as_str()
                        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "only texts can be joined"))?,
                )?;
            }
            Value::from(out.finish())
        }
        "format" if widest_field(text) >= 10_000 => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "a field of the format is too wide",
            ));
        }
        "ljust" | "rjust" | "center" | "zfill" => Value::from(pad(state, text, method, args)?),
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn list_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    if method != "index" {
        return Ok(None);
    }
    let (what,): (&Value,) = from_args(args)?;
    for (index, item) in value.try_iter()?.checked().enumerate() {
        if item? == *what {
            return Ok(Some(Value::from(index)));
        }
    }
    Err(Error::new(ErrorKind::InvalidOperation, "the value is not in the list"))
}

fn list(parts: Vec<&str>) -> Value {
    parts.into_iter().map(Value::from).collect()
}

/// White space of Python's `str`, which counts the four information separators in.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn not_empty(separator: &str) -> Result<(), Error> {
    if separator.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    Ok(())
}

fn split<'a>(text: &'a str, separator: Option<&str>, limit: usize, from_end: bool) -> Result<Vec<&'a str>, Error> {
    let parts = limit.saturating_add(1);
    let Some(separator) = separator else {
        return Ok(split_space(text, limit, from_end));
    };
    not_empty(separator)?;
    Ok(if from_end {
        let mut found: Vec<_> = text.rsplitn(parts, separator).collect();
        found.reverse();
        found
    } else {
        text.splitn(parts, separator).collect()
    })
}

fn split_space(text: &str, limit: usize, from_end: bool) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = if from_end {
            rest.trim_end_matches(is_space)
        } else {
            rest.trim_start_matches(is_space)
        };
        let cut = if from_end {
            rest.rfind(is_space)
        } else {
            rest.find(is_space)
        };
        match cut.filter(|_| found.len() < limit) {
            Some(at) if from_end => {
                let start = at + rest[at..].chars().next().map_or(0, char::len_utf8);
                found.push(&rest[start..]);
                rest = &rest[..at];
            }
            Some(at) => {
                found.push(&rest[..at]);
                rest = &rest[at..];
            }
            None => break,
        }
    }
    if !rest.is_empty() {
        found.push(rest);
    }
    if from_end {
        found.reverse();
    }
    found
}

fn lines(text: &str, keep: bool) -> Vec<&str> {
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_end) {
        let width = if rest[at..].starts_with("\r\n") {
            2
        } else {
            rest[at..].chars().next().map_or(1, char::len_utf8)
        };
        found.push(&rest[..if keep { at + width } else { at }]);
        rest = &rest[at + width..];
    }
    if !rest.is_empty() {
        found.push(rest);
    }
    found
}

/// Each run of letters that have case begins with a title letter: `they're` becomes `They'Re`, unlike in the filter.
fn title(state: &State, text: &str) -> Result<String, Error> {
    let has_case = |c: char| c.is_lowercase() || c.is_uppercase() || matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(has_case) {
        out.push_str(&rest[..start]);
        let run = &rest[start..];
        let len = run.find(|c| !has_case(c)).unwrap_or(run.len());
        let word = Value::from(&run[..len]);
        out.push_str(&python::str_of(
            state,
            &minijinja::filters::capitalize(StringInput::new(state, &word)?),
        )?);
        rest = &run[len..];
    }
    out.push_str(rest);
    Ok(out)
}

fn pad(state: &State, text: &str, method: &str, args: &[Value]) -> Result<String, Error> {
    let (width, fill): (usize, Option<char>) = from_args(args)?;
    let missing = width.saturating_sub(text.chars().count());
    state.consume_fuel(missing as u64 / 16)?;
    let fill = if method == "zfill" { '0' } else { fill.unwrap_or(' ') };
    let before = match method {
        "rjust" => missing,
        // Python puts the odd one to the left when the width is odd.
        "center" => missing / 2 + (missing & width & 1),
        _ => 0,
    };
    let run = |count: usize| fill.to_string().repeat(count);
    Ok(match method {
        "zfill" => {
            let sign = if text.starts_with(['+', '-']) { 1 } else { 0 };
            format!("{}{}{}", &text[..sign], run(missing), &text[sign..])
        }
        _ => format!("{}{text}{}", run(before), run(missing - before)),
    })
}

/// The largest number between braces: minijinja pads to any width.
fn widest_field(format: &str) -> usize {
    let fields = format
        .split('{')
        .skip(1)
        .map(|rest| rest.split('}').next().unwrap_or(rest));
    let numbers = fields.flat_map(|field| field.split(|c: char| !c.is_ascii_digit()));
    numbers
        .filter(|digits| !digits.is_empty())
        .map(|digits| digits.parse().unwrap_or(usize::MAX))
        .max()
        .unwrap_or(0)
}
