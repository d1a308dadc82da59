//! The config of a Qwen3.5 text model: names as in the file, every number checked.

use serde_json::{Map, Value};

use crate::checkpoint::Fields;
use crate::{Error, Result};

/// What mixes tokens in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerKind {
    /// Gated delta rule.
    Linear,
    /// Softmax attention with an output gate.
    Full,
}

/// Sizes of a mixture of experts.
#[derive(Debug, Clone, Copy)]
pub(super) struct MoeConfig {
    /// Routed experts.
    pub(super) num_experts: i32,
    /// Experts a token goes to.
    pub(super) num_experts_per_tok: i32,
    /// Width of a routed expert.
    pub(super) moe_intermediate_size: i32,
    /// Width of the shared expert.
    pub(super) shared_expert_intermediate_size: i32,
    /// Whether the chosen weights are scaled to sum to 1.
    pub(super) norm_topk_prob: bool,
}

/// A text model.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// Width of the residual stream.
    pub(super) hidden_size: i32,
    /// Kind of each decoder layer.
    pub(super) layers: Vec<LayerKind>,
    /// Width of the dense MLP; `None` for mixtures of experts.
    pub(super) intermediate_size: Option<i32>,
    /// Mixture of experts, if it is one.
    pub(super) moe: Option<MoeConfig>,
    /// Query heads.
    pub(super) num_attention_heads: i32,
    /// Key and value heads.
    pub(super) num_key_value_heads: i32,
    /// Size of an attention head.
    pub(super) head_dim: i32,
    /// Token ids are below this.
    pub(super) vocab_size: i32,
    /// Added inside every norm.
    pub(super) rms_norm_eps: f32,
    /// Advisory context length.
    pub(super) max_position_embeddings: i32,
    /// Whether the head is the embedding.
    pub(super) tie_word_embeddings: bool,
    /// Leading dimensions of a head that rotate.
    pub(super) rope_dims: i32,
    /// Base of the rotation.
    pub(super) rope_theta: f32,
    /// Key heads of the gated delta rule.
    pub(super) linear_num_key_heads: i32,
    /// Value heads of the gated delta rule.
    pub(super) linear_num_value_heads: i32,
    /// Size of its keys.
    pub(super) linear_key_head_dim: i32,
    /// Size of its values.
    pub(super) linear_value_head_dim: i32,
    /// Rows its convolution sees.
    pub(super) linear_conv_kernel_dim: i32,
}

const DIM: i64 = 1 << 20;
const HEADS: i64 = 1 << 14;
const HEAD_DIM: i64 = 1 << 14;

impl Config {
    /// Reads a config.json, with the text part nested or at the top.
    ///
    /// # Errors
    /// Values no model can have, and variants that are not built, each by name.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self> {
        let top = Fields::new(config);
        let text = top.object("text_config")?.unwrap_or(top);
        for (field, value) in [("hidden_act", "silu".into()), ("attn_output_gate", Value::Bool(true))] {
            text.only(field, &value)?;
        }
        if let Some(gate) = text
            .text("output_gate_type")?
            .filter(|g| !["swish", "silu"].contains(g))
        {
            return Err(Error::UnsupportedModel {
                message: format!("`output_gate_type` is {gate}; only swish is supported"),
            });
        }
        text.only("attention_bias", &Value::Bool(false))?;
        let hidden_size = text.required_int("hidden_size", 1, DIM)?;
        let num_attention_heads = text.required_int("num_attention_heads", 1, HEADS)?;
        let num_key_value_heads = text.required_int("num_key_value_heads", 1, HEADS)?;
        divides(
            "num_key_value_heads",
            num_key_value_heads,
            "num_attention_heads",
            num_attention_heads,
        )?;
        let head_dim = text.int("head_dim", 1, HEAD_DIM)?.unwrap_or(256);
        let (rope_theta, rope_dims) = rope(text, head_dim)?;
        let linear_num_key_heads = text.int("linear_num_key_heads", 1, HEADS)?.unwrap_or(16);
        let linear_num_value_heads = text.int("linear_num_value_heads", 1, HEADS)?.unwrap_or(32);
        divides(
            "linear_num_key_heads",
            linear_num_key_heads,
            "linear_num_value_heads",
            linear_num_value_heads,
        )?;
        let moe = moe(text)?;
        let intermediate_size = match moe {
            Some(_) => None,
            None => Some(text.required_int("intermediate_size", 1, DIM)?),
        };
        let vocab_size = text.required_int("vocab_size", 1, 1 << 24)?;
        fits("vocab_size", vocab_size, "hidden_size", hidden_size)?;
        fits(
            "num_attention_heads",
            2 * num_attention_heads * head_dim,
            "hidden_size",
            hidden_size,
        )?;
        if let Some(width) = intermediate_size {
            fits("intermediate_size", width, "hidden_size", hidden_size)?;
        }
        let tie = match top.bool("tie_word_embeddings")? {
            Some(tie) => Some(tie),
            None => text.bool("tie_word_embeddings")?,
        };
        Ok(Self {
            hidden_size,
            layers: layers(text)?,
            intermediate_size,
            moe,
            num_attention_heads,
            num_key_value_heads,
            head_dim,
            vocab_size,
            rms_norm_eps: text.float("rms_norm_eps", 0.0, false, 1.0)?.unwrap_or(1e-6),
            max_position_embeddings: text.int("max_position_embeddings", 1, 1 << 30)?.unwrap_or(32_768),
            tie_word_embeddings: tie.unwrap_or(false),
            rope_dims,
            rope_theta,
            linear_num_key_heads,
            linear_num_value_heads,
            linear_key_head_dim: text.int("linear_key_head_dim", 1, HEAD_DIM)?.unwrap_or(128),
            linear_value_head_dim: text.int("linear_value_head_dim", 1, HEAD_DIM)?.unwrap_or(128),
            linear_conv_kernel_dim: text.int("linear_conv_kernel_dim", 2, 64)?.unwrap_or(4),
        })
    }

    /// Width of all keys of the gated delta rule.
    #[must_use]
    pub(super) fn linear_key_width(&self) -> i32 {
        self.linear_num_key_heads * self.linear_key_head_dim
    }

    /// Width of all its values.
    #[must_use]
    pub(super) fn linear_value_width(&self) -> i32 {
        self.linear_num_value_heads * self.linear_value_head_dim
    }

    /// Channels of its convolution: queries, keys, values.
    #[must_use]
    pub(super) fn conv_channels(&self) -> i32 {
        2 * self.linear_key_width() + self.linear_value_width()
    }
}

fn divides(small: &str, a: i32, large: &str, b: i32) -> Result<()> {
    if b % a == 0 {
        return Ok(());
    }
    Err(Fields::error(small, a, format!("a divisor of {large} ({b})")))
}

/// A matrix of the model must be one that memory can hold.
fn fits(field: &str, rows: i32, other: &str, columns: i32) -> Result<()> {
    if rows.checked_mul(columns).is_some() {
        return Ok(());
    }
    let most = i32::MAX / columns;
    Err(Fields::error(
        field,
        rows,
        format!("at most {most} rows with {other} {columns}"),
    ))
}

fn layers(text: Fields<'_>) -> Result<Vec<LayerKind>> {
    let count = text.required_int("num_hidden_layers", 1, 4096)?;
    let interval = text.int("full_attention_interval", 1, 4096)?.unwrap_or(4);
    let Some(types) = text.texts("layer_types")? else {
        return Ok((1..=count)
            .map(|i| {
                if i % interval == 0 {
                    LayerKind::Full
                } else {
                    LayerKind::Linear
                }
            })
            .collect());
    };
    if types.len() != count as usize {
        return Err(Fields::error(
            "layer_types",
            format!("a list of {}", types.len()),
            format!("a list of {count}"),
        ));
    }
    types
        .into_iter()
        .map(|t| match t {
            "linear_attention" => Ok(LayerKind::Linear),
            "full_attention" => Ok(LayerKind::Full),
            other => Err(Fields::error(
                "layer_types",
                other,
                "linear_attention or full_attention",
            )),
        })
        .collect()
}

/// Theta and rotating dimensions; older configs write them beside `rope_parameters`.
fn rope(text: Fields<'_>, head_dim: i32) -> Result<(f32, i32)> {
    let nested = match text.object("rope_parameters")? {
        Some(nested) => Some(nested),
        None => text.object("rope_scaling")?,
    };
    if let Some(nested) = nested {
        for key in ["rope_type", "type"] {
            if let Some(kind) = nested.text(key)?.filter(|k| !["default", "mrope"].contains(k)) {
                return Err(Error::UnsupportedModel {
                    message: format!("`{key}` is {kind}; only default is supported"),
                });
            }
        }
    }
    let number = |name: &str, max: f64| -> Result<Option<f32>> {
        if let Some(nested) = nested
            && let Some(value) = nested.float(name, 0.0, false, max)?
        {
            return Ok(Some(value));
        }
        text.float(name, 0.0, false, max)
    };
    let theta = number("rope_theta", 1e12)?.unwrap_or(1e7);
    let share = number("partial_rotary_factor", 1.0)?.unwrap_or(0.25);
    let dims = (f64::from(head_dim) * f64::from(share)) as i32;
    if dims < 2 || dims % 2 != 0 {
        return Err(Fields::error(
            "partial_rotary_factor",
            share,
            format!("an even number of the {head_dim} dimensions of a head"),
        ));
    }
    Ok((theta, dims))
}

fn moe(text: Fields<'_>) -> Result<Option<MoeConfig>> {
    let experts = text.int("num_experts", 0, 1 << 14)?.unwrap_or(0);
    let is_moe = text.text("model_type")?.is_some_and(|t| t.contains("moe"));
    if experts == 0 {
        return if is_moe {
            Err(Fields::error("num_experts", experts, "an integer from 1 to 16384"))
        } else {
            Ok(None)
        };
    }
    let width = text.required_int("moe_intermediate_size", 1, DIM)?;
    Ok(Some(MoeConfig {
        num_experts: experts,
        num_experts_per_tok: text.required_int("num_experts_per_tok", 1, i64::from(experts))?,
        moe_intermediate_size: width,
        shared_expert_intermediate_size: text.int("shared_expert_intermediate_size", 1, DIM)?.unwrap_or(width),
        norm_topk_prob: text.bool("norm_topk_prob")?.unwrap_or(true),
    }))
}
