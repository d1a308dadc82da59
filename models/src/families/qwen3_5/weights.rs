//! Names and values of the three layouts: raw, MLX-converted and text-only, and of the head's.

use mlx_rs::Dtype;

use crate::checkpoint::{Checkpoint, Quantization, Weights};
use crate::family::LoadOptions;
use crate::{Error, Result};

/// Prefixes under which a config may list the target's modules.
const TARGET_PREFIXES: &[&str] = &[
    "language_model.model.",
    "model.",
    "model.language_model.",
    "language_model.",
    "",
];

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

/// Whether a tensor can only be a target's: a decoder's or an output head's, whole checkpoint or not.
pub(super) fn is_targets(source: &str) -> bool {
    let prefixed = ["model.", "language_model.", "lm_head."]
        .iter()
        .any(|p| source.starts_with(p));
    prefixed && target_name(source).is_some()
}

/// The head's name for a prefixed source tensor: what follows `mtp.`.
pub(super) fn head_name(source: &str) -> Option<&str> {
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
    if weights.is_fp8() && !weights.names().any(|name| name.ends_with("_scale_inv")) {
        return Err(Error::UnsupportedQuantization {
            method: "fp8 without weight_scale_inv".to_owned(),
        });
    }
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
