//! Writing a checkpoint's MTP head as a drafter folder of its own: the tensors byte for byte, and a config for them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::View;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Checkpoint, TensorInfo, family_of};
use crate::{Error, Result};

const WEIGHTS: &str = "model.safetensors";
const CONFIG: &str = "config.json";
/// What is not whole yet; readers of checkpoint folders pass dot files over.
const UNFINISHED: &str = ".model.safetensors.part";

/// A head as a folder of its own would hold it.
#[derive(Debug)]
pub struct Standalone {
    /// Its config.json.
    pub config: Map<String, Value>,
    /// Name in the new file, and where the tensor is now.
    pub tensors: Vec<(String, TensorInfo)>,
    /// `format` of the new file's metadata: `mlx` where norms are stored with their 1, else `pt`.
    pub format: &'static str,
}

/// What [`extract_head`] wrote.
#[derive(Debug, Clone, Serialize)]
pub struct Extracted {
    /// The drafter folder.
    pub dir: PathBuf,
    /// Files of the source that held the head.
    pub from: Vec<String>,
    /// Number of tensors.
    pub tensors: usize,
    /// Bytes written.
    pub bytes: u64,
}

/// Writes the head of the checkpoint in `source` to the folder `to`, which is made. No other tensor is read.
///
/// # Errors
/// [`Error::HeadMissing`], whatever is wrong with the head, a folder that holds a model already, and what the file
/// system says; nothing half-written is left then.
pub fn extract_head(source: &Path, to: &Path) -> Result<Extracted> {
    let checkpoint = Checkpoint::open_head(source)?;
    let family = family_of(&checkpoint)?;
    let head = (family.standalone)(&checkpoint)?;
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Io { path, source }
    };
    if let Some(taken) = model_file_in(to) {
        return Err(Error::Usage {
            message: format!("`{}` exists already; choose an empty folder", taken.display()),
        });
    }
    let is_new = !to.exists();
    std::fs::create_dir_all(to).map_err(io(to))?;
    let written = write(&checkpoint, &head, to).and_then(|bytes| {
        // What was written must be what the loader takes.
        (family.check_head)(&Checkpoint::open_head(to)?)?;
        Ok(bytes)
    });
    let bytes = written.inspect_err(|_| {
        for name in [UNFINISHED, WEIGHTS, CONFIG] {
            // The first failure is the one to tell.
            let _ = std::fs::remove_file(to.join(name));
        }
        if is_new {
            let _ = std::fs::remove_dir(to);
        }
    })?;
    let mut from: Vec<String> = head
        .tensors
        .iter()
        .map(|(_, info)| checkpoint.file_of(info).name.clone())
        .collect();
    from.sort();
    from.dedup();
    Ok(Extracted {
        dir: to.to_path_buf(),
        from,
        tensors: head.tensors.len(),
        bytes,
    })
}

/// A file of the folder that is part of a model already. Links count, wherever they lead.
fn model_file_in(to: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(to).ok()?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == CONFIG || name.contains(".safetensors")
    })
}

fn write(checkpoint: &Checkpoint, head: &Standalone, to: &Path) -> Result<u64> {
    let unfinished = to.join(UNFINISHED);
    let failure = RefCell::new(None);
    let views = head.tensors.iter().map(|(name, info)| {
        let view = Stored {
            checkpoint,
            info,
            failure: &failure,
        };
        (name, view)
    });
    let metadata = HashMap::from([("format".to_owned(), head.format.to_owned())]);
    let outcome = safetensors::serialize_to_file(views, Some(metadata), &unfinished);
    if let Some(e) = failure.into_inner() {
        return Err(e);
    }
    outcome.map_err(|e| Error::Io {
        path: unfinished.clone(),
        source: match e {
            safetensors::SafeTensorError::IoError(e) => e,
            other => std::io::Error::other(other),
        },
    })?;
    let weights = to.join(WEIGHTS);
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Io { path, source }
    };
    let bytes = File::open(&unfinished)
        .and_then(|file| {
            file.sync_all()?;
            file.metadata()
        })
        .map_err(io(&unfinished))?
        .len();
    let text = serde_json::to_string_pretty(&head.config).map_err(|e| Error::Usage { message: e.to_string() })?;
    let config = to.join(CONFIG);
    std::fs::write(&config, text + "\n").map_err(io(&config))?;
    // The weights were written to a temporary file, which nobody else may read.
    let permissions = std::fs::metadata(&config).map_err(io(&config))?.permissions();
    std::fs::set_permissions(&unfinished, permissions).map_err(io(&unfinished))?;
    std::fs::rename(&unfinished, &weights).map_err(io(&weights))?;
    Ok(bytes)
}

/// A tensor in its file; its bytes are read when they are written, one tensor at a time.
struct Stored<'a> {
    checkpoint: &'a Checkpoint,
    info: &'a TensorInfo,
    /// The first reading failure: [`View`] has no way to tell.
    failure: &'a RefCell<Option<Error>>,
}

impl Stored<'_> {
    fn read(&self) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&self.checkpoint.file_of(self.info).path)?;
        file.seek(SeekFrom::Start(self.info.start))?;
        let mut bytes = vec![0; self.data_len()];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl View for Stored<'_> {
    fn dtype(&self) -> safetensors::Dtype {
        self.info.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.info.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = self.read().unwrap_or_else(|source| {
            let path = self.checkpoint.file_of(self.info).path.clone();
            self.failure.borrow_mut().get_or_insert(Error::Io { path, source });
            Vec::new()
        });
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        self.info.bytes as usize
    }
}
