//! Where a head's tensors are, under which names, and how to hand them on.

use std::collections::{BTreeMap, BTreeSet};

use mlx_rs::Dtype;
use serde_json::{Map, Value};

use super::config::MtpConfig;
use super::weights::{Layout, head_name, is_heads, is_targets, layout_of, quantization};
use crate::checkpoint::{Checkpoint, Quantization, Standalone, TensorInfo, Weights};
use crate::family::{HeadLocation, HeadPlace, LoadOptions};
use crate::{Error, Result};

/// Prefixes under which a config may list the head's modules.
const HEAD_PREFIXES: &[&str] = &["", "model.mtp.", "mtp."];

type Tensors = BTreeMap<String, TensorInfo>;

/// A head's source tensors and where they are.
struct HeadTensors {
    tensors: Tensors,
    place: HeadPlace,
}

/// Every head of a folder, the one that counts first: the target's own files before a stray one before the `mtp`
/// folder, and a folder that is nothing but a head last.
fn heads(checkpoint: &Checkpoint) -> Vec<HeadTensors> {
    let has_target = checkpoint.tensors.keys().any(|name| is_targets(name));
    let prefixed = |from: &Tensors| -> Tensors {
        let mut tensors = from.clone();
        // What belongs to a head but to none of its blocks is kept, so that nobody takes it and it is named.
        tensors.retain(|name, _| is_heads(name));
        if !tensors.keys().any(|name| head_name(name).is_some()) {
            tensors.clear();
        }
        // A head of its own may bring the target's norm along.
        let norm = from.get("norm.weight").filter(|_| !has_target && !tensors.is_empty());
        tensors.extend(norm.map(|info| ("norm.weight".to_owned(), info.clone())));
        tensors
    };
    let mut heads: Vec<HeadTensors> = [
        (&checkpoint.tensors, HeadPlace::Own),
        (&checkpoint.stray, HeadPlace::Stray),
        (&checkpoint.subfolder, HeadPlace::Subfolder),
    ]
    .map(|(from, place)| HeadTensors {
        tensors: prefixed(from),
        place: if has_target { place } else { HeadPlace::Standalone },
    })
    .into();
    // Bare names are a head's where there is no target.
    let mut bare = checkpoint.subfolder.clone();
    let mut place = HeadPlace::Subfolder;
    if !has_target {
        bare.extend(checkpoint.stray.clone());
        bare.extend(checkpoint.tensors.clone());
        place = HeadPlace::Standalone;
    }
    if bare
        .keys()
        .any(|n| n.starts_with("blocks.") && n.ends_with(".hidden_norm.weight"))
    {
        heads.push(HeadTensors { tensors: bare, place });
    }
    heads.retain(|head| !head.tensors.is_empty());
    heads
}

fn files(checkpoint: &Checkpoint, tensors: &Tensors) -> Vec<String> {
    let names = tensors.values().map(|i| checkpoint.file_of(i).name.clone());
    names.collect::<BTreeSet<_>>().into_iter().collect()
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

/// The head that counts.
fn the_head(checkpoint: &Checkpoint) -> Result<HeadTensors> {
    let head = heads(checkpoint).into_iter().next();
    head.ok_or_else(|| Error::HeadMissing {
        dir: checkpoint.dir.clone(),
        announced: is_announced(checkpoint),
    })
}

/// Collects the head's tensors.
pub(super) fn head<'a>(
    checkpoint: &'a Checkpoint,
    dtype: Dtype,
    options: LoadOptions,
) -> Result<(Weights<'a>, Layout)> {
    let head = the_head(checkpoint)?;
    let is_packed = head.tensors.keys().any(|name| name.ends_with(".scales"));
    let said = match (is_packed, head.place, &checkpoint.subfolder_config) {
        // What a config says of the target's packing is nothing to a head that is not packed.
        (false, ..) => Quantization::default(),
        (true, HeadPlace::Subfolder, None) => Quantization::by_shapes(),
        (true, HeadPlace::Subfolder, Some(config)) => Quantization::read(config)?,
        (true, ..) => quantization(checkpoint)?,
    };
    let said = if is_packed && said.is_silent() {
        Quantization::by_shapes()
    } else {
        said
    };
    let weights = Weights::new(checkpoint, &head.tensors, said, HEAD_PREFIXES, |source| {
        Some(head_name(source).unwrap_or_else(|| source.to_owned()))
    })?;
    let layout = layout_of(head.tensors.keys());
    Ok((weights.with_dtype(dtype).dry(options.dry), layout))
}

/// The head as a folder of its own. Raw blocks go by `mtp.layers.{j}.…`, which mlx-vlm reads too; converted ones keep
/// their names. mlx-vlm wants a copy of the target's final norm beside them.
pub(super) fn standalone(checkpoint: &Checkpoint) -> Result<Standalone> {
    let head = the_head(checkpoint)?;
    let source = &checkpoint.config;
    let mtp = MtpConfig::read(source)?;
    let mut text = match source.get("text_config").and_then(Value::as_object) {
        Some(text) => text.clone(),
        None => source.clone(),
    };
    for (key, value) in [
        ("num_mtp_layers", mtp.blocks.map(Value::from)),
        ("mtp_local_layer_ids", mtp.local_ids.clone().map(Value::from)),
    ] {
        if let Some(value) = value {
            text.insert(key.to_owned(), value);
        }
    }
    text.retain(|key, _| {
        ![
            "quantization",
            "quantization_config",
            "block_size",
            "architectures",
            "mtp_config",
        ]
        .contains(&key.as_str())
    });
    let mut config = Map::new();
    config.insert("model_type".to_owned(), "inkling_mtp".into());
    if let Some(blocks) = mtp.blocks {
        config.insert("num_mtp_layers".to_owned(), blocks.into());
        config.insert("block_size".to_owned(), mtp.block_size.unwrap_or(blocks + 2).into());
    }
    if let Some(ids) = mtp.local_ids {
        config.insert("mtp_local_layer_ids".to_owned(), ids.into());
    }
    let tied = text
        .get("tie_word_embeddings")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    config.insert("tie_word_embeddings".to_owned(), tied.into());
    config.insert("text_config".to_owned(), text.into());
    let is_packed = head.tensors.keys().any(|name| name.ends_with(".scales"));
    // In the `mtp` folder its shapes alone tell how it is packed, and so they do afterwards.
    if is_packed && head.place != HeadPlace::Subfolder {
        for key in ["quantization", "quantization_config"] {
            if let Some(block) = source.get(key) {
                config.insert(key.to_owned(), block.clone());
            }
        }
    }
    let is_prefixed = head.tensors.keys().any(|name| head_name(name).is_some());
    let norm = ["model.llm.norm.weight", "language_model.model.norm.weight"]
        .iter()
        .find_map(|name| checkpoint.tensors.get(*name));
    let mut tensors: Vec<(String, TensorInfo)> = (head.tensors.into_iter())
        .map(|(name, info)| match name.split_once("mtp.layers.") {
            Some((_, rest)) => (format!("mtp.layers.{rest}"), info),
            None => (name, info),
        })
        .collect();
    if let Some(norm) = norm.filter(|_| !tensors.iter().any(|(name, _)| name == "norm.weight")) {
        tensors.push(("norm.weight".to_owned(), norm.clone()));
    }
    Ok(Standalone {
        config,
        tensors,
        format: if is_prefixed { "pt" } else { "mlx" },
    })
}

/// Whether a config speaks of a head, which says nothing about its tensors.
pub(super) fn is_announced(checkpoint: &Checkpoint) -> bool {
    MtpConfig::read(&checkpoint.config).is_ok_and(|mtp| mtp.blocks.is_some())
}

/// What to fetch for a target without a head.
pub(super) fn head_advice(checkpoint: &Checkpoint) -> Option<String> {
    is_announced(checkpoint).then(|| {
        "its config announces one, but conversions leave the tensors out. Get `mtp.safetensors` of the original model"
            .to_owned()
    })
}
