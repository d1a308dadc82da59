//! The tensor lists of published checkpoints, name by name and in their real sizes, as header-only files: every tensor is
//! taken exactly once or set aside knowingly. Counts are those of the published repositories.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use models::{Inspection, MtpLocation, inspect};
use serde_json::{Map, Value, json};

/// A tensor: name relative to the decoder, shape, and whether conversions pack it.
struct Listed {
    name: String,
    shape: Vec<usize>,
    is_linear: bool,
}

/// Sizes of a model.
#[derive(Clone)]
struct Sizes {
    hidden: usize,
    layers: usize,
    heads: [usize; 2],
    linear_heads: [usize; 2],
    /// Width of the dense MLP.
    width: usize,
    /// Experts, experts a token, expert width.
    moe: Option<[usize; 3]>,
}

const VOCABULARY: usize = 248_320;
const HEAD_DIM: usize = 256;
const LINEAR_DIM: usize = 128;

fn dense_27b() -> Sizes {
    Sizes {
        hidden: 5120,
        layers: 64,
        heads: [24, 4],
        linear_heads: [16, 48],
        width: 17_408,
        moe: None,
    }
}

fn moe_35b() -> Sizes {
    Sizes {
        hidden: 2048,
        layers: 40,
        heads: [16, 2],
        linear_heads: [16, 32],
        width: 0,
        moe: Some([256, 8, 512]),
    }
}

fn max_2_4t() -> Sizes {
    Sizes {
        hidden: 8192,
        layers: 92,
        heads: [64, 4],
        linear_heads: [16, 128],
        width: 0,
        moe: Some([512, 10, 2048]),
    }
}

impl Sizes {
    fn config(&self, model_type: &str) -> Value {
        let mut text = json!({
            "model_type": format!("{model_type}_text"),
            "hidden_size": self.hidden, "num_hidden_layers": self.layers, "vocab_size": VOCABULARY,
            "num_attention_heads": self.heads[0], "num_key_value_heads": self.heads[1], "head_dim": HEAD_DIM,
            "linear_num_key_heads": self.linear_heads[0], "linear_num_value_heads": self.linear_heads[1],
            "linear_key_head_dim": LINEAR_DIM, "linear_value_head_dim": LINEAR_DIM, "linear_conv_kernel_dim": 4,
            "full_attention_interval": 4, "mtp_num_hidden_layers": 1, "max_position_embeddings": 262_144,
            "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]},
        });
        let more = match self.moe {
            None => json!({"intermediate_size": self.width}),
            Some([n, k, width]) => json!({"num_experts": n, "num_experts_per_tok": k, "moe_intermediate_size": width,
                "shared_expert_intermediate_size": width}),
        };
        text.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"model_type": model_type, "tie_word_embeddings": false, "text_config": text})
    }

    fn layer(&self, at: &str, is_full: bool, is_stacked: bool) -> Vec<Listed> {
        let h = self.hidden;
        let mut out = Vec::new();
        let mut add = |name: &str, shape: &[usize], is_linear: bool| {
            out.push(Listed {
                name: format!("{at}.{name}"),
                shape: shape.to_vec(),
                is_linear,
            });
        };
        add("input_layernorm.weight", &[h], false);
        add("post_attention_layernorm.weight", &[h], false);
        if is_full {
            let [q, kv] = self.heads.map(|n| n * HEAD_DIM);
            add("self_attn.q_proj.weight", &[2 * q, h], true);
            add("self_attn.k_proj.weight", &[kv, h], true);
            add("self_attn.v_proj.weight", &[kv, h], true);
            add("self_attn.o_proj.weight", &[h, q], true);
            add("self_attn.q_norm.weight", &[HEAD_DIM], false);
            add("self_attn.k_norm.weight", &[HEAD_DIM], false);
        } else {
            let [k, v] = self.linear_heads.map(|n| n * LINEAR_DIM);
            let conv = 2 * k + v;
            add("linear_attn.in_proj_qkv.weight", &[conv, h], true);
            add("linear_attn.in_proj_z.weight", &[v, h], true);
            add("linear_attn.in_proj_b.weight", &[self.linear_heads[1], h], true);
            add("linear_attn.in_proj_a.weight", &[self.linear_heads[1], h], true);
            let shape = if is_stacked { [conv, 4, 1] } else { [conv, 1, 4] };
            add("linear_attn.conv1d.weight", &shape, false);
            add("linear_attn.dt_bias", &[self.linear_heads[1]], false);
            add("linear_attn.A_log", &[self.linear_heads[1]], false);
            add("linear_attn.norm.weight", &[LINEAR_DIM], false);
            add("linear_attn.out_proj.weight", &[h, v], true);
        }
        let Some([n, _, width]) = self.moe else {
            add("mlp.gate_proj.weight", &[self.width, h], true);
            add("mlp.up_proj.weight", &[self.width, h], true);
            add("mlp.down_proj.weight", &[h, self.width], true);
            return out;
        };
        add("mlp.gate.weight", &[n, h], true);
        if is_stacked {
            add("mlp.switch_mlp.gate_proj.weight", &[n, width, h], true);
            add("mlp.switch_mlp.up_proj.weight", &[n, width, h], true);
            add("mlp.switch_mlp.down_proj.weight", &[n, h, width], true);
        } else {
            add("mlp.experts.gate_up_proj", &[n, 2 * width, h], false);
            add("mlp.experts.down_proj", &[n, h, width], false);
        }
        add("mlp.shared_expert.gate_proj.weight", &[width, h], true);
        add("mlp.shared_expert.up_proj.weight", &[width, h], true);
        add("mlp.shared_expert.down_proj.weight", &[h, width], true);
        add("mlp.shared_expert_gate.weight", &[1, h], true);
        out
    }

    /// The text model, with the decoder's prefix and the head's name of a layout.
    fn text(&self, prefix: &str, head: &str, is_converted: bool) -> Vec<Listed> {
        let mut out: Vec<Listed> = (0..self.layers)
            .flat_map(|i| self.layer(&format!("{prefix}layers.{i}"), (i + 1) % 4 == 0, is_converted))
            .collect();
        let mut add = |name: String, shape: &[usize], is_linear| {
            out.push(Listed {
                name,
                shape: shape.to_vec(),
                is_linear,
            });
        };
        add(format!("{prefix}embed_tokens.weight"), &[VOCABULARY, self.hidden], true);
        add(format!("{prefix}norm.weight"), &[self.hidden], false);
        add(format!("{head}.weight"), &[VOCABULARY, self.hidden], true);
        out
    }

    fn head(&self, prefix: &str, is_converted: bool) -> Vec<Listed> {
        let h = self.hidden;
        let mut out = self.layer(&format!("{prefix}layers.0"), true, is_converted);
        for (name, shape, is_linear) in [
            ("fc.weight", vec![h, 2 * h], true),
            ("pre_fc_norm_embedding.weight", vec![h], false),
            ("pre_fc_norm_hidden.weight", vec![h], false),
            ("norm.weight", vec![h], false),
        ] {
            out.push(Listed {
                name: format!("{prefix}{name}"),
                shape,
                is_linear,
            });
        }
        out
    }
}

/// The vision tower of these models; text generation sets it aside.
fn vision(prefix: &str) -> Vec<Listed> {
    let mut names = vec!["pos_embed.weight".to_owned()];
    let mut pair = |name: String| names.extend([format!("{name}.weight"), format!("{name}.bias")]);
    for i in 0..27 {
        for part in [
            "attn.qkv",
            "attn.proj",
            "mlp.linear_fc1",
            "mlp.linear_fc2",
            "norm1",
            "norm2",
        ] {
            pair(format!("blocks.{i}.{part}"));
        }
    }
    for part in [
        "patch_embed.proj",
        "merger.norm",
        "merger.linear_fc1",
        "merger.linear_fc2",
    ] {
        pair(part.to_owned());
    }
    let listed = |name: String| Listed {
        name: format!("{prefix}{name}"),
        shape: vec![8, 8],
        is_linear: false,
    };
    names.into_iter().map(listed).collect()
}

/// How matrices are stored.
#[derive(Clone, Copy)]
enum Stored {
    Bf16,
    /// Bits, group size, whether there are biases.
    Packed(usize, usize, bool),
    Fp8,
}

/// A tensor as the header has it: name, type, shape.
type Entry = (String, &'static str, Vec<usize>);

fn stored(listed: Vec<Listed>, how: Stored) -> Vec<Entry> {
    let mut out = Vec::new();
    for Listed { name, shape, is_linear } in listed {
        let path = name.strip_suffix(".weight").unwrap_or(&name).to_owned();
        let (last, rows) = shape.split_last().unwrap();
        let row = |n: usize| [rows, &[n]].concat();
        // The FP8 original keeps the small gates, the embeddings, the output head and the head's `fc` as they are.
        let is_fp8 = is_linear
            && ![
                "in_proj_a",
                "in_proj_b",
                "embed_tokens",
                "lm_head",
                "mlp.gate",
                "shared_expert_gate",
            ]
            .iter()
            .any(|part| path.ends_with(part))
            && !path.ends_with("mtp.fc");
        match how {
            Stored::Packed(bits, group, has_biases) if is_linear => {
                let scale_type = if has_biases { "BF16" } else { "U8" };
                out.push((name, "U32", row(last * bits / 32)));
                out.push((format!("{path}.scales"), scale_type, row(last / group)));
                if has_biases {
                    out.push((format!("{path}.biases"), "BF16", row(last / group)));
                }
            }
            Stored::Fp8 if is_fp8 => {
                let blocks = shape.iter().map(|n| n.div_ceil(128)).collect();
                out.push((name, "F8_E4M3", shape));
                out.push((format!("{path}.weight_scale_inv"), "F32", blocks));
            }
            _ => out.push((name, "BF16", shape)),
        }
    }
    out
}

/// Writes a file with this header and nothing but holes after it.
fn write(path: &Path, entries: &[Entry], metadata: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let (mut header, mut at) = (Map::new(), 0u64);
    header.insert("__metadata__".to_owned(), metadata.clone());
    for (name, dtype, shape) in entries {
        let size = match *dtype {
            "U8" | "F8_E4M3" => 1,
            "BF16" => 2,
            _ => 4,
        };
        let end = at + size * shape.iter().map(|n| *n as u64).product::<u64>();
        header.insert(
            name.clone(),
            json!({"dtype": dtype, "shape": shape, "data_offsets": [at, end]}),
        );
        at = end;
    }
    let mut text = Value::from(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut file = File::create(path).unwrap();
    file.write_all(&(text.len() as u64).to_le_bytes()).unwrap();
    file.write_all(&text).unwrap();
    file.set_len(8 + text.len() as u64 + at).unwrap();
}

fn checkpoint(dir: &Path, config: &Value, entries: &[Entry], metadata: &Value) {
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("config.json"), config.to_string()).unwrap();
    let mut map = Map::new();
    let shards: Vec<&[Entry]> = entries.chunks(500).collect();
    for (i, shard) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{:05}.safetensors", i + 1, shards.len());
        write(&dir.join(&name), shard, metadata);
        map.extend(
            shard
                .iter()
                .map(|(tensor, ..)| (tensor.clone(), Value::from(name.clone()))),
        );
    }
    std::fs::write(
        dir.join("model.safetensors.index.json"),
        json!({"weight_map": map}).to_string(),
    )
    .unwrap();
}

fn looked_at(config: &Value, entries: &[Entry], metadata: &Value) -> Inspection {
    let dir = tempfile::tempdir().unwrap();
    checkpoint(dir.path(), config, entries, metadata);
    inspect(dir.path()).unwrap()
}

fn takes_all(what: &str, inspection: &Inspection) {
    assert!(inspection.problems.is_empty(), "{what}: {:?}", inspection.problems);
}

const RAW: (&str, &str) = ("model.language_model.", "lm_head");
const CONVERTED: (&str, &str) = ("language_model.model.", "language_model.lm_head");

#[test]
fn raw_checkpoints_are_taken_whole() {
    let pt = json!({"format": "pt"});
    for (what, sizes, has_vision, count, head) in [
        ("27B", dense_27b(), true, 1199, 15),
        ("2.4T-A95B", max_2_4t(), false, 1609, 19),
    ] {
        let model_type = if sizes.moe.is_some() { "qwen3_5_moe" } else { "qwen3_5" };
        let mut listed = sizes.text(RAW.0, RAW.1, false);
        listed.extend(sizes.head("mtp.", false));
        if has_vision {
            listed.extend(vision("model.visual."));
        }
        let entries = stored(listed, Stored::Bf16);
        assert_eq!(entries.len(), count, "{what}");
        let inspection = looked_at(&sizes.config(model_type), &entries, &pt);
        takes_all(what, &inspection);
        assert_eq!(
            (inspection.mtp.location, inspection.mtp.tensors),
            (MtpLocation::Own, head)
        );
        assert_eq!((inspection.role, inspection.layers), ("both", sizes.layers));
    }
}

#[test]
fn the_fp8_original_is_taken_whole() {
    let sizes = dense_27b();
    let mut listed = sizes.text(RAW.0, RAW.1, false);
    listed.extend(sizes.head("mtp.", false));
    listed.extend(vision("model.visual."));
    let entries = stored(listed, Stored::Fp8);
    assert_eq!(entries.len(), 1606);
    let mut config = sizes.config("qwen3_5");
    config["quantization_config"] =
        json!({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"});
    let inspection = looked_at(&config, &entries, &json!({"format": "pt"}));
    takes_all("27B FP8", &inspection);
    assert_eq!(inspection.mtp.tensors, 22);
    assert!(
        inspection.warnings.iter().any(|w| w.contains("FP8")),
        "{:?}",
        inspection.warnings
    );
}

#[test]
fn conversions_are_taken_whole_and_hold_no_head() {
    let sizes = dense_27b();
    for (what, how, quantization, count) in [
        (
            "4bit",
            Stored::Packed(4, 64, true),
            json!({"bits": 4, "group_size": 64}),
            2180,
        ),
        (
            "8bit",
            Stored::Packed(8, 64, true),
            json!({"bits": 8, "group_size": 64}),
            2180,
        ),
        ("bf16", Stored::Bf16, Value::Null, 1184),
        (
            "mxfp8",
            Stored::Packed(8, 32, false),
            json!({"bits": 8, "group_size": 32, "mode": "mxfp8"}),
            1682,
        ),
        (
            "nvfp4",
            Stored::Packed(4, 16, false),
            json!({"bits": 4, "group_size": 16, "mode": "nvfp4"}),
            1682,
        ),
    ] {
        let mut entries = stored(sizes.text(CONVERTED.0, CONVERTED.1, true), how);
        entries.extend(stored(vision("vision_tower."), Stored::Bf16));
        assert_eq!(entries.len(), count, "{what}");
        let mut config = sizes.config("qwen3_5");
        config["quantization"] = quantization;
        let inspection = looked_at(&config, &entries, &json!({"format": "mlx"}));
        takes_all(what, &inspection);
        assert_eq!(
            (inspection.mtp.location, inspection.role),
            (MtpLocation::None, "target"),
            "the config announces a head, the files hold none"
        );
        assert!(inspection.mtp.note.contains("announces"), "{}", inspection.mtp.note);
    }
    let sizes = moe_35b();
    let mut entries = Vec::new();
    for listed in sizes.text(CONVERTED.0, CONVERTED.1, true) {
        // Converters keep router and shared gate at 8 bits.
        let is_gate = ["mlp.gate.weight", "shared_expert_gate.weight"]
            .iter()
            .any(|g| listed.name.ends_with(g));
        entries.extend(stored(
            vec![listed],
            Stored::Packed(if is_gate { 8 } else { 4 }, 64, true),
        ));
    }
    let mut config = sizes.config("qwen3_5_moe");
    let mut quantization = json!({"bits": 4, "group_size": 64});
    for i in 0..sizes.layers {
        for gate in ["gate", "shared_expert_gate"] {
            quantization[format!("language_model.model.layers.{i}.mlp.{gate}")] = json!({"bits": 8, "group_size": 64});
        }
    }
    config["quantization"] = quantization;
    takes_all("35B-A3B 4bit", &looked_at(&config, &entries, &json!({"format": "mlx"})));
}

/// A head's config: type, text part, block size.
fn head_config(sizes: &Sizes, quantization: Value) -> Value {
    let mut config = sizes.config("qwen3_5_mtp");
    config["block_size"] = 3.into();
    config["quantization"] = quantization;
    config
}

#[test]
fn standalone_heads_are_taken_whole() {
    let four = json!({"bits": 4, "group_size": 64});
    let mlx = json!({"format": "mlx"});
    for (what, sizes, prefix, is_converted, how, quantization, count) in [
        ("27B-MTP-bf16", dense_27b(), "", true, Stored::Bf16, Value::Null, 15),
        (
            "27B-MTP-4bit",
            dense_27b(),
            "",
            true,
            Stored::Packed(4, 64, true),
            four,
            31,
        ),
        ("35B-A3B-MTP-bf16", moe_35b(), "", true, Stored::Bf16, Value::Null, 20),
        ("27B raw", dense_27b(), "mtp.", false, Stored::Bf16, Value::Null, 15),
        ("35B-A3B raw", moe_35b(), "mtp.", false, Stored::Bf16, Value::Null, 19),
    ] {
        let entries = stored(sizes.head(prefix, is_converted), how);
        assert_eq!(entries.len(), count, "{what}");
        let config = head_config(&sizes, quantization);
        let inspection = looked_at(&config, &entries, &mlx);
        takes_all(what, &inspection);
        assert_eq!((inspection.role, inspection.mtp.tensors), ("drafter", count), "{what}");
        // Each tensor is needed: without it the head is refused, and the message names it.
        for (i, (name, ..)) in entries.iter().enumerate() {
            let fewer: Vec<Entry> = [&entries[..i], &entries[i + 1..]].concat();
            let inspection = looked_at(&config, &fewer, &mlx);
            let told = inspection
                .problems
                .first()
                .map(|p| p.message.clone())
                .unwrap_or_default();
            let path = name
                .trim_end_matches(".weight")
                .trim_end_matches(".scales")
                .trim_end_matches(".biases");
            let path = path.split(".experts.").next().unwrap_or(path);
            assert!(told.contains(path), "{what} without {name}: {told:?}");
        }
        // And nothing more.
        let mut more = entries.clone();
        more.push((format!("{prefix}layers.0.self_attn.q_gain.weight"), "BF16", vec![4]));
        let inspection = looked_at(&config, &more, &mlx);
        assert_eq!(inspection.problems[0].kind, "tensor_unexpected", "{what}");
    }
}
