use serde_json::{Value, json};

use super::*;
use crate::hub::RemoteFile;
use crate::hub::select::{is_allowed, select};

fn catalog() -> Catalog {
    Catalog::parse(TEXT).unwrap()
}

#[test]
fn the_built_in_catalogue_is_whole() {
    let catalog = catalog();
    assert_eq!(&catalog, Catalog::built_in());
    assert!(catalog.entries().len() >= 10);
    let used: BTreeSet<&String> = catalog.entries().iter().flat_map(|e| e.facts.values()).collect();
    assert_eq!(used, catalog.sources.keys().collect(), "sources that nothing names");
    for entry in catalog.entries() {
        assert!(
            !entry.verified,
            "{}: nothing was checked against the live hub",
            entry.id
        );
    }
}

#[test]
fn the_pairs_of_the_sources_come_first() {
    let repos = |entry: &Entry| entry.parts().map(|p| p.repo.to_string()).collect::<Vec<_>>();
    let catalog = catalog();
    let first: Vec<_> = catalog.entries().iter().take(3).map(repos).collect();
    assert_eq!(
        first,
        [
            &["mlx-community/Qwen3.8-27B-4bit", "mlx-community/Qwen3.8-27B-MTP-bf16"][..],
            &["mlx-community/Inkling-Small-mlx-4bit", "thinkingmachines/Inkling-Small"],
            &["inference-optimization/Inkling-0.6B-A0.6B"],
        ]
    );
}

/// A drafter is its config and its weights; of an original with 500 GB no shard is among them.
#[test]
fn a_drafters_patterns_choose_a_head_only() {
    let paths = [
        "config.json",
        "mtp.safetensors",
        "model.safetensors",
        "tokenizer.json",
        "README.md",
        "model.safetensors.index.json",
        "run.py",
    ];
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    for entry in catalog().entries() {
        for pattern in entry.parts().flat_map(|part| &part.include) {
            assert!(is_allowed(&pattern.replace('*', "x")), "{}: `{pattern}`", entry.id);
        }
        let Some(drafter) = &entry.drafter else { continue };
        let is_original = !drafter.repo.name().contains("MTP");
        let files: Vec<RemoteFile> = paths
            .iter()
            .chain(shards.iter().filter(|_| is_original))
            .map(|path| RemoteFile {
                path: (*path).to_owned(),
                size: None,
                sha256: None,
                git_oid: None,
            })
            .collect();
        let chosen = select(&files, &drafter.include, &drafter.exclude).unwrap();
        let chosen: Vec<&str> = chosen.iter().map(|file| file.path.as_str()).collect();
        let weights: &[&str] = if is_original {
            &["mtp.safetensors"]
        } else {
            &["mtp.safetensors", "model.safetensors"]
        };
        assert_eq!(chosen, [&["config.json"], weights].concat(), "{}", entry.id);
    }
}

#[test]
fn a_request_says_what_the_entry_says() {
    let catalog = catalog();
    let requests = catalog.entry("inkling-small-4bit").unwrap().requests();
    assert_eq!(requests[1].repo.to_string(), "thinkingmachines/Inkling-Small");
    assert_eq!(requests[1].include, ["config.json", "mtp.safetensors"]);
    assert_eq!(
        (requests.len(), requests[1].head_only, &requests[1].revision),
        (2, false, &None)
    );
    assert_eq!(catalog.entry("qwen3.8-27b-4bit").unwrap().bytes(), Some(16_899_400_335));
    assert_eq!(
        catalog.entry("qwen3.5-4b-4bit").unwrap().bytes(),
        None,
        "a part is not known"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(TEXT).unwrap();
        change(&mut value);
        match Catalog::parse(&value.to_string()) {
            Err(HubError::BadFile { file, message }) => format!("{file}: {message}"),
            other => panic!("{other:?}"),
        }
    };
    type Change = fn(&mut Value);
    let first: fn(&mut Value) -> &mut Value = |v| &mut v["entries"][0];
    let cases: [(Change, &str); 14] = [
        (|v| v["version"] = json!(2), "its version is 2"),
        (
            |v| v["entries"][0]["target"]["repo"] = json!("../evil"),
            "is not the name of a model repository",
        ),
        (
            |v| v["entries"][0]["target"]["reop"] = json!("a/b"),
            "unknown field `reop`",
        ),
        (
            |v| v["entries"][1]["id"] = json!("qwen3.8-27b-4bit"),
            "`qwen3.8-27b-4bit` is there twice",
        ),
        (
            |v| v["entries"][0]["id"] = json!("Big One"),
            "`Big One`: its id or name",
        ),
        (
            |v| v["entries"][0]["target"]["revision"] = json!("main"),
            "target: its revision is no commit",
        ),
        (
            |v| v["entries"][0]["drafter"]["revision"] = json!("a".repeat(40)),
            "pinned together",
        ),
        (
            |v| v["entries"][0]["memory"]["peak_bytes"] = json!(16_899_400_334_u64),
            "less memory than its files",
        ),
        (
            |v| v["entries"][0]["target"]["bytes"] = json!(0),
            "`bytes` and `bytes_are`",
        ),
        (
            |v| v["entries"][0]["target"]["bytes_are"] = json!(null),
            "`bytes` and `bytes_are`",
        ),
        (
            |v| v["entries"][0]["drafter"]["license"] = json!("MIT"),
            "`drafter.license` has no source",
        ),
        (
            |v| v["entries"][0]["target"]["license"] = json!(null),
            "`target.license` has a source, but",
        ),
        (
            |v| v["entries"][0]["facts"]["pair"] = json!("hearsay"),
            "the source `hearsay`, which is not listed",
        ),
        (|v| v["entries"][0]["target"]["bytes"] = json!(-1), "invalid value"),
    ];
    for (change, said) in cases {
        let message = broken(&|value| change(value));
        assert!(
            message.starts_with("catalog.json: ") && message.contains(said),
            "{message}"
        );
    }
    assert!(broken(&|value| *first(value) = json!({})).contains("missing field"));
    assert!(Catalog::parse("[").is_err());
}
