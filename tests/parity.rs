//! The engine against reference outputs of mlx-vlm for tiny random checkpoints (`tests/golden`).

use mlx_rs::{Array, Dtype};
use models::cache::Cache;
use models::checkpoint::Checkpoint;
use models::families::{FAMILIES, inkling, qwen3_5};
use models::family::{Family, LoadOptions, Target};
use tests::{arrays, golden, greedy, ids, json, load, max_diff, run};

/// Layout of the target, folder of its drafter, and whose reference figures hold for it.
const LAYOUTS: &[(&str, Option<&str>, &str)] = &[
    ("hf", None, "mlx"),
    ("mlx", Some("mlx-mtp"), "mlx"),
    ("mlx-q4", Some("mlx-q4-mtp"), "mlx-q4"),
];

#[test]
fn every_family_has_goldens() {
    for family in FAMILIES {
        assert!(
            golden(family.name).join("ref.json").is_file(),
            "no goldens for `{}`",
            family.name
        );
    }
}

fn goldens() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(golden(""))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn ids_and_accept_lengths_equal_the_reference() {
    for name in goldens() {
        let dir = golden(&name);
        let reference = json(&dir.join("ref.json"));
        for (layout, drafter, figures) in LAYOUTS {
            let pair = load(&dir.join(layout), drafter.map(|d| dir.join(d)).as_deref());
            for which in ["short", "long"] {
                let prompt = ids(&reference[format!("prompt_{which}")]);
                let expected = ids(&reference[layout][format!("greedy_{which}")]);
                let plain = run(pair.as_ref(), &prompt, None, &greedy(), expected.len());
                assert_eq!(plain.tokens, expected, "{name} {layout} {which} plain");
                for block in [2usize, 3, 4, 6] {
                    let case = format!("{name} {layout} {which} block {block}");
                    let figures = &reference[figures][format!("mtp_block{block}_{which}")];
                    let mtp = run(pair.as_ref(), &prompt, Some(block), &greedy(), expected.len());
                    assert_eq!(mtp.tokens, expected, "{case}");
                    let lens = |v: &serde_json::Value| ids(v).iter().map(|n| *n as usize).collect::<Vec<_>>();
                    assert_eq!(mtp.accepted, lens(&figures["accept_lens"]), "{case}: accept lengths");
                    assert_eq!(mtp.drafted, lens(&figures["draft_lens"]), "{case}: draft lengths");
                }
            }
        }
    }
}

/// Tolerance of f32 values against the reference, which sums in another order.
const TOLERANCE: f32 = 1e-4;

fn logits_and_hidden<F: Family>() {
    let dir = golden(F::NAME);
    let reference = json(&dir.join("ref.json"));
    let values = arrays(&dir.join("ref.safetensors"));
    for layout in ["hf", "mlx", "mlx-q4"] {
        let figures = if layout == "hf" { "mlx" } else { layout };
        let checkpoint = Checkpoint::open(&dir.join(layout)).unwrap();
        let target = F::load_target(
            &checkpoint,
            LoadOptions {
                dtype: Some(Dtype::Float32),
                ..LoadOptions::default()
            },
        )
        .unwrap();
        let forward = |prompt: &[u32], cache: &mut Cache| {
            let hidden = target
                .forward(&Array::from_slice(prompt, &[1, prompt.len() as i32]), cache)
                .unwrap();
            let logits = target.logits(&hidden).unwrap();
            (hidden, logits.squeeze_axes(&[0]).unwrap())
        };
        let mut cache = target.new_cache();
        let (hidden, logits) = forward(&ids(&reference["prompt_short"]), &mut cache);
        let close = |what: &str, ours: &Array, theirs: &str| {
            let diff = max_diff(ours, &values[&format!("{figures}.{theirs}")]);
            assert!(diff <= TOLERANCE, "{} {layout} {what}: differs by {diff:e}", F::NAME);
        };
        close("logits", &logits, "short.logits");
        close("hidden states", hidden.array(), "short.hidden_for_mtp");
        if figures == "mlx" {
            for (i, layer) in cache.layers.iter().enumerate() {
                if let Some((keys, values)) = layer.kv.held().unwrap() {
                    close("keys", &keys, &format!("short.cache.{i}.k"));
                    close("values", &values, &format!("short.cache.{i}.v"));
                }
                for (slot, state) in layer.state.iter().enumerate() {
                    close("state", state, &format!("short.cache.{i}.slot{slot}"));
                }
            }
        }
        let long = ids(&reference["prompt_long"]);
        let (_, logits) = forward(&long, &mut target.new_cache());
        let n = long.len() as i32;
        let last = mlx_rs::ops::split_at_indices(&logits, &[n - 4], 0).unwrap().remove(1);
        close("last logits of the long prompt", &last, "long.logits_last4");
    }
}

#[test]
fn qwen3_5_logits_hidden_states_and_caches_are_close_to_the_reference() {
    logits_and_hidden::<qwen3_5::Family>();
}

#[test]
fn inkling_logits_hidden_states_and_caches_are_close_to_the_reference() {
    logits_and_hidden::<inkling::Family>();
}
