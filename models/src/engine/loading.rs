//! Loading a pair: which checkpoints, which head, which activation type.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use mlx_rs::Dtype;
use serde_json::{Map, Value};

use super::alarm::Record;
use super::speculating;
use super::turn::Ahead;
use super::wiring::Wirings;
use super::{ActivationDtype, Calibration, DraftKind, DrafterState, LoadRequest, Loaded, SamplingParams};
use crate::cache::KvFormat;
use crate::checkpoint::{Checkpoint, family_of, read_json_object};
use crate::family::{HeadPlace, LoadOptions};
use crate::generate::Controller;
use crate::nn::rows::{self, RowPolicy};
use crate::nn::{checked_keys, ffi, memory};
use crate::registry::{Entry, Pair};
use crate::text::{ChatTemplate, EndTokens, GenerationDefaults, OutputFormat, Tokenizer};
use crate::{Error, Result};

/// A loaded pair and what is needed to talk to it.
pub(super) struct Model {
    pub(super) request: LoadRequest,
    pub(super) pair: Box<dyn Pair>,
    pub(super) text: TextParts,
    pub(super) loaded: Loaded,
    pub(super) wirings: Wirings,
    /// What its drafts have shown since it was loaded.
    pub(super) record: Record,
    /// How blocks are run so that they equal single steps.
    pub(super) policy: Rc<RowPolicy>,
    /// What to read while nothing is asked.
    pub(super) ahead: RefCell<Ahead>,
    /// What automatic depth has learned, in exact mode and in fast mode.
    pub(super) controllers: [RefCell<Option<Rc<RefCell<Controller>>>>; 2],
}

/// What turns text into ids and back.
pub(super) struct TextParts {
    /// `None` where the checkpoint brings none: it then continues ids only.
    pub(super) tokenizer: Option<Tokenizer>,
    pub(super) template: Option<ChatTemplate>,
    pub(super) format: OutputFormat,
    /// End tokens.
    pub(super) eos: Vec<u32>,
    /// Special tokens by their names, for the template.
    pub(super) special: Map<String, Value>,
}

impl TextParts {
    fn load(dir: &Path, warnings: &mut Vec<String>) -> Result<Self> {
        let tokenizer = if dir.join("tokenizer.json").is_file() {
            Some(Tokenizer::load(dir)?)
        } else {
            None
        };
        let eos = EndTokens::load(dir, |token| tokenizer.as_ref().and_then(|t| t.token_id(token)))?;
        warnings.extend(eos.warnings);
        let config = read_json_object(dir, "tokenizer_config.json")
            .ok()
            .flatten()
            .unwrap_or_default();
        let special = ["bos_token", "eos_token", "unk_token", "pad_token"]
            .into_iter()
            .filter_map(|name| {
                let token = config.get(name)?;
                let text = token.get("content").unwrap_or(token).as_str()?;
                Some((name.to_owned(), Value::from(text)))
            })
            .collect();
        Ok(Self {
            format: tokenizer.as_ref().map_or(OutputFormat::Plain, OutputFormat::of),
            template: if tokenizer.is_some() {
                ChatTemplate::load(dir)?
            } else {
                None
            },
            tokenizer,
            eos: eos.ids,
            special,
        })
    }
}

/// Loads what was asked for.
pub(super) fn load(request: &LoadRequest) -> Result<Model> {
    let start = Instant::now();
    memory::limit(request.memory_limit);
    let checkpoint = Checkpoint::open(&request.target)?;
    let family = family_of(&checkpoint)?;
    let mut warnings = checkpoint.warnings.clone();
    warnings.extend((family.notes)(&checkpoint));
    let own = (family.head)(&checkpoint);
    if let Some(head) = own.as_ref().filter(|h| h.is_standalone()) {
        return Err(Error::NotStandalone {
            what: format!("`{}`, {} MTP tensors", checkpoint.model_type(), head.tensors),
        });
    }
    let separate = match (&request.drafter, request.draft_kind) {
        (_, DraftKind::None) | (None, _) => None,
        (Some(dir), _) => Some(open_drafter(dir, family)?),
    };
    let own = own.filter(|_| request.draft_kind != DraftKind::None);
    let drafter = separate.as_ref().or(own.as_ref().map(|_| &checkpoint));
    if drafter.is_none() && request.draft_kind == DraftKind::Mtp {
        return Err(Error::HeadMissing {
            dir: request.target.clone(),
            announced: false,
        });
    }
    let device = ffi::device_name();
    let options = LoadOptions {
        dtype: dtype(request.dtype, device),
        dry: false,
        kv: request.kv,
    };
    let pair = (family.load)(&checkpoint, drafter, options)?;
    if let Some(extra) = drafter.filter(|_| separate.is_some()) {
        warnings.extend(extra.warnings.iter().cloned());
        warnings.extend((family.pair_doubt)(&checkpoint, extra));
    }
    let state = match (pair.block_size(), &separate, &own) {
        (Some(block_size), Some(head), _) => DrafterState::Ready {
            source: format!("MTP head in `{}`", head.dir.display()),
            block_size,
        },
        (Some(block_size), None, Some(head)) => {
            let place = match head.place {
                HeadPlace::Own | HeadPlace::Standalone => "in the model's own files",
                HeadPlace::Stray => "beside the index",
                HeadPlace::Subfolder => "in the model's `mtp` folder",
            };
            if !head.passed_over.is_empty() {
                let others = head.passed_over.join(", ");
                warnings.push(format!(
                    "another MTP head in {others} is not used: the one {place} counts"
                ));
            }
            DrafterState::Ready {
                source: format!("MTP head {place} ({})", head.files.join(", ")),
                block_size,
            }
        }
        _ if request.draft_kind == DraftKind::None => DrafterState::Unavailable {
            reason: "loaded without a drafter, as asked".to_owned(),
        },
        _ => DrafterState::Unavailable {
            reason: match (family.head_advice)(&checkpoint) {
                Some(advice) => format!("this model's files hold no MTP head; {advice}"),
                None => "this model's files hold no MTP head; load its drafter beside it to speculate".to_owned(),
            },
        },
    };
    pair.keep(request.cache_bytes.unwrap_or_else(ffi::spare_memory));
    let check_key = format!(
        "{}, MLX {}, {} {}, {}{}{}, {:016x}",
        ffi::device_model(),
        ffi::version(),
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION"),
        dtype_name(pair.dtype()),
        match request.kv {
            KvFormat::Plain => String::new(),
            KvFormat::Packed(bits) => format!(", keys and values in {bits} bits"),
        },
        match device {
            "cpu" => String::new(),
            // What was checked before with fewer keys says less.
            _ => format!(
                ", up to {} keys",
                checked_keys().iter().max().copied().unwrap_or_default()
            ),
        },
        checkpoint.fingerprint()
    );
    let checked = match pair.block_size() {
        Some(_) => Some(pair.self_check(request.measured.self_check(&check_key))?),
        None => None,
    };
    let (self_check, policy) = checked.unzip();
    let policy = policy.unwrap_or_default();
    let (costs_key, costs) = match (&request.calibration, &self_check, drafter) {
        // Without blocks there is nothing to choose.
        (Calibration::On { conditions }, Some(check), Some(head)) if check.block > 1 => {
            let key = format!("{check_key}, head {:016x}, {conditions}", head.head_fingerprint());
            let costs = match request.measured.costs(&key) {
                Some(known) => Some(known.clone()),
                None => {
                    let _installed = rows::install(policy.clone());
                    pair.calibrate(check.block)?
                }
            };
            (key, costs)
        }
        _ => (String::new(), None),
    };
    let text = TextParts::load(&request.target, &mut warnings)?;
    let defaults = defaults(&request.target, &mut warnings);
    let loaded = Loaded {
        family: family.name.to_owned(),
        target: request.target.clone(),
        drafter: state,
        context: pair.context(),
        can_chat: text.template.is_some(),
        can_think: text.template.is_some() && text.format.end_of_thinking(true).is_some(),
        defaults,
        device,
        dtype: dtype_name(pair.dtype()),
        load_ms: start.elapsed().as_secs_f64() * 1e3,
        memory_bytes: mlx_rs::memory::active_memory().unwrap_or_default() as u64,
        wirings: pair.wirings().iter().map(|name| (*name).to_owned()).collect(),
        auto_depth: match (pair.block_size(), &self_check) {
            (Some(own), Some(check)) => {
                speculating::new_controller(costs.clone(), &request.prior, own - 1, check.block).depth()
            }
            _ => 0,
        },
        self_check,
        check_key,
        costs,
        costs_key,
        warnings,
    };
    Ok(Model {
        wirings: Wirings::new(pair.wirings(), &request.wirings),
        record: Record::default(),
        policy,
        ahead: RefCell::default(),
        controllers: Default::default(),
        request: request.clone(),
        pair,
        text,
        loaded,
    })
}

/// The checkpoint's own sampling settings over this engine's.
fn defaults(dir: &Path, warnings: &mut Vec<String>) -> SamplingParams {
    let file = GenerationDefaults::load(dir);
    warnings.extend(file.warnings);
    let base = SamplingParams::default();
    SamplingParams {
        temperature: if file.do_sample == Some(false) {
            0.0
        } else {
            file.temperature.unwrap_or(base.temperature)
        },
        top_p: file.top_p.unwrap_or(base.top_p),
        top_k: file.top_k.map_or(base.top_k, |k| k as usize),
        min_p: file.min_p.unwrap_or(base.min_p),
        repetition_penalty: file.repetition_penalty.unwrap_or(base.repetition_penalty),
        ..base
    }
}

fn open_drafter(dir: &Path, family: &Entry) -> Result<Checkpoint> {
    let checkpoint = Checkpoint::open_head(dir)?;
    if !(family.knows)(checkpoint.model_type()) {
        return Err(Error::PairMismatch {
            field: "model family".to_owned(),
            target: family.name.to_owned(),
            drafter: checkpoint.model_type().to_owned(),
        });
    }
    Ok(checkpoint)
}

/// The CPU backend multiplies packed weights with 16-bit activations many times slower than with f32 ones.
fn dtype(asked: Option<ActivationDtype>, device: &str) -> Option<Dtype> {
    match asked {
        Some(ActivationDtype::Float32) => Some(Dtype::Float32),
        Some(ActivationDtype::Float16) => Some(Dtype::Float16),
        Some(ActivationDtype::BFloat16) => Some(Dtype::Bfloat16),
        None if device == "cpu" => Some(Dtype::Float32),
        None => None,
    }
}

fn dtype_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Float16 => "float16",
        Dtype::Bfloat16 => "bfloat16",
        _ => "float32",
    }
}
