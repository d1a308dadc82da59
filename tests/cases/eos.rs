//! End tokens: the union of every place that names some.

use std::collections::BTreeSet;

use models::text::EndTokens;
use serde_json::Value;

use super::{list, run, same, write_files};

#[test]
fn eos() {
    run("eos", |case| {
        let dir = tempfile::tempdir().unwrap();
        let files = case
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| name.ends_with(".json"));
        write_files(dir.path(), files);
        let tokens = list(&case["tokenizer.json"]["added_tokens"]);
        let token_id = |wanted: &str| {
            let token = tokens.iter().find(|token| token["content"] == wanted)?;
            u32::try_from(token["id"].as_u64()?).ok()
        };
        let end = EndTokens::load(dir.path(), token_id).map_err(|error| error.to_string())?;
        let found: BTreeSet<u64> = end.ids.iter().copied().map(u64::from).collect();
        same("number of ids", end.ids.len(), found.len())?;
        same(
            "eos",
            found,
            list(&case["expect"]["eos"]).iter().filter_map(Value::as_u64).collect(),
        )
    });
}
