//! Which files make an Inkling model, and what a wrong one is told.

use std::path::Path;

use models::Error;
use models::checkpoint::Checkpoint;
use models::families::inkling::Family;
use models::family::{Family as _, HeadPlace};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype as Stored;
use serde_json::{Value, json};
use tests::{entry, golden, greedy, load, max_diff, run, same_bits};

use crate::inkling::{OPTIONS, Tensors, changed, pieces, prompt, target, tiny};

fn refused(layout: &str, change: impl FnOnce(&mut Value, &mut Tensors)) -> Error {
    let copy = changed(layout, change);
    Family::load_target(&Checkpoint::open(copy.path()).unwrap(), OPTIONS).expect_err("a refusal")
}

#[test]
fn a_head_without_local_ids_in_its_config_is_told_by_its_tables() {
    let copy = changed("mlx-mtp", |config, _| {
        config.as_object_mut().unwrap().retain(|k, _| !k.contains("mtp_l"));
        let text = config["text_config"].as_object_mut().unwrap();
        text.retain(|k, _| !k.contains("mtp"));
    });
    let drafter = Family::load_drafter(&Checkpoint::open(copy.path()).unwrap(), &tiny("mlx"), OPTIONS).unwrap();
    assert!(drafter.is_sliding(0) && !drafter.is_sliding(1) && drafter.is_sliding(2));
}

#[test]
fn a_head_is_found_by_its_tensors_and_not_by_its_config() {
    let head = |dir: &Path| Family::head(&Checkpoint::open(dir).unwrap());
    let stray = head(&golden("inkling").join("hf")).unwrap();
    assert_eq!((stray.tensors, stray.place), (60, HeadPlace::Stray));
    assert_eq!(stray.files, ["mtp.safetensors"]);
    // The converted target still says that it has three blocks.
    assert_eq!(head(&golden("inkling").join("mlx")), None);
    let alone = head(&golden("inkling").join("mlx-mtp")).unwrap();
    assert_eq!((alone.tensors, alone.place), (55, HeadPlace::Standalone));
    // Inside the target's own files, and as a folder of its own; without a word in the config.
    let bytes = std::fs::read(golden("inkling").join("hf/mtp.safetensors")).unwrap();
    let silent = |config: &mut Value| config.as_object_mut().unwrap().retain(|k, _| k != "mtp_config");
    let add = |tensors: &mut Tensors| {
        for (name, view) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            tensors.insert(name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()));
        }
    };
    let own = changed("hf", |config, tensors| {
        silent(config);
        add(tensors);
    });
    let found = head(own.path()).unwrap();
    assert_eq!((found.tensors, found.place), (60, HeadPlace::Own));
    let folder = changed("hf", |_, tensors| {
        tensors.clear();
        add(tensors);
    });
    assert!(head(folder.path()).unwrap().is_standalone());
    let prompt = prompt("short");
    let expected = run(
        load(&golden("inkling").join("hf"), None).as_ref(),
        &prompt,
        Some(4),
        &greedy(),
        40,
    );
    let pairs = [
        load(own.path(), None),
        load(&golden("inkling").join("mlx"), Some(folder.path())),
        load(&golden("inkling").join("mlx"), Some(&golden("inkling").join("hf"))),
    ];
    for (i, pair) in pairs.iter().enumerate() {
        let run = run(pair.as_ref(), &prompt, Some(4), &greedy(), 40);
        assert_eq!(
            (run.tokens, run.accepted),
            (expected.tokens.clone(), expected.accepted.clone()),
            "{i}"
        );
    }
}

#[test]
fn older_conversions_and_towers_load_alike() {
    let tokens = prompt("long");
    let (expected, _) = pieces(&tiny("mlx"), [tokens.as_slice()]);
    let older = changed("mlx", |_, tensors| {
        tensors.retain(|name, _| !name.ends_with("gate_scale") && !name.ends_with("out_scale"));
        for (name, (_, shape, data)) in tensors.iter_mut().filter(|(n, _)| n.contains("shared_experts")) {
            // One matrix an expert: rows come apart as they lie, columns have to be cut.
            let (rows, columns) = (shape[0], shape[1]);
            if name.contains("down_proj") {
                let half = columns / 2 * 4;
                let cut = |expert: usize| {
                    data.chunks(columns * 4)
                        .flat_map(move |r| &r[expert * half..(expert + 1) * half])
                };
                *data = cut(0).chain(cut(1)).copied().collect();
                *shape = vec![2, rows, columns / 2];
            } else {
                *shape = vec![2, rows / 2, columns];
            }
        }
        let image = (Stored::F32, vec![1], vec![0; 4]);
        tensors.insert("vision_tower.patch.weight".to_owned(), image);
    });
    let (logits, _) = pieces(&target(older.path()), [tokens.as_slice()]);
    assert!(same_bits(&logits, &expected));
    let notes = |dir: &Path| {
        let checkpoint = Checkpoint::open(dir).unwrap();
        (entry(&checkpoint).notes)(&checkpoint)
    };
    assert!(notes(older.path())[0].contains("image and audio"));
    assert!(notes(&golden("inkling").join("hf")).is_empty());
}

#[test]
fn published_four_bit_experts_are_the_numbers_they_stand_for() {
    let path = |name: &str| format!("model.llm.layers.1.mlp.experts.{name}");
    let (experts, hidden, width) = (4, 64, 32);
    let bytes = |n: usize, seed: usize, mask: u8, base: u8| -> Vec<u8> {
        (0..n)
            .map(|i| base + ((((i * 131 + seed) * 29) >> 3) as u8 & mask))
            .collect()
    };
    let scale2 = |seed: usize| {
        (0..experts)
            .map(|e| 0.02 + 0.01 * ((e + seed) % 3) as f32)
            .collect::<Vec<f32>>()
    };
    let e2m1 = |nibble: u8| {
        let size = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(nibble & 7)];
        if nibble & 8 == 0 { size } else { -size }
    };
    let e4m3 = |b: u8| (1.0 + f32::from(b & 7) / 8.0) * 2f32.powi(i32::from(b >> 3) - 7);
    let parts = [("w13_weight", 2 * width, hidden, 1), ("w2_weight", hidden, width, 2)];
    let floats = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let packed = changed("hf", |config, tensors| {
        config["quantization_config"] = json!({"quant_method": "modelopt", "quant_algo": "NVFP4"});
        for (name, rows, input, seed) in parts {
            let n = experts * rows * input;
            tensors.insert(
                path(name),
                (Stored::U8, vec![experts, rows, input / 2], bytes(n / 2, seed, 255, 0)),
            );
            let scales = (
                Stored::F8_E4M3,
                vec![experts, rows, input / 16],
                bytes(n / 16, seed, 15, 48),
            );
            tensors.insert(path(&format!("{name}.scale")), scales);
            let second = (Stored::F32, vec![experts], floats(&scale2(seed)));
            tensors.insert(path(&format!("{name}.scale2")), second);
            tensors.insert(path(&format!("{name}.input_amax")), (Stored::BF16, vec![1], vec![0; 2]));
            tensors.insert(
                path(&format!("{name}.original_shape")),
                (Stored::I64, vec![3], vec![0; 24]),
            );
        }
    });
    let plain = changed("hf", |_, tensors| {
        for (name, rows, input, seed) in parts {
            let n = experts * rows * input;
            let (codes, scales, second) = (bytes(n / 2, seed, 255, 0), bytes(n / 16, seed, 15, 48), scale2(seed));
            let values: Vec<f32> = (0..n)
                .map(|i| e2m1(codes[i / 2] >> (4 * (i % 2))) * e4m3(scales[i / 16]) * second[i / (rows * input)])
                .collect();
            tensors.insert(path(name), (Stored::F32, vec![experts, rows, input], floats(&values)));
        }
    });
    let tokens = prompt("short");
    let (ours, _) = pieces(&target(packed.path()), [tokens.as_slice()]);
    let (expected, _) = pieces(&target(plain.path()), [tokens.as_slice()]);
    let diff = max_diff(&ours, &expected);
    assert!(diff < 1e-4, "differs by {diff:e}");
    assert!(models::inspect(packed.path()).unwrap().problems.is_empty());
}

#[test]
fn what_is_wrong_is_named() {
    let field = |value: Value, name: &'static str| {
        let error = refused("hf", |config, _| config["text_config"][name] = value);
        assert!(
            matches!(&error, Error::ConfigValue { field, .. } if field == name),
            "{name}: {error}"
        );
    };
    field(json!([0, 9]), "local_layer_ids");
    field(json!(["hybrid"]), "layer_types");
    field(json!(3), "num_key_value_heads");
    field(json!(161), "unpadded_vocab_size");
    field(json!(0), "log_scaling_n_floor");
    field(json!(-0.1), "log_scaling_alpha");
    field(json!(0.0), "logits_mup_width_multiplier");
    field(json!(5), "num_experts_per_tok");
    let tensor = "model.llm.layers.1.attn.wq_du.weight";
    let missing = refused("hf", |_, tensors| drop(tensors.remove(tensor)));
    assert!(
        matches!(&missing, Error::TensorMissing { name } if name == tensor),
        "{missing}"
    );
    let shape = refused("hf", |_, tensors| tensors.get_mut(tensor).unwrap().1 = vec![32, 128]);
    assert!(
        matches!(&shape, Error::TensorShape { name, .. } if name == tensor),
        "{shape}"
    );
    let copy = |_: &mut Value, tensors: &mut Tensors| {
        let extra = tensors[tensor].clone();
        tensors.insert("model.llm.layers.1.attn.wq_du.bias".to_owned(), extra);
    };
    let left = refused("hf", copy);
    assert!(
        matches!(&left, Error::TensorUnexpected { name, .. } if name.ends_with("wq_du.bias")),
        "{left}"
    );
}

#[test]
fn an_extracted_head_drafts_the_same() {
    let prompt = prompt("short");
    let target = golden("inkling").join("hf");
    let expected = run(load(&target, None).as_ref(), &prompt, Some(4), &greedy(), 40);
    for source in ["hf", "mlx-mtp"] {
        let dir = tempfile::tempdir().unwrap();
        let extracted = models::extract_head(&golden("inkling").join(source), &dir.path().join("head")).unwrap();
        let inspection = models::inspect(&dir.path().join("head")).unwrap();
        assert_eq!(
            (inspection.role, inspection.mtp.tensors),
            ("drafter", extracted.tensors),
            "{source}"
        );
        assert!(inspection.problems.is_empty(), "{source}: {:?}", inspection.problems);
        let pair = load(&target, Some(&dir.path().join("head")));
        let run = run(pair.as_ref(), &prompt, Some(4), &greedy(), 40);
        assert_eq!(
            (run.tokens, run.accepted),
            (expected.tokens.clone(), expected.accepted.clone()),
            "{source}"
        );
    }
}

/// Without a word about it the engine tries every wiring for some rounds, says which it used, and keeps the best; what
/// was measured before is not measured again. The text never changes.
#[test]
fn the_engine_tries_wirings_and_keeps_the_best() {
    use models::{Engine, Error, GenerateRequest, GenerationEvent, LoadRequest, Prompt, Speculation, WiringTally};
    let go_on = |_: GenerationEvent| std::ops::ControlFlow::Continue(());
    let load = |wirings: Vec<WiringTally>| {
        let engine = Engine::start();
        let request = LoadRequest {
            target: golden("inkling").join("hf"),
            wirings,
            ..LoadRequest::default()
        };
        let loaded = engine.load(request).unwrap();
        (engine, loaded.wirings)
    };
    let request = |speculation, wiring: Option<&str>| GenerateRequest {
        max_tokens: Some(60),
        ignore_eos: true,
        speculation,
        wiring: wiring.map(str::to_owned),
        ..GenerateRequest::new(Prompt::Ids(prompt("short")))
    };
    let (engine, names) = load(Vec::new());
    let plain = engine
        .generate(request(Speculation::Off, None), Box::new(go_on))
        .unwrap();
    assert_eq!(plain.stats.speculation.wiring, None);
    let mut tallies: Vec<WiringTally> = Vec::new();
    for _ in 0..3 * names.len() {
        let reply = engine
            .generate(request(Speculation::Auto, None), Box::new(go_on))
            .unwrap();
        assert_eq!(reply.tokens, plain.tokens);
        let s = reply.stats.speculation;
        // Tried for long enough: depth is automatic from then on, and its rounds do not compare.
        if !s.is_fixed() {
            continue;
        }
        let name = s.wiring.unwrap();
        if !tallies.iter().any(|t| t.name == name) {
            tallies.push(WiringTally {
                name: name.clone(),
                ..WiringTally::default()
            });
        }
        let t = tallies.iter_mut().find(|t| t.name == name).unwrap();
        (t.rounds, t.drafted, t.accepted) = (t.rounds + s.rounds, t.drafted + s.drafted, t.accepted + s.accepted);
    }
    let tried: Vec<&str> = tallies.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(tried, names, "each is tried, the default first");
    // The first among equals: on random weights the wirings may agree.
    let best = tallies.iter().fold(&tallies[0], |best, t| {
        let better = t.accepted * best.rounds > best.accepted * t.rounds;
        if better { t } else { best }
    });
    let best = best.name.clone();
    let used = |engine: &Engine, wiring| {
        let reply = engine
            .generate(request(Speculation::Auto, wiring), Box::new(go_on))
            .unwrap();
        assert_eq!(reply.tokens, plain.tokens);
        reply.stats.speculation.wiring.unwrap()
    };
    assert_eq!(used(&engine, None), best);
    assert_eq!(used(&engine, Some("sglang")), "sglang", "asked for by name");
    let (again, _) = load(tallies.clone());
    assert_eq!(used(&again, None), best, "known from before");
    for t in tallies.iter_mut().filter(|t| t.name == "transformers") {
        t.accepted = 10 * t.drafted;
    }
    assert_eq!(
        used(&load(tallies).0, None),
        "transformers",
        "the best of what was measured"
    );
    let unknown = engine.generate(request(Speculation::Auto, Some("upside-down")), Box::new(go_on));
    assert!(
        matches!(&unknown, Err(Error::Usage { message }) if message.contains("sglang")),
        "{unknown:?}"
    );
}
