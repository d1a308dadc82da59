//! Loading a pair: which checkpoints, which head, which activation type.

use std::path::Path;
use std::time::Instant;

use mlx_rs::Dtype;

use super::{ActivationDtype, DraftKind, DrafterState, LoadRequest, Loaded, SamplingParams};
use crate::checkpoint::{Checkpoint, family_of};
use crate::family::LoadOptions;
use crate::nn::ffi;
use crate::registry::{Entry, Pair};
use crate::{Error, Result};

/// A loaded pair and what is needed to talk to it.
pub(super) struct Model {
    pub(super) request: LoadRequest,
    pub(super) pair: Box<dyn Pair>,
    pub(super) loaded: Loaded,
}

/// Loads what was asked for.
pub(super) fn load(request: &LoadRequest) -> Result<Model> {
    let start = Instant::now();
    let checkpoint = Checkpoint::open(&request.target)?;
    let family = family_of(&checkpoint)?;
    let mut warnings = checkpoint.warnings.clone();
    let own = (family.head)(&checkpoint);
    if let Some(head) = own.as_ref().filter(|h| h.standalone) {
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
        return Err(Error::TensorMissing { name: "mtp.fc.weight".to_owned() });
    }
    let device = ffi::device_name();
    let options = LoadOptions { dtype: dtype(request.dtype, device), dry: false };
    let pair = (family.load)(&checkpoint, drafter, options)?;
    if let Some(extra) = drafter.filter(|_| separate.is_some()) {
        warnings.extend(extra.warnings.iter().cloned());
    }
    let state = match (pair.block_size(), &separate, &own) {
        (Some(block_size), Some(head), _) => {
            DrafterState::Ready { source: format!("MTP head in `{}`", head.dir.display()), block_size }
        }
        (Some(block_size), None, Some(head)) => {
            let place = if head.stray { "beside the index" } else { "in the model's own files" };
            DrafterState::Ready { source: format!("MTP head {place} ({})", head.files.join(", ")), block_size }
        }
        _ if request.draft_kind == DraftKind::None => {
            DrafterState::Unavailable { reason: "loaded without a drafter, as asked".to_owned() }
        }
        _ => DrafterState::Unavailable {
            reason: "this model's files hold no MTP head; load its drafter beside it to speculate".to_owned(),
        },
    };
    let loaded = Loaded {
        family: family.name.to_owned(),
        target: request.target.clone(),
        drafter: state,
        context: pair.context(),
        can_chat: false,
        defaults: SamplingParams::default(),
        device,
        dtype: dtype_name(pair.dtype()),
        load_ms: start.elapsed().as_secs_f64() * 1e3,
        memory_bytes: mlx_rs::memory::active_memory().unwrap_or_default() as u64,
        warnings,
    };
    Ok(Model { request: request.clone(), pair, loaded })
}

fn open_drafter(dir: &Path, family: &Entry) -> Result<Checkpoint> {
    let checkpoint = Checkpoint::open(dir)?;
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
