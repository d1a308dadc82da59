//! Names of the two layouts, raw and MLX-converted, of the target and of its MTP blocks.

use mlx_rs::Dtype;

use crate::checkpoint::{Checkpoint, Quantization, Weights};
use crate::family::LoadOptions;
use crate::{Error, Result};

/// Prefixes under which a config may list the target's modules.
const TARGET_PREFIXES: &[&str] = &["language_model.model.", "language_model.", "model.", ""];

/// How a checkpoint's tensors are named and cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// As published: gate and up rows interleaved in one tensor.
    Raw,
    /// As MLX conversions have it: one tensor a projection.
    Converted,
}

/// Raw names of a layer's tensors, and the converted ones, which this engine uses. What is not listed is named alike in
/// both, or cut differently and taken by its raw name.
const LAYER_NAMES: &[(&str, &str)] = &[
    ("attn_norm.weight", "input_layernorm.weight"),
    ("mlp_norm.weight", "post_attention_layernorm.weight"),
    ("attn.wq_du.weight", "self_attn.q_proj.weight"),
    ("attn.wk_dv.weight", "self_attn.k_proj.weight"),
    ("attn.wv_dv.weight", "self_attn.v_proj.weight"),
    ("attn.wr_du.weight", "self_attn.r_proj.weight"),
    ("attn.wo_ud.weight", "self_attn.o_proj.weight"),
    ("attn.q_norm.weight", "self_attn.q_norm.weight"),
    ("attn.k_norm.weight", "self_attn.k_norm.weight"),
    ("attn.k_sconv.weight", "self_attn.k_sconv.conv.weight"),
    ("attn.v_sconv.weight", "self_attn.v_sconv.conv.weight"),
    ("attn.rel_logits_proj.proj", "self_attn.rel_proj"),
    ("attn_sconv.weight", "attn_sconv.conv.weight"),
    ("mlp_sconv.weight", "mlp_sconv.conv.weight"),
    ("mlp.w2_md.weight", "mlp.down_proj.weight"),
    ("mlp.gate.weight", "mlp.gate_weight"),
    ("mlp.gate.bias", "mlp.e_score_correction_bias"),
    ("mlp.gate.global_scale", "mlp.global_scale"),
];

/// Raw and converted names outside the layers.
const TOP_NAMES: &[(&str, &str)] = &[
    ("embed.weight", "embed_tokens.weight"),
    ("unembed.weight", "lm_head.weight"),
];

/// This engine's name for what follows `model.llm.` in a raw checkpoint.
fn converted(raw: &str) -> String {
    if let Some((_, ours)) = TOP_NAMES.iter().find(|(theirs, _)| *theirs == raw) {
        return (*ours).to_owned();
    }
    let Some((layer, rest)) = raw.strip_prefix("layers.").and_then(|r| r.split_once('.')) else {
        return raw.to_owned();
    };
    format!("layers.{layer}.{}", converted_layer(rest))
}

fn converted_layer(raw: &str) -> &str {
    LAYER_NAMES
        .iter()
        .find(|(theirs, _)| *theirs == raw)
        .map_or(raw, |(_, ours)| ours)
}

/// Whether a tensor belongs to the vision or audio tower.
fn is_tower(source: &str) -> bool {
    let root = source.strip_prefix("model.").unwrap_or(source);
    ["visual", "vision", "audio"]
        .iter()
        .any(|tower| root.starts_with(tower))
}

/// Whether a checkpoint holds towers that are set aside.
pub(super) fn has_towers(checkpoint: &Checkpoint) -> bool {
    checkpoint.tensors.keys().any(|name| is_tower(name))
}

/// Whether a tensor belongs to a head by its name.
pub(super) fn is_heads(source: &str) -> bool {
    source.starts_with("model.mtp") || source.starts_with("mtp.") || source.contains(".mtp")
}

/// Whether a tensor can only be a target's, whole checkpoint or not.
pub(super) fn is_targets(source: &str) -> bool {
    let prefixed = ["model.llm.", "language_model.", "lm_head."]
        .iter()
        .any(|p| source.starts_with(p));
    prefixed && target_name(source).is_some()
}

/// The target's name for a source tensor; `None` for towers, the head and what only training or other engines use.
fn target_name(source: &str) -> Option<String> {
    const UNUSED: &[&str] = &["training_args", ".input_amax", ".original_shape"];
    if is_heads(source) || is_tower(source) || UNUSED.iter().any(|end| source.ends_with(end)) {
        return None;
    }
    if let Some(raw) = source.strip_prefix("model.llm.") {
        return Some(converted(raw));
    }
    let rest = ["language_model.model.", "language_model.", "model."]
        .iter()
        .find_map(|prefix| source.strip_prefix(prefix));
    Some(rest.unwrap_or(source).to_owned())
}

/// The head's name for a prefixed source tensor: `blocks.{j}.…`.
pub(super) fn head_name(source: &str) -> Option<String> {
    let rest = source
        .strip_prefix("mtp.layers.")
        .or_else(|| source.split_once(".mtp.layers.").map(|(_, rest)| rest))?;
    let (block, rest) = rest.split_once('.')?;
    Some(match rest.strip_prefix("transformer_block.") {
        Some(layer) => format!("blocks.{block}.transformer_block.{}", converted_layer(layer)),
        None => format!("blocks.{block}.{rest}"),
    })
}

pub(super) fn layout_of<'n>(mut sources: impl Iterator<Item = &'n String>) -> Layout {
    if sources.any(|name| name.contains(".attn.")) {
        Layout::Raw
    } else {
        Layout::Converted
    }
}

/// The floating type of a module, or of its scales.
fn stored_dtype(weights: &Weights<'_>, path: &str) -> Dtype {
    let info = weights
        .info(&format!("{path}.scales"))
        .or_else(|| weights.info(&format!("{path}.weight")));
    match info.map(|i| i.dtype) {
        Some(safetensors::Dtype::F16) => Dtype::Float16,
        Some(safetensors::Dtype::F32) => Dtype::Float32,
        _ => Dtype::Bfloat16,
    }
}

/// How matrices are packed. Settings of the parts that conversions fuse go by the first part's name.
pub(super) fn quantization(checkpoint: &Checkpoint) -> Result<Quantization> {
    // Published 4-bit experts carry their packing in their tensors; the config describes it in another library's words.
    if checkpoint
        .tensors
        .keys()
        .any(|name| name.ends_with("experts.w13_weight.scale2"))
    {
        return Ok(Quantization::default());
    }
    Ok(Quantization::read(&checkpoint.config)?.also_as(|path| {
        // The config may speak of the fused projections and the files hold the parts, or the other way round.
        if let Some(layer) = path.strip_suffix(".q_proj") {
            return vec![format!("{layer}.qkvr_proj")];
        }
        let layer = path.strip_suffix(".qkvr_proj");
        layer.map_or_else(Vec::new, |layer| {
            ["q", "k", "v", "r"].map(|part| format!("{layer}.{part}_proj")).into()
        })
    }))
}

/// Collects the target's tensors.
pub(super) fn target<'a>(
    checkpoint: &'a Checkpoint,
    tied: bool,
    options: LoadOptions,
) -> Result<(Weights<'a>, Layout)> {
    let weights = Weights::new(
        checkpoint,
        &checkpoint.tensors,
        quantization(checkpoint)?,
        TARGET_PREFIXES,
        // A tied checkpoint may still carry a copy of the embedding as its head.
        |source| target_name(source).filter(|name| !(tied && name.starts_with("lm_head."))),
    )?;
    let dtype = options.dtype.unwrap_or_else(|| stored_dtype(&weights, "embed_tokens"));
    let layout = layout_of(checkpoint.tensors.keys().filter(|n| target_name(n).is_some()));
    Ok((weights.with_dtype(dtype).dry(options.dry), layout))
}

/// An error that says a missing tensor's name as the checkpoint would write it.
pub(super) fn as_written(error: Error, layout: Layout) -> Error {
    let Error::TensorMissing { name } = &error else {
        return error;
    };
    let name = match (layout, name.find("blocks."), name.find("lm_head.")) {
        (Layout::Converted, _, Some(at)) => format!("language_model.{}", &name[at..]),
        (Layout::Converted, _, None) => return error,
        (Layout::Raw, Some(at), _) => {
            let rest = name[at..].replacen("blocks.", "model.mtp.layers.", 1);
            match rest.split_once("transformer_block.") {
                Some((block, layer)) => format!("{block}transformer_block.{}", raw_layer(layer)),
                None => rest,
            }
        }
        (Layout::Raw, None, _) => {
            let bare = name.strip_prefix("model.llm.").unwrap_or(name);
            let top = TOP_NAMES.iter().find(|(_, ours)| *ours == bare);
            let layer = bare.strip_prefix("layers.").and_then(|r| r.split_once('.'));
            match (top, layer) {
                (Some((raw, _)), _) => format!("model.llm.{raw}"),
                (None, Some((layer, rest))) => format!("model.llm.layers.{layer}.{}", raw_layer(rest)),
                (None, None) => format!("model.llm.{bare}"),
            }
        }
    };
    Error::TensorMissing { name }
}

fn raw_layer(ours: &str) -> &str {
    LAYER_NAMES
        .iter()
        .find(|(_, converted)| *converted == ours)
        .map_or(ours, |(raw, _)| raw)
}
