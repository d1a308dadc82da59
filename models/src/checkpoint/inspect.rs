//! What a folder is, from headers alone, judged by the loader's own checks.

use std::path::Path;

use serde::Serialize;

use super::{Checkpoint, Quantization};
use crate::families::FAMILIES;
use crate::family::{HeadLocation, HeadPlace, LoadOptions};
use crate::registry::Entry;
use crate::{Error, Result};

/// What a checkpoint folder is.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Family name, if it is one that runs here.
    pub family: Option<String>,
    /// `model_type`, as the config has it.
    pub model_type: String,
    /// `target`, `drafter` or `both`.
    pub role: &'static str,
    /// Decoder layers.
    pub layers: usize,
    /// Quantization of the whole model, in words.
    pub quantization: Option<String>,
    /// The MTP head.
    pub mtp: MtpInspection,
    /// Bytes of all weight files.
    pub bytes: u64,
    /// What keeps it from loading.
    pub problems: Vec<Problem>,
    /// What is odd but no obstacle.
    pub warnings: Vec<String>,
}

/// Where the MTP head is.
#[derive(Debug, Clone, Serialize)]
pub struct MtpInspection {
    /// Whether MTP tensors are there.
    pub present: bool,
    /// Where they are.
    pub location: MtpLocation,
    /// How many there are.
    pub tensors: usize,
    /// Files that hold them.
    pub files: Vec<String>,
    /// Ways it can be wired to this target, by name, the default first; empty where that is not known.
    pub wirings: Vec<&'static str>,
    /// One sentence about it.
    pub note: String,
}

/// Where the MTP tensors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MtpLocation {
    /// In the files the target uses.
    Own,
    /// In a file beside them that the index does not know.
    Stray,
    /// In the `mtp` folder inside the target's.
    Subfolder,
    /// The folder is a drafter.
    Drafter,
    /// Nowhere.
    None,
}

/// One obstacle.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// Stable name of the kind.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl From<&Error> for Problem {
    fn from(e: &Error) -> Self {
        Self {
            kind: e.kind(),
            message: e.to_string(),
            hint: e.hint(),
        }
    }
}

/// The registry row for a checkpoint.
///
/// # Errors
/// [`Error::UnsupportedModel`], naming the type.
pub(crate) fn family_of(checkpoint: &Checkpoint) -> Result<&'static Entry> {
    let model_type = checkpoint.model_type();
    FAMILIES
        .iter()
        .find(|f| (f.knows)(model_type))
        .ok_or_else(|| Error::UnsupportedModel {
            message: if model_type.is_empty() {
                "config.json has no `model_type`".to_owned()
            } else {
                format!("`model_type` {model_type} is not a model this engine runs")
            },
        })
}

/// Looks at a folder.
///
/// # Errors
/// When its config or files cannot be read at all. Whatever else is wrong is listed in the result.
pub fn inspect(dir: &Path) -> Result<Inspection> {
    let mut checkpoint = match Checkpoint::open(dir) {
        Ok(checkpoint) => checkpoint,
        // A head may lie in the folder of a target that is not there: then its index is no obstacle.
        Err(e) => head_alone(dir).ok_or(e)?,
    };
    let mut problems = Vec::new();
    let family = family_of(&checkpoint)
        .map_err(|e| problems.push(Problem::from(&e)))
        .ok();
    let head = family.and_then(|f| (f.head)(&checkpoint));
    let standalone = head.as_ref().is_some_and(HeadLocation::is_standalone);
    let note_problem = |problems: &mut Vec<Problem>, e: Error| problems.push(Problem::from(&e));
    let (mut layers, mut wirings) = (0, Vec::new());
    if let Some(family) = family {
        match (family.layers)(&checkpoint) {
            Ok(n) => layers = n,
            Err(e) => note_problem(&mut problems, e),
        }
        if problems.is_empty() && standalone {
            if let Err(e) = (family.check_head)(&checkpoint) {
                note_problem(&mut problems, e);
            }
        } else if problems.is_empty() {
            let with_head = head.as_ref().map(|_| &checkpoint);
            let options = LoadOptions {
                dry: true,
                ..LoadOptions::default()
            };
            match (family.load)(&checkpoint, with_head, options) {
                Ok(pair) => wirings = pair.wirings().to_vec(),
                Err(e) => note_problem(&mut problems, e),
            }
        }
    }
    if let Some(head) = head.as_ref().filter(|h| !h.passed_over.is_empty()) {
        let others = head.passed_over.join(", ");
        checkpoint.warnings.push(format!(
            "there is another MTP head in {others}; the one in {} counts",
            head.files.join(", ")
        ));
    }
    let advice = family.and_then(|f| (f.head_advice)(&checkpoint));
    let quantization = match Quantization::read(&checkpoint.config) {
        Ok(q) => q.default_spec().map(|s| s.to_string()),
        Err(e) => {
            // A loader that ran through may know the weights' packing from elsewhere.
            if problems.is_empty() && family.is_none() {
                note_problem(&mut problems, e);
            }
            None
        }
    };
    let role = match &head {
        Some(h) if h.is_standalone() => "drafter",
        Some(_) => "both",
        None => "target",
    };
    Ok(Inspection {
        family: family.map(|f| f.name.to_owned()),
        model_type: checkpoint.model_type().to_owned(),
        role,
        layers,
        quantization,
        mtp: MtpInspection {
            wirings,
            ..mtp(head, advice)
        },
        bytes: checkpoint.bytes(),
        problems,
        warnings: (checkpoint.warnings.iter().cloned())
            .chain(family.iter().flat_map(|f| (f.notes)(&checkpoint)))
            .collect(),
    })
}

/// The folder as a head's, if it is nothing else.
fn head_alone(dir: &Path) -> Option<Checkpoint> {
    let checkpoint = Checkpoint::open_head(dir).ok()?;
    let head = (family_of(&checkpoint).ok()?.head)(&checkpoint)?;
    head.is_standalone().then_some(checkpoint)
}

fn mtp(head: Option<HeadLocation>, advice: Option<String>) -> MtpInspection {
    let Some(head) = head else {
        return MtpInspection {
            present: false,
            location: MtpLocation::None,
            tensors: 0,
            files: Vec::new(),
            wirings: Vec::new(),
            note: match advice {
                Some(advice) => format!("no MTP tensors here; {advice}"),
                None => "no MTP tensors here; a drafter in a folder of its own may be used with it".to_owned(),
            },
        };
    };
    let (location, note) = match head.place {
        HeadPlace::Standalone => (
            MtpLocation::Drafter,
            "an MTP head alone: load it as the drafter of its target",
        ),
        HeadPlace::Stray => (MtpLocation::Stray, "an MTP head in a file beside the target's index"),
        HeadPlace::Subfolder => (
            MtpLocation::Subfolder,
            "an MTP head in the `mtp` folder inside the target's",
        ),
        HeadPlace::Own => (MtpLocation::Own, "an MTP head inside the target's own files"),
    };
    MtpInspection {
        present: true,
        location,
        tensors: head.tensors,
        files: head.files,
        wirings: Vec::new(),
        note: note.to_owned(),
    }
}
