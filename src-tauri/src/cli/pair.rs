//! Which model and drafter, as the command line gives them.

use std::path::PathBuf;

use clap::ValueEnum;
use models::{ActivationDtype, DraftKind, KvFormat, LoadRequest};

use crate::ipc::AppError;
use crate::library::{Assets, BUILTIN};

#[derive(clap::Args)]
pub(super) struct Pair {
    /// Folder of the model; without one the built-in model.
    #[arg(short, long, value_name = "DIR")]
    pub(super) model: Option<PathBuf>,
    /// Folder of a drafter of its own.
    #[arg(long, value_name = "DIR")]
    pub(super) draft_model: Option<PathBuf>,
    /// Which kind of drafter: whatever there is, an MTP head or nothing else, or none.
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    pub(super) draft_kind: Kind,
    /// Type of the activations; without it float32 on the CPU and the checkpoint's own on a GPU.
    #[arg(long, value_enum)]
    dtype: Option<Dtype>,
    /// Hold the conversation's keys and values packed in so many bits: a half or a quarter of the memory, and other text,
    /// which speculation leaves alone all the same.
    #[arg(long, value_name = "BITS", value_parser = kv_format)]
    kv_bits: Option<KvFormat>,
}

fn kv_format(text: &str) -> Result<KvFormat, String> {
    match text {
        "8" => Ok(KvFormat::Packed(8)),
        "4" => Ok(KvFormat::Packed(4)),
        _ => Err("8 or 4 is needed".to_owned()),
    }
}

#[derive(Clone, Copy, Default, PartialEq, ValueEnum)]
pub(super) enum Kind {
    #[default]
    Auto,
    Mtp,
    None,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dtype {
    Float32,
    Float16,
    Bfloat16,
}

impl Pair {
    pub(super) fn load_request(&self) -> Result<LoadRequest, AppError> {
        let (target, drafter) = match &self.model {
            Some(dir) if dir.as_os_str() != BUILTIN => (dir.clone(), None),
            _ => Assets::find(None)
                .builtin()
                .map(|(target, drafter)| (target, Some(drafter)))?,
        };
        let draft_kind = match self.draft_kind {
            Kind::Auto => DraftKind::Auto,
            Kind::Mtp => DraftKind::Mtp,
            Kind::None => DraftKind::None,
        };
        let dtype = self.dtype.map(|dtype| match dtype {
            Dtype::Float32 => ActivationDtype::Float32,
            Dtype::Float16 => ActivationDtype::Float16,
            Dtype::Bfloat16 => ActivationDtype::BFloat16,
        });
        let drafter = self
            .draft_model
            .clone()
            .or(drafter)
            .filter(|_| self.draft_kind != Kind::None);
        Ok(LoadRequest {
            target,
            drafter,
            draft_kind,
            dtype,
            kv: self.kv_bits.unwrap_or_default(),
            ..LoadRequest::default()
        })
    }
}
