//! Checkpoints that look like something else, or whose numbers ask for too much: refused by name, and `inspect` agrees.

use std::path::Path;

use models::{DraftKind, Engine, Error, LoadRequest, extract_head, inspect};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{golden, greedy, ids, run};

use crate::cases::materialise::materialise;

fn made(case: &Value) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    materialise(case, dir.path());
    dir
}

fn refused(target: &Path, drafter: Option<&Path>) -> Error {
    let request = LoadRequest {
        target: target.to_path_buf(),
        drafter: drafter.map(Path::to_path_buf),
        ..LoadRequest::default()
    };
    Engine::start().load(request).unwrap_err()
}

/// The loader refuses it with this kind and name, and `inspect` finds the same.
fn is_refused(case: &Value, kind: &str, name: &str) {
    let dir = made(case);
    let error = refused(&dir.path().join("model"), None);
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(name), "{error}");
    match inspect(&dir.path().join("model")) {
        Err(e) => assert_eq!(e.kind(), kind, "{e}"),
        Ok(inspection) => {
            assert_eq!(inspection.problems[0].kind, kind, "{:?}", inspection.problems);
            assert_ne!(inspection.role, "drafter");
        }
    }
}

#[test]
fn part_of_a_target_is_no_drafter() {
    for (family, embedding) in [("qwen3_5", "embed_tokens"), ("inkling", "llm\\.embed\\.")] {
        let base = format!("{family}/hf");
        let split = |name: &str| {
            json!([
                {"op": "move_tensors", "file": "model.safetensors", "match": embedding, "to": "model-2.safetensors"},
                {"op": "index", "rebuild": ["model.safetensors", "model-2.safetensors"]},
                {"op": "delete_file", "file": name},
            ])
        };
        is_refused(
            &json!({"base": base, "ops": split("model-2.safetensors")}),
            "shard_missing",
            "model-2.safetensors",
        );
        is_refused(
            &json!({"base": base, "ops": [
                {"op": "delete_tensors", "file": "model.safetensors", "match": embedding},
                {"op": "index", "delete": true},
            ]}),
            "tensor_missing",
            "embed",
        );
    }
}

/// The file that is named is the one that is not there, though one that is there lacks a tensor too.
#[test]
fn the_missing_shard_is_named() {
    is_refused(
        &json!({"base": "qwen3_5/mlx", "ops": [
            {"op": "move_tensors", "file": "model.safetensors", "match": "layers\\.3\\.", "to": "model-2.safetensors"},
            {"op": "index", "rebuild": ["model.safetensors", "model-2.safetensors"]},
            {"op": "delete_file", "file": "model-2.safetensors"},
            {"op": "delete_tensors", "file": "model.safetensors", "match": "lm_head"},
        ]}),
        "shard_missing",
        "model-2.safetensors",
    );
}

#[test]
fn a_tensor_of_the_head_that_no_block_takes_is_named() {
    is_refused(
        &json!({"base": "inkling/hf", "ops": [
            {"op": "add_tensor", "file": "mtp.safetensors", "name": "model.mtp.chain_norm.weight", "shape": [64]}]}),
        "tensor_unexpected",
        "model.mtp.chain_norm.weight",
    );
}

#[test]
fn sizes_that_no_file_backs_are_refused() {
    for (field, value) in [("rel_extent", 1 << 20), ("sliding_window_size", 1 << 20)] {
        let path = format!("/text_config/{field}");
        is_refused(
            &json!({"base": "inkling/hf", "ops": [{"op": "config", "set": {path: value}}]}),
            "config_value",
            field,
        );
    }
    is_refused(
        &json!({"base": "qwen3_5/hf", "ops": [
            {"op": "config", "set": {"/text_config/vocab_size": 1 << 24, "/text_config/hidden_size": 1 << 20}}]}),
        "config_value",
        "vocab_size",
    );
}

#[test]
fn eight_bit_weights_of_another_type_are_named() {
    let weight = "model.language_model.layers.3.self_attn.k_proj.weight";
    is_refused(
        &json!({"base": "qwen3_5/hf", "ops": [
            {"op": "add_tensor", "file": "model.safetensors", "name": format!("{weight}_scale_inv"), "shape": [1, 1]},
            {"op": "index", "rebuild": ["model.safetensors"]},
            {"op": "config", "set": {"/quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}},
        ]}),
        "tensor_shape",
        weight,
    );
}

/// Whole numbers of the same length would be read as weights, and load: each kind of tensor of each layout is refused by
/// its name.
#[test]
fn whole_numbers_in_the_place_of_weights_are_refused_wherever_they_stand() {
    for fixture in [
        "qwen3_5/hf",
        "qwen3_5/mlx-q4",
        "qwen3_5/mlx-q4-mtp",
        "qwen3_5_moe/hf",
        "qwen3_5_moe/mlx-q4",
        "qwen3_5_moe/mlx-mtp",
        "inkling/hf",
        "inkling/mlx",
        "inkling/mlx-q4",
        "inkling/mlx-q4-mtp",
    ] {
        let dir = tempfile::tempdir().unwrap();
        crate::heads::copy(&golden(fixture), dir.path());
        let mut tried = 0;
        for name in ["model.safetensors", "mtp.safetensors"] {
            let path = dir.path().join(name);
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
            let mut kinds = std::collections::BTreeSet::new();
            for (tensor, info) in serde_json::from_str::<Value>(header).unwrap().as_object().unwrap() {
                let kind = tensor.replace(|c: char| c.is_ascii_digit(), "");
                if info["dtype"] != "F32" || !kinds.insert(kind) {
                    continue;
                }
                let entry = header.find(&format!("\"{tensor}\":")).unwrap();
                let at = 8 + entry + header[entry..].find("F32").unwrap();
                let write = |letter: &[u8]| {
                    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                    std::os::unix::fs::FileExt::write_at(&file, letter, at as u64).unwrap();
                };
                write(b"U");
                let found = inspect(dir.path()).unwrap().problems;
                let said = found.first().map_or("", |problem| problem.message.as_str());
                assert!(
                    said.contains(&format!("`{tensor}`")) && said.contains("a floating type"),
                    "{fixture}, {tensor}: {said:?}"
                );
                if tried == 0 && !fixture.ends_with("mtp") {
                    assert_eq!(refused(dir.path(), None).to_string(), said, "{fixture}");
                }
                write(b"F");
                tried += 1;
            }
        }
        assert!(tried > 10, "{fixture}: {tried}");
        assert!(inspect(dir.path()).unwrap().problems.is_empty(), "{fixture}");
    }
}

/// What a config says of the target's packing is nothing to a head that is not packed.
#[test]
fn a_dense_head_of_a_packed_repository_is_used() {
    for (target, head) in [("qwen3_5/mlx", "qwen3_5/mlx-mtp"), ("inkling/mlx", "inkling/mlx-mtp")] {
        let dir = made(&json!({"base": target, "ops": [], "drafter": {"base": head, "ops": [
            {"op": "config", "set": {"/quantization_config": {"quant_method": "modelopt"}}}]}}));
        let prompt = ids(&tests::json(&golden(target).join("../ref.json"))["prompt_short"]);
        let odd = tests::load(&dir.path().join("model"), Some(&dir.path().join("drafter")));
        let plain = tests::load(&golden(target), Some(&golden(head)));
        let of = |pair: &dyn models::registry::Pair| {
            let run = run(pair, &prompt, Some(3), &greedy(), 32);
            (run.tokens, run.accepted)
        };
        assert_eq!(of(odd.as_ref()), of(plain.as_ref()), "{head}");
    }
}

/// A packed head whose shapes alone tell how it is packed can be handed on, and is read the same way afterwards.
#[test]
fn a_head_read_by_its_shapes_can_be_extracted() {
    let dir = made(&json!({"base": "qwen3_5/mlx", "ops": [
        {"op": "config", "set": {"/quantization": {"bits": 8, "group_size": 64}}}]}));
    let model = dir.path().join("model");
    std::fs::create_dir(model.join("mtp")).unwrap();
    let head = golden("qwen3_5/mlx-q4-mtp").join("model.safetensors");
    std::fs::copy(head, model.join("mtp/model.safetensors")).unwrap();
    let to = dir.path().join("head");
    extract_head(&model, &to).unwrap();
    let prompt = ids(&tests::json(&golden("qwen3_5").join("ref.json"))["prompt_short"]);
    let accepted = |head: &Path| {
        run(
            tests::load(&model, Some(head)).as_ref(),
            &prompt,
            Some(4),
            &greedy(),
            32,
        )
        .accepted
    };
    assert_eq!(accepted(&to), accepted(&golden("qwen3_5/mlx-q4-mtp")));
    // A folder that holds part of a model already is left alone.
    std::fs::write(dir.path().join("other.safetensors"), b"x").unwrap();
    let taken = extract_head(&model, dir.path()).unwrap_err();
    assert!(taken.to_string().contains("other.safetensors"), "{taken}");
}

#[test]
fn an_unknown_wiring_is_refused_even_where_it_would_not_matter() {
    let engine = Engine::start();
    let request = LoadRequest {
        target: golden("inkling/hf"),
        draft_kind: DraftKind::Auto,
        ..LoadRequest::default()
    };
    engine.load(request).unwrap();
    let request = models::GenerateRequest {
        speculation: models::Speculation::Off,
        wiring: Some("upside-down".to_owned()),
        max_tokens: Some(2),
        ..models::GenerateRequest::new(models::Prompt::Ids(vec![1, 2]))
    };
    let go_on = |_: models::GenerationEvent| std::ops::ControlFlow::Continue(());
    assert_eq!(engine.generate(request, Box::new(go_on)).unwrap_err().kind(), "usage");
}
