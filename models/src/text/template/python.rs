//! Values as Python writes them.

use std::fmt::Write as _;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// Nesting that is written out; deeper values are refused so that no stack overflows.
pub(super) const MAX_DEPTH: usize = 400;
/// Bytes written between two charges.
const CHARGE_BYTES: usize = 64;
/// What writing [`CHARGE_BYTES`] costs: as much as minijinja's own serializer.
const CHARGE_FUEL: u64 = 16;

pub(super) const TOO_DEEP: &str = "recursion limit exceeded";

/// Text that grows on the fuel of a render, so that a small value that refers to itself many times cannot fill the memory.
pub(super) struct Text<'s, 't, 'e> {
    state: &'s State<'t, 'e>,
    out: String,
    charged: usize,
    depth: usize,
}

impl<'s, 't, 'e> Text<'s, 't, 'e> {
    pub(super) fn new(state: &'s State<'t, 'e>) -> Self {
        Text {
            state,
            out: String::new(),
            charged: 0,
            depth: 0,
        }
    }

    pub(super) fn push(&mut self, text: &str) -> Result<(), Error> {
        let due = (self.out.len() + text.len() - self.charged) / CHARGE_BYTES;
        if due > 0 {
            self.state.consume_fuel(due as u64 * CHARGE_FUEL)?;
            self.charged += due * CHARGE_BYTES;
        }
        self.out.push_str(text);
        Ok(())
    }

    /// Runs `body` one level deeper.
    pub(super) fn nested(&mut self, body: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::new(ErrorKind::InvalidOperation, TOO_DEEP));
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// `str(value)`.
pub(super) fn str_of(state: &State, value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if value.is_undefined() => Ok(String::new()),
        None => {
            let mut text = Text::new(state);
            repr(&mut text, value)?;
            Ok(text.finish())
        }
    }
}

fn repr(out: &mut Text, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String => out.push(&quoted(value.as_str().unwrap_or_default())),
        ValueKind::Number if !value.is_integer() => {
            out.push(&f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float))
        }
        ValueKind::Undefined => out.push("Undefined"),
        ValueKind::Seq | ValueKind::Iterable => {
            let (open, close) = if value.is_tuple() { ("(", ")") } else { ("[", "]") };
            out.push(open)?;
            let mut count = 0;
            out.nested(|out| {
                for item in value.try_iter()?.checked() {
                    if count > 0 {
                        out.push(", ")?;
                    }
                    repr(out, &item?)?;
                    count += 1;
                }
                Ok(())
            })?;
            if count == 1 && value.is_tuple() {
                out.push(",")?;
            }
            out.push(close)
        }
        ValueKind::Map => {
            out.push("{")?;
            out.nested(|out| {
                for (index, key) in value.try_iter()?.checked().enumerate() {
                    let key = key?;
                    if index > 0 {
                        out.push(", ")?;
                    }
                    repr(out, &key)?;
                    out.push(": ")?;
                    repr(out, &value.get_item(&key)?)?;
                }
                Ok(())
            })?;
            out.push("}")
        }
        _ => out.push(&value.to_string()),
    }
}

/// `repr` of a float: the shortest text that reads back the same, with an exponent below 1e-4 and from 1e16.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if value != 0.0 && !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ if value.fract() == 0.0 => format!("{value:.1}"),
        _ => value.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// Python's `isprintable`, without the unassigned code points.
fn is_printable(c: char) -> bool {
    match c {
        ' ' => true,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => false,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}' => false,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => false,
        c => !c.is_control() && !c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::{float, quoted};

    #[test]
    fn floats_read_as_in_python() {
        for (value, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn text_is_quoted_as_in_python() {
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("'\""), "'\\'\"'");
        assert_eq!(
            quoted("\u{7f}\u{a0}\u{200b}é\u{1f600}\n"),
            "'\\x7f\\xa0\\u200bé\u{1f600}\\n'"
        );
    }
}
