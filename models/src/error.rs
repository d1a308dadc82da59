//! What can go wrong in the engine: facts with fields, one kind a variant.

use std::path::PathBuf;

/// Result of every engine operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An engine failure. [`Error::kind`] is the stable name, `Display` says what happened and
/// [`Error::hint`] what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A needed file of the checkpoint is not there.
    #[error("`{file}` is missing in `{}`", dir.display())]
    ConfigMissing {
        /// Its name in the checkpoint folder.
        file: String,
        /// The checkpoint folder.
        dir: PathBuf,
    },
    /// A configuration file is not valid JSON or not an object.
    #[error("`{file}` is not valid: {message}")]
    ConfigSyntax {
        /// Which file.
        file: String,
        /// The parser's words, with the position.
        message: String,
    },
    /// A configuration value that no model can have.
    #[error("`{field}` is {value}, but must be {expected}")]
    ConfigValue {
        /// The field's name, as in the file.
        field: String,
        /// What the file says.
        value: String,
        /// The allowed range or form.
        expected: String,
    },
    /// A required field of a configuration file is not there.
    #[error("`{field}` is missing; it must be {expected}")]
    FieldMissing {
        /// The field's name.
        field: String,
        /// The allowed range or form.
        expected: String,
    },
    /// A model family or variant that this engine does not run.
    #[error("{message}")]
    UnsupportedModel {
        /// What it is and why not.
        message: String,
    },
    /// A quantization method that this engine does not read.
    #[error("quantization `{method}` is not supported")]
    UnsupportedQuantization {
        /// The method's name, as in the config.
        method: String,
    },
    /// The config's bits and group size do not fit the tensor's own shape.
    #[error("`{tensor}` has shape {shape:?}, which does not fit {bits} bits in groups of {group_size}")]
    QuantizationMismatch {
        /// The packed tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Bits the config asks for.
        bits: i32,
        /// Group size the config asks for.
        group_size: i32,
    },
    /// A packed tensor of which the config says nothing.
    #[error("`{tensor}` is packed, but the config's `quantization` gives no bits and group_size for it")]
    QuantizationMissing {
        /// The packed tensor.
        tensor: String,
    },
    /// A tensor the model needs is not in the checkpoint.
    #[error("tensor `{name}` is missing")]
    TensorMissing {
        /// Its name, as this layout writes it.
        name: String,
    },
    /// A tensor is not in the file that the index names for it.
    #[error("tensor `{name}` is missing: the index puts it in `{file}`, which does not hold it")]
    TensorNotInShard {
        /// The tensor.
        name: String,
        /// The file.
        file: String,
    },
    /// A checkpoint without the MTP head that was asked of it.
    #[error("`{}` holds no MTP tensors{}", dir.display(), announced_words(*announced))]
    HeadMissing {
        /// The folder.
        dir: PathBuf,
        /// Whether its config speaks of a head all the same.
        announced: bool,
    },
    /// A folder without weight files.
    #[error("no safetensors file in `{}`", dir.display())]
    WeightsMissing {
        /// The folder.
        dir: PathBuf,
    },
    /// A tensor nobody takes.
    #[error("tensor `{name}` in `{file}` belongs to no part of this model")]
    TensorUnexpected {
        /// Its name in the file.
        name: String,
        /// The file.
        file: String,
    },
    /// A tensor with the wrong shape or element type.
    #[error("tensor `{name}` has shape {found}, expected {expected}")]
    TensorShape {
        /// Its name in the file.
        name: String,
        /// What the file holds.
        found: String,
        /// What the model needs.
        expected: String,
    },
    /// One tensor in two files and nothing to say which counts.
    #[error("tensor `{name}` is in both `{first}` and `{second}`")]
    TensorDuplicate {
        /// The tensor.
        name: String,
        /// One file.
        first: String,
        /// The other file.
        second: String,
    },
    /// A file the index names is not there.
    #[error("`{file}` is named by the index but missing")]
    ShardMissing {
        /// The file.
        file: String,
    },
    /// A damaged weight file.
    #[error("`{file}` is damaged: {message}")]
    FileCorrupt {
        /// The file.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// An index that does not describe the files.
    #[error("`{file}` is not a usable index: {message}")]
    IndexInvalid {
        /// The index file.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// An index entry that is a path and not a file name.
    #[error("`{path}` is no plain file name of the checkpoint folder")]
    UnsafePath {
        /// The path, as the index has it.
        path: String,
    },
    /// A drafter head opened as if it were a model.
    #[error("this folder holds only an MTP head ({what}); it is not a standalone model")]
    NotStandalone {
        /// What was found.
        what: String,
    },
    /// Target and drafter do not belong together.
    #[error("drafter and target do not match: {field} is {drafter} in the drafter and {target} in the target")]
    PairMismatch {
        /// The field that differs.
        field: String,
        /// The target's value.
        target: String,
        /// The drafter's value.
        drafter: String,
    },
    /// The chat template does not parse.
    #[error("chat template: {message}")]
    TemplateSyntax {
        /// The renderer's words.
        message: String,
    },
    /// The chat template itself refused the conversation (`raise_exception`).
    #[error("the chat template refused: {message}")]
    TemplateRaised {
        /// The template's own message.
        message: String,
    },
    /// The chat template failed while it ran.
    #[error("chat template failed: {message}")]
    TemplateRuntime {
        /// The renderer's words.
        message: String,
    },
    /// The chat template ran for too long or wrote too much.
    #[error("chat template exceeded its limit: {message}")]
    TemplateLimit {
        /// Which limit.
        message: String,
    },
    /// The checkpoint brings no chat template.
    #[error("this checkpoint has no chat template")]
    TemplateMissing,
    /// The tokenizer cannot be read or used.
    #[error("tokenizer: {message}")]
    Tokenizer {
        /// What is wrong.
        message: String,
    },
    /// The model's output is not a distribution.
    #[error("the model produced logits that are not finite at position {position}")]
    NonFiniteLogits {
        /// Position in the sequence, counted from 0.
        position: usize,
    },
    /// A request that makes no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong with it.
        message: String,
    },
    /// The prompt does not fit the context.
    #[error("the prompt has {prompt} tokens, the context holds {context}")]
    ContextFull {
        /// Tokens in the prompt.
        prompt: usize,
        /// Tokens the model can hold.
        context: usize,
    },
    /// Another generation is running.
    #[error("another reply is being generated")]
    Busy,
    /// No model is loaded.
    #[error("no model is loaded")]
    NotLoaded,
    /// MLX refused an operation.
    #[error("{message}")]
    Backend {
        /// MLX's words.
        message: String,
    },
    /// The engine thread died of a bug and was restarted.
    #[error("the engine stopped unexpectedly: {message}")]
    EngineLost {
        /// The panic's words.
        message: String,
    },
}

impl Error {
    /// The stable name of this kind of failure, in snake case.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Io { .. } => "io",
            Error::ConfigMissing { .. } | Error::FieldMissing { .. } => "config_missing",
            Error::ConfigSyntax { .. } => "config_syntax",
            Error::ConfigValue { .. } => "config_value",
            Error::UnsupportedModel { .. } => "unsupported_model",
            Error::UnsupportedQuantization { .. } => "unsupported_quantization",
            Error::QuantizationMismatch { .. } | Error::QuantizationMissing { .. } => "quantization_mismatch",
            Error::TensorMissing { .. }
            | Error::TensorNotInShard { .. }
            | Error::WeightsMissing { .. }
            | Error::HeadMissing { .. } => "tensor_missing",
            Error::TensorUnexpected { .. } => "tensor_unexpected",
            Error::TensorShape { .. } => "tensor_shape",
            Error::TensorDuplicate { .. } => "tensor_duplicate",
            Error::ShardMissing { .. } => "shard_missing",
            Error::FileCorrupt { .. } => "file_corrupt",
            Error::IndexInvalid { .. } => "index_invalid",
            Error::UnsafePath { .. } => "unsafe_path",
            Error::NotStandalone { .. } => "not_standalone",
            Error::PairMismatch { .. } => "pair_mismatch",
            Error::TemplateSyntax { .. } => "template_syntax",
            Error::TemplateRaised { .. } => "template_raised",
            Error::TemplateRuntime { .. } => "template_runtime",
            Error::TemplateLimit { .. } => "template_limit",
            Error::TemplateMissing => "template_missing",
            Error::Tokenizer { .. } => "tokenizer",
            Error::NonFiniteLogits { .. } => "non_finite_logits",
            Error::Usage { .. } => "usage",
            Error::ContextFull { .. } => "context_full",
            Error::Busy => "busy",
            Error::NotLoaded => "not_loaded",
            Error::Backend { .. } => "backend",
            Error::EngineLost { .. } => "engine_lost",
        }
    }

    /// What the person can do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Error::Io { .. } => "check that the folder exists and that you may read it",
            Error::ConfigMissing { .. } => {
                "choose the folder that holds config.json and the safetensors files of one model"
            }
            Error::ConfigSyntax { .. } | Error::ConfigValue { .. } | Error::FieldMissing { .. } => {
                "the checkpoint's configuration is damaged or made by hand: download it again"
            }
            Error::UnsupportedModel { .. } => "Qwen3.5, 3.6 and 3.8 and Inkling models run here: choose one of those",
            Error::UnsupportedQuantization { .. } => "get the unquantized model or an MLX conversion of it",
            Error::QuantizationMismatch { .. } | Error::QuantizationMissing { .. } => {
                "config and weights come from different conversions: download both again"
            }
            Error::HeadMissing { .. } => {
                "give the folder of the drafter that was published for this model, or turn speculation off"
            }
            Error::TensorMissing { .. }
            | Error::TensorNotInShard { .. }
            | Error::WeightsMissing { .. }
            | Error::ShardMissing { .. }
            | Error::FileCorrupt { .. }
            | Error::IndexInvalid { .. } => "the checkpoint is incomplete: download it again",
            Error::TensorUnexpected { .. } | Error::TensorShape { .. } | Error::TensorDuplicate { .. } => {
                "files of different models are mixed in this folder: download the model into an empty one"
            }
            Error::UnsafePath { .. } => "do not use this checkpoint; get it from a source you trust",
            Error::NotStandalone { .. } => "load the model it belongs to, and give this folder as its drafter",
            Error::PairMismatch { .. } => "use the drafter that was published for this target",
            Error::TemplateSyntax { .. } | Error::TemplateRuntime { .. } | Error::TemplateLimit { .. } => {
                "the checkpoint's chat template is damaged: download chat_template.jinja again"
            }
            Error::TemplateRaised { .. } => "change the conversation as the message says",
            Error::TemplateMissing => "choose an instruction-tuned model, or generate from raw text",
            Error::Tokenizer { .. } => "download tokenizer.json again",
            Error::NonFiniteLogits { .. } => {
                "the weights are damaged or the number format overflows: try --dtype float32"
            }
            Error::ContextFull { .. } => "start a new chat or shorten the message",
            Error::Busy => "wait for it to finish, or stop it",
            Error::NotLoaded => "load a model first",
            Error::EngineLost { .. } => "send the message again; the model is loaded anew",
            Error::Usage { .. } | Error::Backend { .. } => return None,
        };
        Some(text.to_owned())
    }
}

fn announced_words(announced: bool) -> &'static str {
    if announced {
        ", though its config announces a head: conversions often leave the tensors out"
    } else {
        ""
    }
}

impl Error {
    /// An MLX message, without the source position it ends in.
    pub(crate) fn backend(message: &str) -> Self {
        let text = message.rsplit_once(" at /").map_or(message, |(text, _)| text);
        Error::Backend {
            message: text.to_owned(),
        }
    }
}

impl From<mlx_rs::error::Exception> for Error {
    fn from(e: mlx_rs::error::Exception) -> Self {
        Error::backend(e.what())
    }
}
