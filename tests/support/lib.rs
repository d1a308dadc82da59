//! What the suites share: where fixtures are, running a pair to the end, and a hub on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

pub mod fake_hub;
pub mod schema;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mlx_rs::{Array, Dtype};
use models::cache::Cache;
use models::checkpoint::Checkpoint;
use models::families::FAMILIES;
use models::family::LoadOptions;
use models::generate::{Decoder, Depth, Limits};
use models::registry::{Entry, Pair, StartRequest};
use models::{Acceptance, Engine, LoadRequest, SamplingParams};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// A family's golden folder.
pub fn golden(family: &str) -> PathBuf {
    root().join("tests/golden").join(family)
}

/// A part of the built-in model: `target` or `drafter`.
pub fn builtin(part: &str) -> PathBuf {
    root().join("assets/builtin").join(part)
}

/// An engine with the built-in pair.
pub fn engine_with_builtin() -> Engine {
    let engine = Engine::start();
    let request = LoadRequest {
        target: builtin("target"),
        drafter: Some(builtin("drafter")),
        ..LoadRequest::default()
    };
    engine.load(request).unwrap();
    engine
}

/// The folder of larger trained checkpoints, where there is one: `CHECKPOINTS_ROOT`, or beside the repository.
pub fn trained(name: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("CHECKPOINTS_ROOT") {
        Some(dir) => PathBuf::from(dir),
        None => root().join("../shared/checkpoints"),
    };
    Some(root.join(name)).filter(|dir| dir.join("config.json").is_file())
}

/// The table cases, where they are: `CASES_ROOT`, or beside the repository.
pub fn cases() -> Option<PathBuf> {
    let root = match std::env::var_os("CASES_ROOT") {
        Some(dir) => PathBuf::from(dir),
        None => root().join("../shared/cases"),
    };
    Some(root).filter(|dir| dir.is_dir())
}

/// A JSON file.
pub fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The arrays of a safetensors file.
pub fn arrays(path: &Path) -> HashMap<String, Array> {
    Array::load_safetensors(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The registry row that knows a checkpoint.
pub fn entry(checkpoint: &Checkpoint) -> &'static Entry {
    FAMILIES
        .iter()
        .find(|f| (f.knows)(checkpoint.model_type()))
        .expect("a known family")
}

/// Loads a pair in f32. Without a drafter folder, the target's own head is used if it has one.
pub fn load(target: &Path, drafter: Option<&Path>) -> Box<dyn Pair> {
    let checkpoint = Checkpoint::open(target).unwrap();
    let family = entry(&checkpoint);
    let separate = drafter.map(|d| Checkpoint::open(d).unwrap());
    let own = (family.head)(&checkpoint).map(|_| &checkpoint);
    let options = LoadOptions {
        dtype: Some(Dtype::Float32),
        ..LoadOptions::default()
    };
    (family.load)(&checkpoint, separate.as_ref().or(own), options).unwrap()
}

/// A finished run.
pub struct Run {
    pub tokens: Vec<u32>,
    pub accepted: Vec<usize>,
    pub drafted: Vec<usize>,
    /// Holds everything but the last token.
    pub cache: Cache,
    /// Host waits the decoder needed.
    pub syncs: usize,
}

/// Generates `n` tokens.
pub fn run(pair: &dyn Pair, prompt: &[u32], block: Option<usize>, sampling: &SamplingParams, n: usize) -> Run {
    run_to(
        pair,
        prompt,
        block,
        sampling,
        Limits {
            max_tokens: n,
            eos: Vec::new(),
        },
    )
}

/// Generates up to the limits.
pub fn run_to(
    pair: &dyn Pair,
    prompt: &[u32],
    block_size: Option<usize>,
    sampling: &SamplingParams,
    limits: Limits,
) -> Run {
    run_wired(pair, prompt, block_size, None, sampling, limits)
}

/// Generates up to the limits with a wiring of the drafter's.
pub fn run_wired(
    pair: &dyn Pair,
    prompt: &[u32],
    block_size: Option<usize>,
    wiring: Option<&str>,
    sampling: &SamplingParams,
    limits: Limits,
) -> Run {
    let sampler = pair.sampler(sampling).unwrap();
    let before = models::generate::sync_count();
    let mut decoder = start(pair, &sampler, prompt, block_size, wiring, limits);
    let (mut tokens, mut accepted, mut drafted) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(round) = decoder.next_round().unwrap() {
        tokens.extend(&round.tokens);
        if round.drafted > 0 {
            accepted.push(round.accepted);
            drafted.push(round.drafted);
        }
    }
    let cache = decoder.finish().unwrap();
    Run {
        tokens,
        accepted,
        drafted,
        cache,
        syncs: models::generate::sync_count() - before,
    }
}

/// Starts a decoder.
pub fn start<'a>(
    pair: &'a dyn Pair,
    sampler: &'a models::sampler::Sampler,
    prompt: &[u32],
    block_size: Option<usize>,
    wiring: Option<&str>,
    limits: Limits,
) -> Box<dyn Decoder + 'a> {
    let progress = &mut |_| ControlFlow::Continue(());
    pair.start(
        sampler,
        StartRequest {
            depth: block_size.map(Depth::block),
            accept: Acceptance::Equality,
            wiring,
            ..StartRequest::new(prompt, limits, progress)
        },
    )
    .unwrap()
    .expect("not stopped")
}

/// The numbers of an array as f32.
pub fn floats(a: &Array) -> Vec<f32> {
    let a = a.as_dtype(Dtype::Float32).unwrap().contiguous().unwrap();
    a.eval().unwrap();
    a.as_slice::<f32>().to_vec()
}

/// Largest absolute difference.
pub fn max_diff(a: &Array, b: &Array) -> f32 {
    let (a, b) = (floats(a), floats(b));
    assert_eq!(a.len(), b.len(), "sizes differ");
    a.iter()
        .zip(&b)
        .map(|(x, y)| (x - y).abs())
        .fold(0.0, |m, d| if d > m || d.is_nan() { d } else { m })
}

/// Whether two arrays hold the same bits.
pub fn same_bits(a: &Array, b: &Array) -> bool {
    let bits = |a: &Array| floats(a).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    a.shape() == b.shape() && a.dtype() == b.dtype() && bits(a) == bits(b)
}

/// Where two caches differ first, in words.
pub fn cache_difference(a: &Cache, b: &Cache) -> Option<String> {
    if a.len != b.len {
        return Some(format!("lengths {} and {}", a.len, b.len));
    }
    for (i, (x, y)) in a.layers.iter().zip(&b.layers).enumerate() {
        match (x.kv.held().unwrap(), y.kv.held().unwrap()) {
            (None, None) => {}
            (Some((k, v)), Some((k2, v2))) => {
                if !same_bits(&k, &k2) {
                    return Some(format!("keys of layer {i}"));
                }
                if !same_bits(&v, &v2) {
                    return Some(format!("values of layer {i}"));
                }
            }
            _ => return Some(format!("presence of keys in layer {i}")),
        }
        if x.state.len() != y.state.len() {
            return Some(format!("number of states in layer {i}"));
        }
        for (j, (s, t)) in x.state.iter().zip(&y.state).enumerate() {
            if !same_bits(s, t) {
                return Some(format!("state {j} of layer {i}"));
            }
        }
    }
    None
}

/// A list of ids in JSON.
pub fn ids(value: &serde_json::Value) -> Vec<u32> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| v.as_u64().expect("an id") as u32)
        .collect()
}

/// Greedy, without anything else.
pub fn greedy() -> SamplingParams {
    SamplingParams::default()
}
