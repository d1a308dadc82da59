//! Which tokens end a reply.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use super::json;
use crate::{Error, Result};

/// Named by no file of some Qwen checkpoints, although their models end each reply with it.
const QWEN_END: &str = "<|im_end|>";

/// The set of token ids that end a reply, and what was wrong with the files that name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndTokens {
    /// The ids, ascending, each below the model's vocabulary size.
    pub ids: Vec<u32>,
    /// Files and values that were passed over, in words.
    pub warnings: Vec<String>,
}

impl EndTokens {
    /// The union of what `config.json`, `generation_config.json`, `tokenizer_config.json` and `special_tokens_map.json` in
    /// `dir` name. `token_id` looks up the tokenizer's vocabulary. Ids outside of the (unpadded) vocabulary do not count.
    ///
    /// # Errors
    /// [`Error::ConfigMissing`] or [`Error::ConfigSyntax`] for `config.json`; the other files are passed over when they
    /// are damaged.
    pub fn load(dir: &Path, token_id: impl Fn(&str) -> Option<u32>) -> Result<EndTokens> {
        let config = json::read_object(dir, "config.json")?.ok_or_else(|| Error::ConfigMissing {
            file: "config.json".to_owned(),
            dir: dir.to_owned(),
        })?;
        let text_config = config.get("text_config").and_then(Value::as_object);
        let mut found = Found::default();
        found.ids("config.json", config.get("eos_token_id"));
        found.ids("config.json", text_config.and_then(|text| text.get("eos_token_id")));
        if let Some(generation) = found.object(dir, "generation_config.json") {
            found.ids("generation_config.json", generation.get("eos_token_id"));
        }
        for file in ["tokenizer_config.json", "special_tokens_map.json"] {
            let Some(object) = found.object(dir, file) else {
                continue;
            };
            let token = object
                .get("eos_token")
                .and_then(|token| token.get("content").unwrap_or(token).as_str());
            found.ids.extend(token.and_then(&token_id).map(u64::from));
        }
        if config
            .get("model_type")
            .and_then(Value::as_str)
            .is_some_and(|name| name.starts_with("qwen3_5"))
        {
            found.ids.extend(token_id(QWEN_END).map(u64::from));
        }
        let limit = vocabulary(&config, text_config).unwrap_or(u64::MAX);
        let ids = found
            .ids
            .into_iter()
            .filter(|id| *id < limit)
            .filter_map(|id| u32::try_from(id).ok())
            .collect();
        Ok(EndTokens {
            ids,
            warnings: found.warnings,
        })
    }

    /// Whether `id` ends a reply.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.ids.binary_search(&id).is_ok()
    }
}

/// The vocabulary a model can speak: its padded size is only that of the output layer.
fn vocabulary(config: &Map<String, Value>, text_config: Option<&Map<String, Value>>) -> Option<u64> {
    ["unpadded_vocab_size", "vocab_size"].into_iter().find_map(|name| {
        let sizes = [text_config.and_then(|text| text.get(name)), config.get(name)];
        sizes
            .into_iter()
            .flatten()
            .find_map(Value::as_u64)
            .filter(|size| *size > 0)
    })
}

#[derive(Default)]
struct Found {
    ids: BTreeSet<u64>,
    warnings: Vec<String>,
}

impl Found {
    fn object(&mut self, dir: &Path, file: &str) -> Option<Map<String, Value>> {
        json::read_object(dir, file).unwrap_or_else(|error| {
            self.warnings.push(error.to_string());
            None
        })
    }

    fn ids(&mut self, file: &str, value: Option<&Value>) {
        let items = match value {
            None | Some(Value::Null) => return,
            Some(Value::Array(items)) => items.as_slice(),
            Some(item) => std::slice::from_ref(item),
        };
        for item in items {
            match item.as_u64() {
                Some(id) => {
                    self.ids.insert(id);
                }
                None => self
                    .warnings
                    .push(format!("eos_token_id in {file} holds {item}, which is no token id")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EndTokens;

    fn load(files: &[(&str, &str)]) -> EndTokens {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        EndTokens::load(dir.path(), |token| (token == "</s>").then_some(2)).unwrap()
    }

    #[test]
    fn damaged_side_files_only_warn() {
        let end = load(&[
            (
                "config.json",
                r#"{"vocab_size": 10, "eos_token_id": [1, -1, "x", 10, 9]}"#,
            ),
            ("generation_config.json", "{"),
            ("special_tokens_map.json", r#"{"eos_token": {"content": "</s>"}}"#),
        ]);
        assert_eq!(end.ids, [1, 2, 9]);
        assert_eq!(end.warnings.len(), 3, "{:?}", end.warnings);
        assert!(end.contains(9) && !end.contains(10));
    }

    #[test]
    fn the_unpadded_size_counts_wherever_it_stands() {
        let end = load(&[(
            "config.json",
            r#"{"unpadded_vocab_size": 5, "eos_token_id": 5, "text_config": {"vocab_size": 8, "eos_token_id": 4}}"#,
        )]);
        assert_eq!(end.ids, [4]);
    }
}
