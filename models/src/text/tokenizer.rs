//! The checkpoint's tokenizer.

use std::path::Path;

use serde_json::Value;

use crate::{Error, Result};

/// Text to token ids and token ids to bytes.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    coding: Coding,
    added: Vec<AddedToken>,
}

/// How the text of a vocabulary entry stands for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Each character is one byte (GPT-2's table).
    ByteLevel,
    /// `▁` is a space and `<0xNN>` is a byte.
    ByteFallback,
    Plain,
}

#[derive(Debug)]
struct AddedToken {
    id: u32,
    content: String,
    special: bool,
}

impl Tokenizer {
    /// Reads `tokenizer.json` in `dir`.
    ///
    /// # Errors
    /// [`Error::ConfigMissing`] without the file, [`Error::Io`], [`Error::Tokenizer`] for one that cannot be used.
    pub fn load(dir: &Path) -> Result<Tokenizer> {
        let path = dir.join("tokenizer.json");
        let bytes = std::fs::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::ConfigMissing {
                file: "tokenizer.json".to_owned(),
                dir: dir.to_owned(),
            },
            _ => Error::Io { path, source },
        })?;
        let invalid = |message: String| Error::Tokenizer { message };
        let inner = tokenizers::Tokenizer::from_bytes(&bytes).map_err(|error| invalid(error.to_string()))?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        let mut added: Vec<_> = inner
            .get_added_tokens_decoder()
            .into_iter()
            .map(|(id, token)| AddedToken {
                id,
                content: token.content,
                special: token.special,
            })
            .collect();
        added.sort_by_key(|token| token.id);
        Ok(Tokenizer {
            inner,
            coding: coding(&json),
            added,
        })
    }

    /// The ids of `text`. Tokens that stand in the text by name (`<|im_start|>`) are recognised; none is added.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the vocabulary cannot express the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.inner.encode_fast(text, false).map_err(|error| Error::Tokenizer {
            message: error.to_string(),
        })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Number of entries, added tokens included. A model's output layer may be wider.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// The id of the vocabulary entry that is written `token`.
    #[must_use]
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The bytes that token `id` adds to a text; added tokens stand for their own name, unknown ids for nothing.
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Vec<u8> {
        if let Some(token) = self.added(id) {
            return token.content.clone().into_bytes();
        }
        let Some(text) = self.inner.id_to_token(id) else {
            return Vec::new();
        };
        match self.coding {
            Coding::Plain => text.into_bytes(),
            Coding::ByteLevel => text
                .chars()
                .map(byte_of)
                .collect::<Option<Vec<_>>>()
                .unwrap_or(text.into_bytes()),
            Coding::ByteFallback => {
                let hex = text
                    .strip_prefix("<0x")
                    .and_then(|rest| rest.strip_suffix('>'))
                    .filter(|hex| hex.len() == 2);
                match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                    Some(byte) => vec![byte],
                    None => text.replace('\u{2581}', " ").into_bytes(),
                }
            }
        }
    }

    /// Whether `id` is a control token such as `<|im_start|>`, as opposed to text.
    #[must_use]
    pub fn is_special(&self, id: u32) -> bool {
        self.added(id).is_some_and(|token| token.special)
    }

    fn added(&self, id: u32) -> Option<&AddedToken> {
        let index = self.added.binary_search_by_key(&id, |token| token.id).ok()?;
        self.added.get(index)
    }
}

fn coding(json: &Value) -> Coding {
    let has = |part: &str, kind: &str| {
        let Some(object) = json.get(part) else { return false };
        let lists = ["decoders", "pretokenizers"]
            .into_iter()
            .filter_map(|name| object.get(name)?.as_array());
        std::iter::once(object)
            .chain(lists.flatten())
            .any(|item| item.get("type").is_some_and(|name| name == kind))
    };
    if has("decoder", "ByteLevel")
        || (json.get("decoder").is_none_or(Value::is_null) && has("pre_tokenizer", "ByteLevel"))
    {
        Coding::ByteLevel
    } else if has("decoder", "ByteFallback") || has("decoder", "Metaspace") || has("pre_tokenizer", "Metaspace") {
        Coding::ByteFallback
    } else {
        Coding::Plain
    }
}

/// The byte that `c` stands for in a byte-level vocabulary: printable Latin-1 is itself, the rest follows from U+0100 on.
fn byte_of(c: char) -> Option<u8> {
    let code = u32::from(c);
    match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Tokenizer, byte_of};

    #[test]
    fn every_byte_has_one_character() {
        let bytes: Vec<u8> = (0..0x144).filter_map(char::from_u32).filter_map(byte_of).collect();
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..=255).collect::<Vec<u8>>());
        assert_eq!(
            (byte_of('Ġ'), byte_of('Ċ'), byte_of('a'), byte_of('中')),
            (Some(b' '), Some(b'\n'), Some(b'a'), None)
        );
    }

    fn load(json: &serde_json::Value) -> Tokenizer {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tokenizer.json"), json.to_string()).unwrap();
        Tokenizer::load(dir.path()).unwrap()
    }

    #[test]
    fn bytes_of_tokens_join_to_the_text() {
        let tokenizer = load(&serde_json::json!({
            "version": "1.0",
            "added_tokens": [
                {"id": 5, "content": "<think>", "special": false, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
                {"id": 6, "content": "<|im_end|>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}
            ],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
            "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
            "model": {"type": "BPE", "vocab": {"Ġ": 0, "Ã": 1, "©": 2, "a": 3, "Ġa": 4}, "merges": [["Ġ", "a"]]}
        }));
        let ids = tokenizer.encode(" aé<think> <|im_end|>").unwrap();
        assert_eq!(ids, [4, 1, 2, 5, 0, 6]);
        let bytes: Vec<u8> = ids.iter().flat_map(|id| tokenizer.token_bytes(*id)).collect();
        assert_eq!(bytes, " aé<think> <|im_end|>".as_bytes());
        assert_eq!(
            (
                tokenizer.is_special(6),
                tokenizer.is_special(5),
                tokenizer.is_special(4)
            ),
            (true, false, false)
        );
        assert_eq!(
            (
                tokenizer.vocab_size(),
                tokenizer.token_id("<think>"),
                tokenizer.token_id("nope")
            ),
            (7, Some(5), None)
        );
        assert!(tokenizer.token_bytes(99).is_empty());
    }

    #[test]
    fn byte_fallback_entries_are_bytes() {
        let tokenizer = load(&serde_json::json!({
            "version": "1.0",
            "added_tokens": [],
            "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "BPE", "byte_fallback": true, "vocab": {"<0xE4>": 0, "\u{2581}a": 1}, "merges": []}
        }));
        assert_eq!(
            (tokenizer.token_bytes(0), tokenizer.token_bytes(1)),
            (vec![0xe4], b" a".to_vec())
        );
    }
}
