//! Where a head's tensors are, under which names, and how to hand them on.

use std::collections::BTreeMap;

use mlx_rs::Dtype;
use serde_json::{Map, Value};

use super::weights::{head_name, is_targets};
use crate::checkpoint::{Checkpoint, Fields, Quantization, Standalone, TensorInfo, Weights};
use crate::family::{HeadLocation, HeadPlace, LoadOptions};
use crate::{Error, Result};

/// Prefixes under which a config may list the head's modules.
const HEAD_PREFIXES: &[&str] = &["mtp.", "language_model.mtp.", ""];

/// Tensors of the head, by canonical name.
pub(super) struct HeadWeights<'a> {
    pub(super) weights: Weights<'a>,
    /// Whether norm weights are stored without their 1.
    pub(super) zero_centred: bool,
}

type Tensors = BTreeMap<String, TensorInfo>;

/// A head's source tensors and where they are.
struct HeadTensors {
    tensors: Tensors,
    place: HeadPlace,
}

/// Every head of a folder, the one that counts first: the target's own files before a stray one before the `mtp`
/// folder, and a folder that is nothing but a head last.
fn heads(checkpoint: &Checkpoint) -> Vec<HeadTensors> {
    let prefixed = |from: &Tensors| -> Tensors {
        let mut tensors = from.clone();
        tensors.retain(|name, _| head_name(name).is_some());
        tensors
    };
    let has_target = checkpoint.tensors.keys().any(|name| is_targets(name));
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

/// The head that counts.
fn the_head(checkpoint: &Checkpoint) -> Result<HeadTensors> {
    let head = heads(checkpoint).into_iter().next();
    head.ok_or_else(|| Error::HeadMissing {
        dir: checkpoint.dir.clone(),
        announced: is_announced(checkpoint),
    })
}

/// Raw heads have the prefix and norms without their 1. MLX's own conversions may keep the prefix but have the 1 added
/// already; they say so in the file.
fn is_zero_centred(checkpoint: &Checkpoint, head: &HeadTensors) -> bool {
    let is_prefixed = head.tensors.keys().any(|name| head_name(name).is_some());
    let is_converted = head.tensors.values().any(|info| {
        let format = checkpoint.file_of(info).metadata.get("format");
        format.is_some_and(|format| format == "mlx")
    });
    is_prefixed && !is_converted
}

/// Collects the head's tensors.
pub(super) fn head<'a>(checkpoint: &'a Checkpoint, dtype: Dtype, options: LoadOptions) -> Result<HeadWeights<'a>> {
    let head = the_head(checkpoint)?;
    let quantization = head_quantization(checkpoint, &head)?;
    let weights = Weights::new(checkpoint, &head.tensors, quantization, HEAD_PREFIXES, |source| {
        Some(head_name(source).unwrap_or(source).to_owned())
    })?;
    Ok(HeadWeights {
        weights: weights.with_dtype(dtype).dry(options.dry),
        zero_centred: is_zero_centred(checkpoint, &head),
    })
}

/// How the head is packed. Its own block counts before the one of the config beside it; where no config says anything,
/// its shapes alone tell. What a config says of the target's packing is nothing to a head that is not packed.
fn head_quantization(checkpoint: &Checkpoint, head: &HeadTensors) -> Result<Quantization> {
    let is_packed = |name: &String| name.ends_with(".scales") || name.ends_with("_scale_inv");
    if !head.tensors.keys().any(is_packed) {
        return Ok(Quantization::default());
    }
    if let Some(block) = own_block(checkpoint) {
        return Quantization::parse(block);
    }
    let said = config_beside(checkpoint, head).map(Quantization::read).transpose()?;
    Ok(said
        .filter(|said| !said.is_silent())
        .unwrap_or_else(Quantization::by_shapes))
}

/// What some converters write of the head alone.
fn own_block(checkpoint: &Checkpoint) -> Option<&Map<String, Value>> {
    checkpoint.config.get("mtplx_mtp_quantization")?.as_object()
}

/// The config that speaks of the head: a head in the `mtp` folder may be packed in another way than its target.
fn config_beside<'c>(checkpoint: &'c Checkpoint, head: &HeadTensors) -> Option<&'c Map<String, Value>> {
    if is_in_folder(checkpoint, head) {
        checkpoint.subfolder_config.as_ref()
    } else {
        Some(&checkpoint.config)
    }
}

fn is_in_folder(checkpoint: &Checkpoint, head: &HeadTensors) -> bool {
    let names = files(checkpoint, &head.tensors);
    names.iter().all(|name| name.contains('/'))
}

/// The head as a folder of its own: raw heads keep their prefix, which tells every reader to add the 1; converted ones
/// go by bare names. `tied` is whether the target's head is its embedding.
pub(super) fn standalone(checkpoint: &Checkpoint, tied: bool) -> Result<Standalone> {
    let head = the_head(checkpoint)?;
    let is_raw = is_zero_centred(checkpoint, &head);
    let tensors = head.tensors.iter().map(|(source, info)| {
        let bare = head_name(source).unwrap_or(source);
        let name = if is_raw { format!("mtp.{bare}") } else { bare.to_owned() };
        (name, info.clone())
    });
    let source = match (&checkpoint.subfolder_config, is_in_folder(checkpoint, &head)) {
        (Some(own), true) if own.contains_key("hidden_size") || own.contains_key("text_config") => own,
        _ => &checkpoint.config,
    };
    let mut text = match source.get("text_config").and_then(Value::as_object) {
        Some(text) => text.clone(),
        None => source.clone(),
    };
    text.retain(|key, _| {
        !["quantization", "quantization_config", "block_size", "architectures"].contains(&key.as_str())
    });
    text.insert("tie_word_embeddings".to_owned(), tied.into());
    let depth = Fields::new(&text)
        .int("mtp_num_hidden_layers", 0, 8)?
        .unwrap_or(1)
        .max(1);
    let mut config = Map::new();
    config.insert("model_type".to_owned(), "qwen3_5_mtp".into());
    let block_size = checkpoint
        .config
        .get("block_size")
        .cloned()
        .unwrap_or_else(|| (depth + 2).into());
    config.insert("block_size".to_owned(), block_size);
    config.insert("tie_word_embeddings".to_owned(), tied.into());
    config.insert("text_config".to_owned(), text.into());
    for (key, value) in standalone_quantization(checkpoint, &head) {
        config.insert(key.to_owned(), value);
    }
    Ok(Standalone {
        config,
        tensors: tensors.collect(),
        format: if is_raw { "pt" } else { "mlx" },
    })
}

/// The block that says how the head is packed, its overrides under bare names; none where only its shapes tell.
fn standalone_quantization(checkpoint: &Checkpoint, head: &HeadTensors) -> Vec<(&'static str, Value)> {
    let has = |end: &str| head.tensors.keys().any(|name| name.ends_with(end));
    let beside = config_beside(checkpoint, head);
    if has("_scale_inv") {
        let block = beside.and_then(|config| config.get("quantization_config"));
        return block
            .map(|block| ("quantization_config", block.clone()))
            .into_iter()
            .collect();
    }
    let said = || {
        ["quantization", "quantization_config"]
            .iter()
            .find_map(|key| beside?.get(*key)?.as_object())
    };
    let Some(block) = own_block(checkpoint).or_else(said).filter(|_| has(".scales")) else {
        return Vec::new();
    };
    let mut bare = Map::new();
    for (key, value) in block {
        let is_setting = !value.is_object() && !value.is_boolean();
        match key
            .strip_prefix("mtp.")
            .or_else(|| key.strip_prefix("language_model.mtp."))
        {
            Some(path) => drop(bare.insert(path.to_owned(), value.clone())),
            None if is_setting || head.place == HeadPlace::Standalone => drop(bare.insert(key.clone(), value.clone())),
            // Modules of the target.
            None => {}
        }
    }
    vec![
        ("quantization", bare.clone().into()),
        ("quantization_config", bare.into()),
    ]
}

/// Whether a config speaks of a head, which says nothing about its tensors.
pub(super) fn is_announced(checkpoint: &Checkpoint) -> bool {
    let text = checkpoint.config.get("text_config").and_then(Value::as_object);
    [Some(&checkpoint.config), text].into_iter().flatten().any(|object| {
        let layers = object.get("mtp_num_hidden_layers");
        layers.and_then(Value::as_i64).is_some_and(|n| n > 0)
    })
}
