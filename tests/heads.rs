//! Every way a head is shipped, on the tiny checkpoints: found where it is, paired with its target, refused by name.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mlx_rs::{Array, Dtype};
use models::checkpoint::Checkpoint;
use models::families::qwen3_5;
use models::family::{Drafter, Family, LoadOptions, Target};
use models::{
    DrafterState, Engine, Error, GenerateRequest, Generated, GenerationEvent, LoadRequest, Loaded, MtpLocation, Prompt,
    Speculation, inspect,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{golden, ids, same_bits};

use crate::cases::materialise::materialise;

/// A checkpoint made of a fixture: `model`, and `drafter` where the case has one.
pub(crate) fn made(case: &Value) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    materialise(case, dir.path());
    dir
}

pub(crate) fn load(target: PathBuf, drafter: Option<PathBuf>) -> Result<(Engine, Loaded), Error> {
    let engine = Engine::start();
    let request = LoadRequest {
        target,
        drafter,
        ..LoadRequest::default()
    };
    engine.load(request).map(|loaded| (engine, loaded))
}

pub(crate) fn generate(engine: &Engine, speculation: Speculation, n: usize) -> Generated {
    let request = GenerateRequest {
        max_tokens: Some(n),
        ignore_eos: true,
        speculation,
        ..GenerateRequest::new(Prompt::Ids(short()))
    };
    let go_on = |_: GenerationEvent| ControlFlow::Continue(());
    engine.generate(request, Box::new(go_on)).unwrap()
}

fn reference() -> Value {
    tests::json(&golden("qwen3_5").join("ref.json"))
}

pub(crate) fn short() -> Vec<u32> {
    ids(&reference()["prompt_short"])
}

/// Block 3 gives the fixture's ids and accept lengths: the head is the right one and its norms are shifted once.
fn drafts_as_the_reference(engine: &Engine, what: &str) {
    let reference = reference();
    let want = ids(&reference["mlx"]["greedy_short"]);
    let reply = generate(engine, Speculation::Block(3), want.len());
    assert_eq!(reply.tokens, want, "{what}");
    let lens = ids(&reference["mlx"]["mtp_block3_short"]["accept_lens"]);
    let accepted = reply.stats.speculation.accepted_per_round;
    assert_eq!(accepted.iter().map(|n| *n as u32).collect::<Vec<_>>(), lens, "{what}");
}

fn source(loaded: &Loaded) -> &str {
    match &loaded.drafter {
        DrafterState::Ready { source, .. } => source,
        DrafterState::Unavailable { reason } => panic!("no drafter: {reason}"),
    }
}

/// Moves the fixture's head into a folder `mtp`, under bare names or with their prefix.
fn in_folder(target: &str, head: &str, file: &str) -> TempDir {
    let dir = made(&json!({"base": target, "ops": []}));
    let folder = dir.path().join("model/mtp");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(golden(head).join("model.safetensors"), folder.join(file)).unwrap();
    dir
}

#[test]
fn a_head_in_the_mtp_folder_is_found() {
    for file in ["model.safetensors", "weights.safetensors"] {
        let dir = in_folder("qwen3_5/mlx", "qwen3_5/mlx-mtp", file);
        let model = dir.path().join("model");
        let inspection = inspect(&model).unwrap();
        assert_eq!(
            (inspection.role, inspection.mtp.location, inspection.mtp.tensors),
            ("both", MtpLocation::Subfolder, 15)
        );
        assert_eq!(inspection.mtp.files, [format!("mtp/{file}")]);
        let (engine, loaded) = load(model, None).unwrap();
        assert!(source(&loaded).contains(&format!("mtp/{file}")), "{}", source(&loaded));
        drafts_as_the_reference(&engine, file);
    }
}

/// Such a head has no config of its own; its shapes tell how it is packed, whatever its target is.
#[test]
fn a_packed_head_in_the_mtp_folder_is_read_by_its_shapes() {
    for target in ["qwen3_5/mlx", "qwen3_5/mlx-q4"] {
        let folder = in_folder(target, "qwen3_5/mlx-q4-mtp", "model.safetensors");
        let (engine, loaded) = load(folder.path().join("model"), None).unwrap();
        assert!(source(&loaded).contains("`mtp` folder"));
        let beside = load(golden(target), Some(golden("qwen3_5/mlx-q4-mtp"))).unwrap().0;
        for block in [2, 3, 5] {
            let (a, b) = (
                generate(&engine, Speculation::Block(block), 64),
                generate(&beside, Speculation::Block(block), 64),
            );
            assert_eq!(a.tokens, b.tokens, "{target}");
            assert_eq!(
                a.stats.speculation.accepted_per_round, b.stats.speculation.accepted_per_round,
                "{target}"
            );
        }
    }
}

#[test]
fn of_two_heads_one_is_used_and_said() {
    let dir = made(&json!({"base": "qwen3_5/hf", "ops": [
        {"op": "copy_tensors", "file": "model.safetensors", "match": "^mtp\\.", "to": "stray.safetensors", "fill": 0.0},
    ]}));
    let model = dir.path().join("model");
    std::fs::create_dir(model.join("mtp")).unwrap();
    std::fs::copy(model.join("stray.safetensors"), model.join("mtp/weights.safetensors")).unwrap();
    let (engine, loaded) = load(model.clone(), None).unwrap();
    let said = loaded.warnings.join("; ");
    assert!(source(&loaded).contains("own files"), "{}", source(&loaded));
    assert!(
        said.contains("stray.safetensors") && said.contains("mtp/weights.safetensors"),
        "{said}"
    );
    drafts_as_the_reference(&engine, "the one in the index");
    assert!(
        inspect(&model)
            .unwrap()
            .warnings
            .join("; ")
            .contains("mtp/weights.safetensors")
    );
}

/// Only config.json and the head are downloaded of a repository whose index lists the target's shards.
#[test]
fn a_head_downloaded_without_its_target_is_used_in_spite_of_the_index() {
    let dir = made(
        &json!({"base": "qwen3_5/mlx", "ops": [], "drafter": {"base": "qwen3_5/hf", "ops": [
            {"op": "move_tensors", "file": "model.safetensors", "match": "^mtp\\.", "to": "mtp.safetensors"},
            {"op": "index", "remove": "^mtp\\."},
            {"op": "delete_file", "file": "model.safetensors"},
        ]}}),
    );
    let drafter = dir.path().join("drafter");
    let inspection = inspect(&drafter).unwrap();
    assert_eq!((inspection.role, inspection.mtp.tensors), ("drafter", 15));
    assert!(inspection.problems.is_empty(), "{:?}", inspection.problems);
    let (engine, _) = load(dir.path().join("model"), Some(drafter.clone())).unwrap();
    drafts_as_the_reference(&engine, "mtp.safetensors");
    let alone = load(drafter, None).unwrap_err();
    assert!(["shard_missing", "not_standalone"].contains(&alone.kind()), "{alone}");
}

#[test]
fn a_config_that_announces_a_head_is_no_head() {
    let (engine, loaded) = load(golden("qwen3_5/mlx"), None).unwrap();
    let DrafterState::Unavailable { reason } = &loaded.drafter else {
        panic!("there is no head")
    };
    assert!(
        reason.contains("announces") && reason.contains("qwen3_5_mtp"),
        "{reason}"
    );
    let reply = generate(&engine, Speculation::Block(4), 8);
    assert_eq!(reply.stats.speculation.reason.as_deref(), Some(reason.as_str()));
    // A known model is told which repository to fetch.
    let dir = tempfile::tempdir().unwrap();
    let named = dir
        .path()
        .join("models--mlx-community--Qwen3.8-27B-4bit/snapshots/0a1b");
    copy(&golden("qwen3_5/mlx"), &named);
    let note = inspect(&named).unwrap().mtp.note;
    assert!(note.contains("mlx-community/Qwen3.8-27B-MTP-bf16"), "{note}");
    let missing = load(named, Some(golden("qwen3_5/mlx"))).unwrap_err();
    assert!(
        matches!(&missing, Error::HeadMissing { announced: true, .. }),
        "{missing}"
    );
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::write(to.join(path.file_name().unwrap()), std::fs::read(&path).unwrap()).unwrap();
    }
}

#[test]
fn heads_of_another_generation_are_doubted_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str, fixture: &str| {
        let path = dir.path().join(name);
        copy(&golden(fixture), &path);
        path
    };
    let target = place("Qwen3.8-27B-4bit", "qwen3_5/mlx");
    for (name, is_doubted) in [
        ("Qwen3.8-27B-MTP-bf16", false),
        ("Qwen3.6-27B-MTP-bf16", true),
        ("Qwen3.8-9B-MTP", true),
        ("some-head", false),
    ] {
        let (_, loaded) = load(target.clone(), Some(place(name, "qwen3_5/mlx-mtp"))).unwrap();
        let said = loaded.warnings.iter().any(|w| w.contains("by its name"));
        assert_eq!(said, is_doubted, "{name}: {:?}", loaded.warnings);
    }
}

/// What rounds cost is kept by the head that is used, also where it lies in a folder of its own inside the target's.
#[test]
fn costs_are_those_of_the_head_that_is_used() {
    let keys = |head: &str| {
        let dir = made(&json!({"base": "qwen3_5/mlx", "ops": []}));
        copy(&golden(head), &dir.path().join("model/mtp"));
        let request = LoadRequest {
            target: dir.path().join("model"),
            calibration: models::Calibration::On {
                conditions: "mains".to_owned(),
            },
            ..LoadRequest::default()
        };
        let loaded = Engine::start().load(request).unwrap();
        assert!(matches!(&loaded.drafter, DrafterState::Ready { source, .. } if source.contains("`mtp` folder")));
        (loaded.check_key, loaded.costs_key)
    };
    let (dense, packed) = (keys("qwen3_5/mlx-mtp"), keys("qwen3_5/mlx-q4-mtp"));
    assert_eq!(dense.0, packed.0);
    assert_ne!(dense.1, packed.1);
    assert_eq!(keys("qwen3_5/mlx-mtp"), dense);
}

/// The 1 is added to the norms of a raw head and of a raw target once: both layouts compute the same bits.
#[test]
fn raw_and_converted_layouts_compute_the_same_bits() {
    let options = LoadOptions {
        dtype: Some(Dtype::Float32),
        ..LoadOptions::default()
    };
    let outputs = |target: &str, head: &Path| {
        let target = qwen3_5::Family::load_target(&Checkpoint::open(&golden(target)).unwrap(), options).unwrap();
        let head = Checkpoint::open_head(head).unwrap();
        let head = qwen3_5::Family::load_drafter(&head, &target, options).unwrap();
        let prompt = short();
        let tokens = Array::from_slice(&prompt, &[1, prompt.len() as i32]);
        let hidden = target.forward(&tokens, &mut target.new_cache()).unwrap();
        let mut state = head.new_state(0);
        head.absorb(&target, &mut state, &tokens, &hidden).unwrap();
        let mut arrays = vec![target.logits(&hidden).unwrap()];
        let (keys, values) = state.cache().layers[0].kv.held().unwrap().unwrap();
        arrays.extend([keys, values]);
        let mut pick = |logits: &Array, _: usize| Ok(mlx_rs::ops::indexing::argmax_axis(logits, -1, false)?);
        let seed: Vec<Array> = head.arrays(&state).into_iter().cloned().collect();
        arrays.push(seed.last().unwrap().clone());
        head.draft(&target, &mut state, 2, None, &mut pick).unwrap();
        arrays
    };
    for family in ["qwen3_5", "qwen3_5_moe"] {
        let raw = outputs(&format!("{family}/hf"), &golden(&format!("{family}/hf")));
        let converted = outputs(&format!("{family}/mlx"), &golden(&format!("{family}/mlx-mtp")));
        for (i, (a, b)) in raw.iter().zip(&converted).enumerate() {
            assert!(same_bits(a, b), "{family}: output {i} differs");
        }
    }
}

#[test]
fn dedicated_embeddings_are_refused_by_name() {
    let dir = made(
        &json!({"base": "qwen3_5/mlx", "ops": [], "drafter": {"base": "qwen3_5/mlx-mtp", "ops": [
        {"op": "config", "set": {"/text_config/mtp_use_dedicated_embeddings": true}}]}}),
    );
    let refused = load(dir.path().join("model"), Some(dir.path().join("drafter"))).unwrap_err();
    assert!(
        refused.to_string().contains("mtp_use_dedicated_embeddings"),
        "{refused}"
    );
    assert!(!inspect(&dir.path().join("drafter")).unwrap().problems.is_empty());
}

/// Heads of another precision than their target, each in its place: ten replies in one process, the same every time.
#[test]
fn mixed_precision_pairs_repeat() {
    for (target, head) in [("mlx-q4", "mlx-mtp"), ("mlx", "mlx-q4-mtp"), ("mlx-q4", "mlx-q4-mtp")] {
        let (engine, _) = load(golden("qwen3_5").join(target), Some(golden("qwen3_5").join(head))).unwrap();
        let plain = generate(&engine, Speculation::Off, 64);
        let first = generate(&engine, Speculation::Block(4), 64);
        assert!(first.stats.speculation.accepted > 0, "{target} {head}");
        for _ in 0..10 {
            let again = generate(&engine, Speculation::Block(4), 64);
            assert_eq!(again.tokens, plain.tokens, "{target} {head}");
            assert_eq!(
                again.stats.speculation.accepted_per_round,
                first.stats.speculation.accepted_per_round
            );
        }
    }
}

#[test]
fn other_formats_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("model-Q4_K_M.gguf"), b"GGUF").unwrap();
    for path in [dir.path().to_path_buf(), dir.path().join("model-Q4_K_M.gguf")] {
        let refused = load(path, None).unwrap_err();
        assert_eq!(refused.kind(), "unsupported_quantization");
        assert!(refused.to_string().contains("gguf"), "{refused}");
    }
    std::fs::write(dir.path().join("config.json"), r#"{"model_type": "qwen3_5"}"#).unwrap();
    assert!(
        load(dir.path().to_path_buf(), None)
            .unwrap_err()
            .to_string()
            .contains("gguf")
    );
    std::fs::remove_file(dir.path().join("model-Q4_K_M.gguf")).unwrap();
    let empty = load(dir.path().to_path_buf(), None).unwrap_err();
    assert!(matches!(empty, Error::WeightsMissing { .. }), "{empty}");
}

/// A head written to a folder of its own: the same bytes, readable, and drafting the same tokens.
#[test]
fn an_extracted_head_is_byte_identical_and_drafts_the_same() {
    for (source, target, is_raw) in [
        ("qwen3_5/hf", "qwen3_5/mlx", true),
        ("qwen3_5/mlx-mtp", "qwen3_5/mlx", false),
        ("qwen3_5/mlx-q4-mtp", "qwen3_5/mlx-q4", false),
        ("qwen3_5_moe/hf", "qwen3_5_moe/mlx", true),
        ("qwen3_5_moe/mlx-q4-mtp", "qwen3_5_moe/mlx-q4", false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("made/head");
        let extracted = models::extract_head(&golden(source), &to).unwrap();
        let bytes = |path: &Path| std::fs::read(path).unwrap();
        let (theirs, ours) = (
            bytes(&golden(source).join("model.safetensors")),
            bytes(&to.join("model.safetensors")),
        );
        let (theirs, ours) = (
            safetensors::SafeTensors::deserialize(&theirs).unwrap(),
            safetensors::SafeTensors::deserialize(&ours).unwrap(),
        );
        assert_eq!(ours.len(), extracted.tensors, "{source}");
        for (name, tensor) in ours.tensors() {
            assert_eq!(name.starts_with("mtp."), is_raw, "{name}");
            let same = theirs.tensor(&name).unwrap();
            assert_eq!(
                (same.dtype(), same.shape(), same.data()),
                (tensor.dtype(), tensor.shape(), tensor.data())
            );
        }
        let inspection = inspect(&to).unwrap();
        assert_eq!(
            (inspection.role, inspection.problems.len()),
            ("drafter", 0),
            "{:?}",
            inspection.problems
        );
        let original = if is_raw {
            format!("{target}-mtp")
        } else {
            source.to_owned()
        };
        let drafted = |head: PathBuf| {
            let (engine, _) = load(golden(target), Some(head)).unwrap();
            [3, 5].map(|block| {
                generate(&engine, Speculation::Block(block), 48)
                    .stats
                    .speculation
                    .accepted_per_round
            })
        };
        assert_eq!(drafted(to.clone()), drafted(golden(&original)), "{source}");
        let again = models::extract_head(&golden(source), &to).unwrap_err();
        assert!(again.to_string().contains("exists already"), "{again}");
    }
    let dir = tempfile::tempdir().unwrap();
    let none = models::extract_head(&golden("qwen3_5/mlx"), &dir.path().join("x")).unwrap_err();
    assert!(matches!(none, Error::HeadMissing { .. }), "{none}");
    assert!(!dir.path().join("x").exists(), "nothing is left of a failure");
}
