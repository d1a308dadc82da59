//! Every quantization mode against mlx-vlm: the tiny checkpoints of `tests/requantized`, packed here by the same MLX, give
//! the ids and accept lengths that mlx-vlm gave for them (see `requantized/make.py`); and speculation changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use mlx_rs::{Array, Dtype};
use models::checkpoint::{Quantization, QuantizationSpec};
use models::nn::quantize;
use models::registry::Pair;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tests::{arrays, greedy, ids, json, load, root, run};

/// Block sizes of which some have reference figures and all must leave the ids alone.
const BLOCKS: &[usize] = &[2, 3, 4, 6];

fn folder(family: &str) -> PathBuf {
    root().join("tests/requantized").join(family)
}

/// How a module is packed; a mode of its own does not carry over to the exceptions, which are affine unless they say.
fn spec_of(block: &Map<String, Value>, path: &str) -> Option<QuantizationSpec> {
    let whole = |object: &Map<String, Value>| Quantization::parse(object).unwrap().default_spec();
    match block.get(path) {
        Some(Value::Bool(false)) => None,
        Some(Value::Object(own)) => whole(own),
        _ => whole(block),
    }
}

/// Packs the matrices of a checkpoint as its new `quantization` says, everything else in f32. `only` lists the modules
/// to pack; without it, all matrices but convolutions are.
fn pack(from: &Path, to: &Path, quantization: &Value, only: Option<&Value>) -> BTreeMap<String, Array> {
    std::fs::create_dir_all(to).unwrap();
    let mut config = json(&from.join("config.json"));
    if !quantization.is_null() {
        config["quantization"] = quantization.clone();
    }
    std::fs::write(to.join("config.json"), config.to_string()).unwrap();
    let empty = Map::new();
    let block = quantization.as_object().unwrap_or(&empty);
    let mut packed = BTreeMap::new();
    for (name, array) in arrays(&from.join("model.safetensors")) {
        let wide = array.as_dtype(Dtype::Float32).unwrap();
        let path = name.strip_suffix(".weight").unwrap_or("");
        let is_matrix = match only {
            Some(list) => list.as_array().unwrap().iter().any(|listed| listed == path),
            None => !path.is_empty() && wide.ndim() > 1 && !path.ends_with("conv1d"),
        };
        let spec = spec_of(block, path).filter(|_| is_matrix && !quantization.is_null());
        let Some(spec) = spec else {
            packed.insert(name, wide);
            continue;
        };
        for (part, array) in ["weight", "scales", "biases"]
            .iter()
            .zip(quantize(&wide, spec).unwrap())
        {
            packed.insert(format!("{path}.{part}"), array);
        }
    }
    let metadata = HashMap::from([("format".to_owned(), "mlx".to_owned())]);
    Array::save_safetensors(&packed, &metadata, to.join("model.safetensors")).unwrap();
    packed
}

fn sha256(array: &Array) -> String {
    let array = array.contiguous().unwrap();
    array.eval().unwrap();
    let bytes: Vec<u8> = match array.dtype() {
        Dtype::Uint8 => array.as_slice::<u8>().to_vec(),
        Dtype::Uint32 => array.as_slice::<u32>().iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => array.as_slice::<f32>().iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn check(what: &str, pair: &dyn Pair, prompt: &[u32], expected: &Value, blocks: &[usize]) {
    let want = ids(&expected["ids"]);
    let plain = run(pair, prompt, None, &greedy(), want.len());
    assert_eq!(plain.tokens, want, "{what}");
    for &block in blocks {
        let mtp = run(pair, prompt, Some(block), &greedy(), want.len());
        assert_eq!(mtp.tokens, want, "{what}, block {block}");
        if let Some(lens) = expected["accept"].get(block.to_string()) {
            let accepted: Vec<u32> = mtp.accepted.iter().map(|n| *n as u32).collect();
            assert_eq!(accepted, ids(lens), "{what}, block {block}");
        }
    }
}

fn every_mode(family: &str, target: &Path, drafter: &Path, least: usize) {
    let folder = folder(family);
    let reference = json(&folder.join("ref.json"));
    let prompt = ids(&reference["prompt"]);
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str| dir.path().join(name);
    let plain_head = made("head");
    pack(drafter, &plain_head, &Value::Null, None);
    let modes = reference["modes"].as_array().unwrap();
    assert!(modes.len() >= least, "modes are missing");
    for mode in modes {
        let name = mode["name"].as_str().unwrap();
        let packed = pack(target, &made(name), &mode["quantization"], mode.get("packed"));
        // The same numbers as the reference packed: else equal ids would prove nothing.
        for (tensor, sum) in mode["packed_sha256"].as_object().unwrap() {
            assert_eq!(
                sha256(&packed[tensor]),
                sum.as_str().unwrap(),
                "{family} {name}: {tensor}"
            );
        }
        let pair = load(&made(name), Some(&plain_head));
        check(&format!("{family} {name}"), pair.as_ref(), &prompt, mode, BLOCKS);
    }
    for (i, pairing) in reference["heads"].as_array().unwrap().iter().enumerate() {
        let target = pairing["target"].as_str().unwrap();
        let head = made(&format!("head {i}"));
        pack(drafter, &head, &pairing["quantization"], pairing.get("packed"));
        let pair = load(&made(target), Some(&head));
        let what = format!("{family} {target}, head {i}");
        check(&what, pair.as_ref(), &prompt, pairing, BLOCKS);
        // And again with the same loaded pair: ten replies, the same every time.
        for _ in 0..9 {
            check(&what, pair.as_ref(), &prompt, pairing, &[3]);
        }
    }
}

#[test]
fn dense_checkpoints_of_every_mode_give_the_reference_ids() {
    let folder = folder("dense");
    // Affine of every width and group, three float modes, mixed ones.
    every_mode("dense", &folder.join("target"), &folder.join("drafter"), 24);
}

#[test]
fn mixtures_of_every_mode_give_the_reference_ids() {
    let folder = folder("moe");
    every_mode("moe", &folder.join("target"), &folder.join("drafter"), 24);
}

#[test]
fn inkling_checkpoints_of_every_mode_give_the_reference_ids() {
    let golden = tests::golden("inkling");
    every_mode("inkling", &golden.join("mlx"), &golden.join("mlx-mtp"), 11);
}
