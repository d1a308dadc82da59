//! Names and values of the three layouts: raw, MLX-converted and text-only, and of the head's.

use std::collections::BTreeMap;

use mlx_rs::Dtype;

use crate::checkpoint::{Checkpoint, Quantization, TensorInfo, Weights};
use crate::family::{HeadLocation, LoadOptions};
use crate::{Error, Result};

/// Prefixes under which a config may list the target's modules.
const TARGET_PREFIXES: &[&str] = &[
    "language_model.model.",
    "model.",
    "model.language_model.",
    "language_model.",
    "",
];

/// Prefixes under which a config may list the head's modules.
const HEAD_PREFIXES: &[&str] = &["mtp.", "language_model.mtp.", ""];

/// Tensors of the target, by canonical name.
pub(super) struct TargetWeights<'a> {
    pub(super) weights: Weights<'a>,
    /// Whether norm weights are stored without their 1: see [`norms_are_zero_centred`].
    pub(super) zero_centred: bool,
}

/// The target's name for a source tensor; `None` for what belongs to vision or to the head.
fn target_name(source: &str) -> Option<String> {
    const VISION: &[&str] = &[
        "model.visual.",
        "model.language_model.visual.",
        "vision_tower.",
        "visual.",
    ];
    if VISION.iter().any(|p| source.starts_with(p)) || head_name(source).is_some() {
        return None;
    }
    for prefix in [
        "model.language_model.",
        "language_model.model.",
        "language_model.",
        "model.",
    ] {
        if let Some(rest) = source.strip_prefix(prefix) {
            return Some(rest.to_owned());
        }
    }
    Some(source.to_owned())
}

/// The head's name for a prefixed source tensor: what follows `mtp.`.
fn head_name(source: &str) -> Option<&str> {
    if let Some(rest) = source.strip_prefix("mtp.") {
        return Some(rest);
    }
    source.split_once(".mtp.").map(|(_, rest)| rest)
}

/// Collects the target's tensors.
pub(super) fn target<'a>(checkpoint: &'a Checkpoint, tied: bool, options: LoadOptions) -> Result<TargetWeights<'a>> {
    let quantization = Quantization::read(&checkpoint.config)?;
    let weights = Weights::new(
        checkpoint,
        &checkpoint.tensors,
        quantization,
        TARGET_PREFIXES,
        |source| {
            // A tied checkpoint may still carry a copy of the embedding as its head.
            target_name(source).filter(|name| !(tied && name.starts_with("lm_head.")))
        },
    )?;
    let dtype = options.dtype.unwrap_or_else(|| stored_dtype(&weights, "embed_tokens"));
    Ok(TargetWeights {
        zero_centred: norms_are_zero_centred(checkpoint),
        weights: weights.with_dtype(dtype).dry(options.dry),
    })
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

/// Raw checkpoints store norm weights minus 1. The convolution's shape tells raw from converted: raw is `[C, 1, K]`,
/// converted `[C, K, 1]`. Without one, the prefix does.
fn norms_are_zero_centred(checkpoint: &Checkpoint) -> bool {
    let mut convs = checkpoint
        .tensors
        .iter()
        .filter(|(name, _)| name.ends_with("conv1d.weight"))
        .peekable();
    if convs.peek().is_some() {
        return convs.any(|(_, info)| info.shape.last() != Some(&1));
    }
    checkpoint
        .tensors
        .keys()
        .any(|name| target_name(name).is_some() && !name.starts_with("language_model."))
}

/// Tensors of the head, by canonical name.
pub(super) struct HeadWeights<'a> {
    pub(super) weights: Weights<'a>,
    /// Whether norm weights are stored without their 1.
    pub(super) zero_centred: bool,
}

/// A head's source tensors and where they are.
struct HeadTensors {
    tensors: BTreeMap<String, TensorInfo>,
    prefixed: bool,
    stray: bool,
}

fn head_tensors(checkpoint: &Checkpoint) -> Option<HeadTensors> {
    let prefixed = |from: &BTreeMap<String, TensorInfo>| -> BTreeMap<String, TensorInfo> {
        from.iter()
            .filter(|(n, _)| head_name(n).is_some())
            .map(|(n, i)| (n.clone(), i.clone()))
            .collect()
    };
    // The index's own head counts before one in a stray file.
    for (from, stray) in [(&checkpoint.tensors, false), (&checkpoint.stray, true)] {
        let tensors = prefixed(from);
        if !tensors.is_empty() {
            return Some(HeadTensors {
                tensors,
                prefixed: true,
                stray,
            });
        }
    }
    // A standalone head has bare names, and none of a target.
    let all: BTreeMap<String, TensorInfo> = checkpoint
        .tensors
        .iter()
        .chain(&checkpoint.stray)
        .map(|(n, i)| (n.clone(), i.clone()))
        .collect();
    let bare = all.contains_key("pre_fc_norm_hidden.weight") && !all.keys().any(|n| n.contains("embed_tokens"));
    bare.then_some(HeadTensors {
        tensors: all,
        prefixed: false,
        stray: false,
    })
}

/// Where a checkpoint's head is, if it has one.
pub(super) fn head_location(checkpoint: &Checkpoint) -> Option<HeadLocation> {
    let head = head_tensors(checkpoint)?;
    let mut files: Vec<String> = head
        .tensors
        .values()
        .map(|i| checkpoint.file_of(i).name.clone())
        .collect();
    files.sort();
    files.dedup();
    let standalone = !checkpoint.tensors.keys().any(|n| n.ends_with("embed_tokens.weight"));
    Some(HeadLocation {
        tensors: head.tensors.len(),
        files,
        stray: head.stray,
        standalone,
    })
}

/// Collects the head's tensors.
pub(super) fn head<'a>(checkpoint: &'a Checkpoint, dtype: Dtype, options: LoadOptions) -> Result<HeadWeights<'a>> {
    let head = head_tensors(checkpoint).ok_or_else(|| Error::TensorMissing {
        name: "mtp.fc.weight".to_owned(),
    })?;
    // MLX's own conversions keep the prefix but have the 1 added already; they say so in the file.
    let converted = head.tensors.values().any(|info| {
        checkpoint
            .file_of(info)
            .metadata
            .get("format")
            .is_some_and(|format| format == "mlx")
    });
    let quantization = match checkpoint
        .config
        .get("mtplx_mtp_quantization")
        .and_then(serde_json::Value::as_object)
    {
        Some(block) => Quantization::parse(block)?,
        None => Quantization::read(&checkpoint.config)?,
    };
    let weights = Weights::new(checkpoint, &head.tensors, quantization, HEAD_PREFIXES, |source| {
        Some(head_name(source).unwrap_or(source).to_owned())
    })?;
    Ok(HeadWeights {
        weights: weights.with_dtype(dtype).dry(options.dry),
        zero_centred: head.prefixed && !converted,
    })
}
