//! Python literals, which models write where JSON was meant.

use serde_json::{Map, Value};

const MAX_DEPTH: usize = 64;

/// `text` as a Python literal of lists, tuples, maps with text keys, text, numbers, `True`, `False` and `None`.
pub(super) fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader {
        rest: text.trim(),
        depth: 0,
    };
    let value = reader.value()?;
    reader.rest.trim_start().is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Value> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '[' => self.list(']'),
            '(' => self.list(')'),
            '{' => self.map(),
            quote @ ('\'' | '"') => self.text(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn eat(&mut self, c: char) -> bool {
        let rest = self.rest.trim_start();
        let tail = rest.strip_prefix(c);
        self.rest = tail.unwrap_or(rest);
        tail.is_some()
    }

    fn enter(&mut self, open: char) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH && self.eat(open)).then_some(())
    }

    fn list(&mut self, close: char) -> Option<Value> {
        self.enter(if close == ']' { '[' } else { '(' })?;
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(self.value()?);
            if !self.eat(',') {
                self.eat(close).then_some(())?;
                break;
            }
        }
        self.depth -= 1;
        Some(Value::Array(items))
    }

    fn map(&mut self) -> Option<Value> {
        self.enter('{')?;
        let mut map = Map::new();
        while !self.eat('}') {
            let key = match self.value()? {
                Value::String(key) => key,
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            self.eat(':').then_some(())?;
            let value = self.value()?;
            map.insert(key, value);
            if !self.eat(',') {
                self.eat('}').then_some(())?;
                break;
            }
        }
        self.depth -= 1;
        Some(Value::Object(map))
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let mut out = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    c @ ('\\' | '\'' | '"') => out.push(c),
                    c => out.extend(['\\', c]),
                },
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Some(out);
                }
                c => out.push(c),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || ",:]})".contains(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            "None" | "null" => Some(Value::Null),
            number => serde_json::from_str(number).ok().filter(Value::is_number),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    #[test]
    fn literals_of_python_are_read() {
        assert_eq!(
            parse("[1, 'x', {'k': None, \"b\": True}, (2.5,)]"),
            Some(json!([1, "x", {"k": null, "b": true}, [2.5]]))
        );
        assert_eq!(parse("{'it\\'s': [], }"), Some(json!({"it's": []})));
        for bad in ["[1", "{'a'}", "['a' 'b']", "nope", "", "'a", "[1] x", &"[".repeat(100)] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
