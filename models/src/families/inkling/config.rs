//! The config of an Inkling text model and of its MTP blocks: names as in the file, every number checked.

use serde_json::{Map, Value};

use crate::checkpoint::Fields;
use crate::{Error, Result};

/// Attention of one kind of layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttentionShape {
    /// Query heads.
    pub(super) heads: i32,
    /// Key and value heads.
    pub(super) kv_heads: i32,
    /// Size of a head.
    pub(super) head_dim: i32,
    /// Distances with a bias of their own; farther keys have bias 0, or are not seen where `sliding`.
    pub(super) extent: i32,
    /// Whether keys `extent` or more positions back are hidden.
    pub(super) sliding: bool,
}

/// Sizes of a mixture of experts.
#[derive(Debug, Clone, Copy)]
pub(super) struct MoeConfig {
    /// Routed experts.
    pub(super) n_routed_experts: i32,
    /// Experts a token goes to.
    pub(super) num_experts_per_tok: i32,
    /// Experts every token goes to.
    pub(super) n_shared_experts: i32,
    /// Width of an expert.
    pub(super) intermediate_size: i32,
    /// Factor of all routing weights.
    pub(super) route_scale: f32,
}

/// Scaling of queries with their position, in global layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogScaling {
    /// Position count from which it grows.
    pub(super) floor: i32,
    /// Growth per unit of the natural logarithm.
    pub(super) alpha: f32,
}

/// One decoder layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LayerConfig {
    /// Whether attention sees a window only.
    pub(super) sliding: bool,
    /// Whether the MLP is dense.
    pub(super) dense: bool,
}

/// A text model.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// Width of the residual stream.
    pub(super) hidden_size: i32,
    /// The decoder layers.
    pub(super) layers: Vec<LayerConfig>,
    /// Attention of global layers.
    pub(super) global: AttentionShape,
    /// Attention of sliding layers.
    pub(super) local: AttentionShape,
    /// Size of a head's relative query.
    pub(super) d_rel: i32,
    /// `None` where positions do not scale queries.
    pub(super) log_scaling: Option<LogScaling>,
    /// Rows a short convolution sees.
    pub(super) sconv_kernel_size: i32,
    /// Width of dense MLPs.
    pub(super) dense_intermediate_size: i32,
    /// The mixtures of experts.
    pub(super) moe: MoeConfig,
    /// Rows of embedding and head.
    pub(super) vocab_size: i32,
    /// Rows that are tokens.
    pub(super) unpadded_vocab_size: i32,
    /// Added inside every norm.
    pub(super) rms_norm_eps: f32,
    /// Whether embeddings are normed.
    pub(super) use_embed_norm: bool,
    /// Whether the head is the embedding.
    pub(super) tie_word_embeddings: bool,
    /// What the head's input is divided by.
    pub(super) logits_mup_width_multiplier: f32,
    /// Advisory context length.
    pub(super) max_position_embeddings: i32,
}

const DIM: i64 = 1 << 20;
const HEADS: i64 = 1 << 14;
const HEAD_DIM: i64 = 1 << 14;
const EXTENT: i64 = 1 << 20;
/// Most relative biases a row may have, heads times extent; published models have a sixteenth of it.
const MAX_BIASES: i32 = 1 << 20;
const VOCABULARY: i64 = 1 << 24;

/// An integer under the first of its names that is there.
fn int(fields: Fields<'_>, names: &[&str], max: i64) -> Result<Option<i32>> {
    for name in names {
        if let Some(n) = fields.int(name, 1, max)? {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

impl Config {
    /// Reads a config.json, with the text part nested or at the top.
    ///
    /// # Errors
    /// Values no model can have, and variants that are not built, each by name.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self> {
        let top = Fields::new(config);
        let text = top.object("text_config")?.unwrap_or(top);
        refuse_what_is_not_built(text)?;
        let vocab_size = int(text, &["vocab_size"], VOCABULARY)?.unwrap_or(201_024);
        let hidden_size = int(text, &["hidden_size"], DIM)?.unwrap_or(6144);
        if vocab_size.checked_mul(hidden_size).is_none() {
            let most = i32::MAX / hidden_size;
            let expected = format!("at most {most} with hidden_size {hidden_size}");
            return Err(Fields::error("vocab_size", vocab_size, expected));
        }
        let (global, local) = attention(text)?;
        let intermediate = int(text, &["intermediate_size"], DIM)?.unwrap_or(24_576);
        let tie = match top.bool("tie_word_embeddings")? {
            Some(tie) => Some(tie),
            None => text.bool("tie_word_embeddings")?,
        };
        Ok(Self {
            hidden_size,
            layers: layers(text)?,
            global,
            local,
            d_rel: int(text, &["d_rel"], HEAD_DIM)?.unwrap_or(16),
            log_scaling: log_scaling(text)?,
            sconv_kernel_size: match text.int("sconv_kernel_size", 2, 64)? {
                Some(n) => n,
                None => text.int("conv_kernel_size", 2, 64)?.unwrap_or(4),
            },
            dense_intermediate_size: int(text, &["dense_intermediate_size"], DIM)?.unwrap_or(intermediate),
            moe: moe(text, intermediate)?,
            vocab_size,
            unpadded_vocab_size: int(text, &["unpadded_vocab_size"], vocab_size.into())?.unwrap_or(vocab_size),
            rms_norm_eps: text.float("rms_norm_eps", 0.0, false, 1.0)?.unwrap_or(1e-6),
            use_embed_norm: text.bool("use_embed_norm")?.unwrap_or(true),
            tie_word_embeddings: tie.unwrap_or(false),
            logits_mup_width_multiplier: match text.float("logits_mup_width_multiplier", 0.0, false, 1e6)? {
                Some(x) => x,
                None => text.float("embedding_multiplier", 0.0, false, 1e6)?.unwrap_or(24.0),
            },
            max_position_embeddings: int(text, &["max_position_embeddings", "model_max_length"], 1 << 30)?
                .unwrap_or(1 << 20),
        })
    }

    /// Attention of a layer.
    pub(super) fn attention(&self, sliding: bool) -> AttentionShape {
        if sliding { self.local } else { self.global }
    }
}

/// Switches whose other position is not built.
fn refuse_what_is_not_built(text: Fields<'_>) -> Result<()> {
    for (field, only) in [
        ("hidden_act", Value::from("silu")),
        ("gate_activation", Value::from("sigmoid")),
        ("shared_expert_sink", Value::Bool(true)),
        ("use_sconv", Value::Bool(true)),
        ("use_gate_bias", Value::Bool(true)),
        ("norm_after_topk", Value::Bool(true)),
        ("use_global_scale", Value::Bool(true)),
        ("q_bias", Value::Bool(false)),
        ("o_bias", Value::Bool(false)),
    ] {
        text.only(field, &only)?;
    }
    match text.get("final_logit_softcapping") {
        Some(value) => Err(Error::UnsupportedModel {
            message: format!("`final_logit_softcapping` is {value}; only null is supported"),
        }),
        None => Ok(()),
    }
}

/// Global and sliding attention. What a sliding size does not say, the global one does.
fn attention(text: Fields<'_>) -> Result<(AttentionShape, AttentionShape)> {
    let heads = int(text, &["num_attention_heads"], HEADS)?.unwrap_or(64);
    let kv_heads = int(text, &["num_key_value_heads"], HEADS)?.unwrap_or(8);
    let head_dim = int(text, &["head_dim"], HEAD_DIM)?.unwrap_or(128);
    let global = AttentionShape {
        heads,
        kv_heads,
        head_dim,
        extent: int(text, &["rel_extent"], EXTENT)?.unwrap_or(1024),
        sliding: false,
    };
    let local = AttentionShape {
        heads: int(text, &["swa_num_attention_heads"], HEADS)?.unwrap_or(heads),
        kv_heads: int(text, &["swa_num_key_value_heads"], HEADS)?.unwrap_or(kv_heads),
        head_dim: int(text, &["swa_head_dim"], HEAD_DIM)?.unwrap_or(head_dim),
        extent: int(text, &["sliding_window_size", "sliding_window"], EXTENT)?.unwrap_or(512),
        sliding: true,
    };
    for (field, shape) in [("rel_extent", global), ("sliding_window_size", local)] {
        // Every chunk of a prompt holds one number a row, head and distance.
        let most = MAX_BIASES / shape.heads;
        if shape.extent > most {
            let expected = format!("at most {most} with {} heads", shape.heads);
            return Err(Fields::error(field, shape.extent, expected));
        }
    }
    for (field, shape) in [("num_key_value_heads", global), ("swa_num_key_value_heads", local)] {
        if shape.heads % shape.kv_heads != 0 {
            let expected = format!("a divisor of the {} query heads", shape.heads);
            return Err(Fields::error(field, shape.kv_heads, expected));
        }
    }
    Ok((global, local))
}

fn log_scaling(text: Fields<'_>) -> Result<Option<LogScaling>> {
    let alpha = text.float("log_scaling_alpha", 0.0, true, 1e3)?.unwrap_or(0.1);
    let floor = int(text, &["log_scaling_n_floor"], 1 << 30)?;
    Ok(floor.map(|floor| LogScaling { floor, alpha }))
}

fn moe(text: Fields<'_>, intermediate: i32) -> Result<MoeConfig> {
    let experts = int(text, &["n_routed_experts", "num_local_experts"], 1 << 14)?.unwrap_or(256);
    Ok(MoeConfig {
        n_routed_experts: experts,
        num_experts_per_tok: match int(text, &["num_experts_per_tok"], experts.into())? {
            Some(k) => k,
            None => 6.min(experts),
        },
        n_shared_experts: int(text, &["n_shared_experts"], 1 << 10)?.unwrap_or(2),
        intermediate_size: int(text, &["moe_intermediate_size"], DIM)?.unwrap_or(intermediate),
        route_scale: text.float("route_scale", 0.0, false, 1e6)?.unwrap_or(8.0),
    })
}

/// One of two words for each layer; `None` when absent.
fn kinds(text: Fields<'_>, field: &str, count: i32, yes: &str, no: &str) -> Result<Option<Vec<bool>>> {
    let Some(words) = text.texts(field)? else {
        return Ok(None);
    };
    if words.len() != count as usize {
        return Err(Fields::error(
            field,
            format!("a list of {}", words.len()),
            format!("a list of {count}"),
        ));
    }
    words
        .into_iter()
        .map(|word| match word {
            w if w == yes => Ok(true),
            w if w == no => Ok(false),
            other => Err(Fields::error(field, other, format!("{yes} or {no}"))),
        })
        .collect::<Result<Vec<_>>>()
        .map(Some)
}

fn layers(text: Fields<'_>) -> Result<Vec<LayerConfig>> {
    let count = int(text, &["num_hidden_layers"], 4096)?.unwrap_or(66);
    let local_ids = text.ints("local_layer_ids", 0, i64::from(count) - 1)?;
    let sliding = match (
        kinds(text, "layer_types", count, "hybrid_sliding", "hybrid")?,
        local_ids,
    ) {
        (Some(sliding), _) => sliding,
        (None, Some(ids)) => {
            let mut sliding = vec![false; count as usize];
            for id in ids {
                sliding[id as usize] = true;
            }
            sliding
        }
        (None, None) => (0..count).map(|i| (i + 1) % 6 != 0).collect(),
    };
    let dense_below = text.int("dense_mlp_idx", 0, 4096)?.unwrap_or(0);
    let dense = kinds(text, "mlp_layer_types", count, "dense", "sparse")?
        .unwrap_or_else(|| (0..count).map(|i| i < dense_below).collect());
    Ok((sliding.into_iter().zip(dense))
        .map(|(sliding, dense)| LayerConfig { sliding, dense })
        .collect())
}

/// The MTP blocks, as far as the config tells.
#[derive(Debug, Clone)]
pub(super) struct MtpConfig {
    /// Blocks; `None` where only the tensors tell.
    pub(super) blocks: Option<usize>,
    /// Blocks with sliding attention; `None` where only the tensors tell.
    pub(super) local_ids: Option<Vec<i32>>,
    /// Tokens a round, bonus included.
    pub(super) block_size: Option<usize>,
}

impl MtpConfig {
    /// Reads the head's part of a config.json: `mtp_config` in the original, fields of `text_config` or of the top in
    /// standalone heads.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self> {
        let top = Fields::new(config);
        let places = [top.object("mtp_config")?, Some(top), top.object("text_config")?];
        let places = || places.iter().flatten();
        let mut blocks = None;
        for place in places() {
            place.only("chain_hidden_post_norm", &Value::Bool(false))?;
            blocks = blocks.or(int(*place, &["num_nextn_predict_layers", "num_mtp_layers"], 64)?);
        }
        let last = i64::from(blocks.unwrap_or(64)) - 1;
        // The plain name means the target's layers everywhere but in `mtp_config`.
        let mut local_ids = match top.object("mtp_config")? {
            Some(nested) => nested.ints("local_layer_ids", 0, last)?,
            None => None,
        };
        for place in places() {
            if local_ids.is_none() {
                local_ids = place.ints("mtp_local_layer_ids", 0, last)?;
            }
        }
        // However long the list is, it names few blocks.
        let local_ids = local_ids.map(|ids| std::collections::BTreeSet::from_iter(ids).into_iter().collect());
        Ok(Self {
            blocks: blocks.map(|n| n as usize),
            local_ids,
            block_size: (top.int("block_size", 2, 1024)?).map(|n| n as usize),
        })
    }
}
