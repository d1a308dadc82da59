//! Template text as Jinja2 in the transformers set-up reads it, written so that minijinja reads the same.

/// Line ends become LF, and `{% generation %}`, which only marks text for training, becomes a plain scope.
pub(super) fn rewrite(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find('{') {
        let (text, tail) = rest.split_at(at);
        out.push_str(text);
        let end = match tail.as_bytes().get(1) {
            Some(b'#') => tail[2..].find("#}").map_or(tail.len(), |end| end + 4),
            Some(b'{') => 2 + expression_len(&tail[2..], "}}"),
            Some(b'%') => {
                let (inner, name) = block_name(tail);
                match name {
                    "generation" | "endgeneration" => {
                        out.push_str(&tail[..inner]);
                        out.push_str(if name == "generation" { "with" } else { "endwith" });
                        rest = &tail[inner + name.len()..];
                        continue;
                    }
                    "raw" => raw_len(tail),
                    _ => inner + expression_len(&tail[inner..], "%}"),
                }
            }
            _ => 1,
        };
        out.push_str(&tail[..end]);
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

/// Where the name of the block tag at the start of `tail` begins, and the name.
fn block_name(tail: &str) -> (usize, &str) {
    let signed = if tail[2..].starts_with(['-', '+']) { 3 } else { 2 };
    let inner = tail.len() - tail[signed..].trim_start().len();
    let len = tail[inner..]
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(tail.len() - inner);
    (inner, &tail[inner..inner + len])
}

/// Length of a raw block from its `{%` up to the end of its `endraw` tag.
fn raw_len(tail: &str) -> usize {
    let mut at = 2;
    while let Some(next) = tail[at..].find("{%") {
        let start = at + next;
        let (inner, name) = block_name(&tail[start..]);
        at = start + inner + name.len();
        if name == "endraw" {
            return at;
        }
    }
    tail.len()
}

/// Length of an expression up to and with its `end` mark; marks inside of text and braces do not count.
fn expression_len(text: &str, end: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut quote) = (0, 0usize, None);
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, byte @ (b'"' | b'\'')) => quote = Some(byte),
            (None, _) if depth == 0 && bytes[at..].starts_with(end.as_bytes()) => return at + end.len(),
            (None, b'{' | b'[' | b'(') => depth += 1,
            (None, b'}' | b']' | b')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn generation_tags_become_scopes_only_where_they_are_tags() {
        assert_eq!(
            rewrite("{%- generation -%}x{% endgeneration %}"),
            "{%- with -%}x{% endwith %}"
        );
        for text in [
            "{{ '{% generation %}' }}",
            "{# {% generation %} #}",
            "{% raw %}{% generation %}{% endraw %}",
            "{% set x = '%}{% generation %}' %}",
            "{% set generation = {'a': {'b': 1}} %}{{ {'a': {}}.a }}",
            "{",
            "{% if",
            "{{ 'é",
            "{% raw %}",
            "{{ '\\",
        ] {
            assert_eq!(rewrite(text), text);
        }
        assert_eq!(
            rewrite("{% raw %}{% generation %}{%- endraw %}{% generation %}"),
            "{% raw %}{% generation %}{%- endraw %}{% with %}"
        );
    }

    #[test]
    fn line_ends_become_lf() {
        assert_eq!(rewrite("a\r\nb\rc\n"), "a\nb\nc\n");
    }
}
