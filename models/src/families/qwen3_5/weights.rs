//! Names and values of the three layouts: raw, MLX-converted and text-only, and of the head's.

use std::collections::BTreeMap;

use mlx_rs::Dtype;

use crate::checkpoint::{Checkpoint, Quantization, TensorInfo, Weights};
use crate::family::{HeadLocation, HeadPlace, LoadOptions};
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
    place: HeadPlace,
}

type Tensors = BTreeMap<String, TensorInfo>;

/// Every head of a folder, the one that counts first: the target's own files before a stray one before the `mtp`
/// folder, and a folder that is nothing but a head last.
fn heads(checkpoint: &Checkpoint) -> Vec<HeadTensors> {
    let prefixed = |from: &Tensors| -> Tensors {
        let mut tensors = from.clone();
        tensors.retain(|name, _| head_name(name).is_some());
        tensors
    };
    let has_target = checkpoint.tensors.keys().any(|n| n.ends_with("embed_tokens.weight"));
    let place = |place: HeadPlace| if has_target { place } else { HeadPlace::Standalone };
    let in_folder = match prefixed(&checkpoint.subfolder) {
        none if none.is_empty() => bare(&checkpoint.subfolder),
        tensors => tensors,
    };
    let mut heads = vec![
        HeadTensors {
            tensors: prefixed(&checkpoint.tensors),
            place: place(HeadPlace::Own),
        },
        HeadTensors {
            tensors: prefixed(&checkpoint.stray),
            place: place(HeadPlace::Stray),
        },
        HeadTensors {
            tensors: in_folder,
            place: place(HeadPlace::Subfolder),
        },
    ];
    if !has_target {
        let mut all = checkpoint.stray.clone();
        all.extend(checkpoint.tensors.clone());
        heads.push(HeadTensors {
            tensors: bare(&all),
            place: HeadPlace::Standalone,
        });
    }
    heads.retain(|head| !head.tensors.is_empty());
    heads
}

/// The tensors themselves when they are a head under bare names, else none.
fn bare(tensors: &Tensors) -> Tensors {
    let is_head = tensors.contains_key("pre_fc_norm_hidden.weight")
        || tensors.contains_key("fc.weight")
        || tensors.contains_key("pre_fc_norm_embedding.weight");
    if is_head && !tensors.keys().any(|n| n.contains("embed_tokens")) {
        tensors.clone()
    } else {
        Tensors::new()
    }
}

fn files(checkpoint: &Checkpoint, tensors: &Tensors) -> Vec<String> {
    let names = tensors.values().map(|i| checkpoint.file_of(i).name.clone());
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// Where a checkpoint's head is, if it has one.
pub(super) fn head_location(checkpoint: &Checkpoint) -> Option<HeadLocation> {
    let heads = heads(checkpoint);
    let (head, others) = heads.split_first()?;
    Some(HeadLocation {
        tensors: head.tensors.len(),
        files: files(checkpoint, &head.tensors),
        place: head.place,
        passed_over: others.iter().flat_map(|h| files(checkpoint, &h.tensors)).collect(),
    })
}

/// Collects the head's tensors.
pub(super) fn head<'a>(checkpoint: &'a Checkpoint, dtype: Dtype, options: LoadOptions) -> Result<HeadWeights<'a>> {
    let head = heads(checkpoint)
        .into_iter()
        .next()
        .ok_or_else(|| Error::HeadMissing {
            dir: checkpoint.dir.clone(),
            announced: is_announced(checkpoint),
        })?;
    let is_prefixed = head.tensors.keys().any(|name| head_name(name).is_some());
    // MLX's own conversions keep the prefix but have the 1 added already; they say so in the file.
    let is_converted = head.tensors.values().any(|info| {
        let format = checkpoint.file_of(info).metadata.get("format");
        format.is_some_and(|format| format == "mlx")
    });
    let quantization = head_quantization(checkpoint, &head)?;
    let weights = Weights::new(checkpoint, &head.tensors, quantization, HEAD_PREFIXES, |source| {
        Some(head_name(source).unwrap_or(source).to_owned())
    })?;
    Ok(HeadWeights {
        weights: weights.with_dtype(dtype).dry(options.dry),
        zero_centred: is_prefixed && !is_converted,
    })
}

/// The head's own quantization block where there is one. A head in the `mtp` folder without a config of its own may be
/// packed in another way than its target, so its shapes alone say how.
fn head_quantization(checkpoint: &Checkpoint, head: &HeadTensors) -> Result<Quantization> {
    let own = checkpoint.config.get("mtplx_mtp_quantization");
    match (own.and_then(serde_json::Value::as_object), &checkpoint.subfolder_config) {
        (Some(block), _) => Quantization::parse(block),
        (None, Some(config)) if is_in_folder(checkpoint, head) => Quantization::read(config),
        (None, None) if is_in_folder(checkpoint, head) => Ok(Quantization::by_shapes()),
        _ => Quantization::read(&checkpoint.config),
    }
}

fn is_in_folder(checkpoint: &Checkpoint, head: &HeadTensors) -> bool {
    let names = files(checkpoint, &head.tensors);
    names.iter().all(|name| name.contains('/'))
}

/// Whether a config speaks of a head, which says nothing about its tensors.
pub(super) fn is_announced(checkpoint: &Checkpoint) -> bool {
    let text = checkpoint.config.get("text_config").and_then(serde_json::Value::as_object);
    [Some(&checkpoint.config), text].into_iter().flatten().any(|object| {
        let layers = object.get("mtp_num_hidden_layers");
        layers.and_then(serde_json::Value::as_i64).is_some_and(|n| n > 0)
    })
}
