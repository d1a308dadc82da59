//! A checkpoint folder: its config, its files and the tensors they hold, read from headers only.

mod config;
mod extract;
mod files;
mod header;
mod inspect;
mod quantization;
mod weights;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

pub use config::Fields;
pub(crate) use config::read_json_object;
pub use extract::{Extracted, Standalone, extract_head};
pub(crate) use inspect::family_of;
pub use inspect::{Inspection, MtpInspection, MtpLocation, Problem, inspect};
pub use quantization::{Mode, Quantization, QuantizationSpec};
pub use weights::Weights;

use crate::{Error, Result};

/// One tensor as a file's header describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    /// Position of its file in [`Checkpoint::files`].
    pub file: usize,
    /// Element type in the file.
    pub dtype: safetensors::Dtype,
    /// Shape in the file.
    pub shape: Vec<usize>,
    /// First byte, counted from the start of the file.
    pub start: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// One safetensors file.
#[derive(Debug, Clone)]
pub struct WeightFile {
    /// Its name, relative to the folder.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// The header's `__metadata__`.
    pub metadata: HashMap<String, String>,
    /// Length in bytes.
    pub bytes: u64,
}

/// A checkpoint folder.
///
/// Opening reads the config and the headers of the weight files, checks both and reads no weights.
#[derive(Debug)]
pub struct Checkpoint {
    /// The folder.
    pub dir: PathBuf,
    /// config.json.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Every weight file that was looked at.
    pub files: Vec<WeightFile>,
    /// Tensors of the files that count: the index's, or all where there is no index.
    pub tensors: BTreeMap<String, TensorInfo>,
    /// Tensors of files beside a complete index. They are never merged into the target; a head may be among them.
    pub stray: BTreeMap<String, TensorInfo>,
    /// Tensors of the `mtp` folder inside this one, where some publishers put the head.
    pub subfolder: BTreeMap<String, TensorInfo>,
    /// `mtp/config.json`, if there is one.
    pub subfolder_config: Option<serde_json::Map<String, serde_json::Value>>,
    /// What is odd but no reason to refuse.
    pub warnings: Vec<String>,
}

impl Checkpoint {
    /// Opens a folder.
    ///
    /// # Errors
    /// A missing or broken config, damaged files, and an index that does not fit the files, each named.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::with(dir, files::discover)
    }

    /// Opens a folder for its head alone. An index that does not fit the files is no obstacle: a head is often
    /// downloaded without the shards of its target.
    ///
    /// # Errors
    /// As [`Checkpoint::open`], but for the index.
    pub fn open_head(dir: &Path) -> Result<Self> {
        Self::with(dir, files::discover_head)
    }

    /// A number that changes with the config, and with the names, shapes and types of the tensors: which kernels run
    /// depends on nothing else. FNV-1a.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Hash::new();
        hash.add(&serde_json::Value::Object(self.config.clone()).to_string());
        hash.add_all(&self.tensors);
        hash.0
    }

    /// As [`Checkpoint::fingerprint`], of all places where this folder may hold its head: also the files that the index
    /// does not name, and the `mtp` folder.
    #[must_use]
    pub fn head_fingerprint(&self) -> u64 {
        let mut hash = Hash(self.fingerprint());
        for (place, tensors) in [("stray", &self.stray), ("subfolder", &self.subfolder)] {
            if !tensors.is_empty() {
                hash.add(place);
                hash.add_all(tensors);
            }
        }
        if let Some(config) = &self.subfolder_config {
            hash.add(&serde_json::Value::Object(config.clone()).to_string());
        }
        hash.0
    }

    fn with(dir: &Path, discover: fn(&Path) -> Result<files::Found>) -> Result<Self> {
        let config = config::read_json_object(dir, "config.json")?.ok_or_else(|| missing_config(dir))?;
        let mut found = discover(dir)?;
        if found.files.is_empty() {
            return Err(no_weights(dir));
        }
        if found.tensors.keys().any(|name| name.ends_with(".weight_scale_inv")) {
            found.warnings.push(
                "its FP8 weights are unpacked and take at least twice their size: an MLX 8-bit conversion is as exact \
                 and smaller"
                    .to_owned(),
            );
        }
        let subfolder_config = if found.subfolder.is_empty() {
            None
        } else {
            config::read_json_object(dir, files::HEAD_CONFIG)?
        };
        Ok(Self {
            dir: dir.to_path_buf(),
            config,
            files: found.files,
            tensors: found.tensors,
            stray: found.stray,
            subfolder: found.subfolder,
            subfolder_config,
            warnings: found.warnings,
        })
    }

    /// `model_type`, or an empty text.
    #[must_use]
    pub fn model_type(&self) -> &str {
        self.config
            .get("model_type")
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
    }

    /// The file that holds a tensor.
    #[must_use]
    pub fn file_of(&self, info: &TensorInfo) -> &WeightFile {
        &self.files[info.file]
    }

    /// Bytes of all weight files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }
}

/// FNV-1a.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    fn add_all(&mut self, tensors: &BTreeMap<String, TensorInfo>) {
        for (name, info) in tensors {
            self.add(name);
            self.add(&format!("{:?} {:?}", info.dtype, info.shape));
        }
    }
}

/// Formats of other engines, by the ending of their files.
const OTHER_FORMATS: &[(&str, &str)] = &[
    (".gguf", "gguf"),
    (".bin", "PyTorch .bin files"),
    (".pth", "PyTorch .pth files"),
    (".pt", "PyTorch .pt files"),
    (".onnx", "onnx"),
];

/// The other format that a folder, or a file given as one, is in.
fn other_format(dir: &Path) -> Option<Error> {
    let names: Vec<String> = match std::fs::read_dir(dir) {
        Ok(entries) => entries
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect(),
        Err(_) => vec![dir.file_name()?.to_string_lossy().into_owned()],
    };
    if names.iter().any(|name| name.ends_with(".safetensors")) {
        return None;
    }
    let found = OTHER_FORMATS
        .iter()
        .find(|(ending, _)| names.iter().any(|name| name.ends_with(ending)))?;
    Some(Error::UnsupportedQuantization {
        method: found.1.to_owned(),
    })
}

fn no_weights(dir: &Path) -> Error {
    other_format(dir).unwrap_or_else(|| Error::WeightsMissing { dir: dir.to_path_buf() })
}

fn missing_config(dir: &Path) -> Error {
    if let Some(other) = other_format(dir) {
        return other;
    }
    match std::fs::metadata(dir) {
        Err(source) => Error::Io {
            path: dir.to_path_buf(),
            source,
        },
        Ok(_) => Error::ConfigMissing {
            file: "config.json".to_owned(),
            dir: dir.to_path_buf(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensors(dtype: safetensors::Dtype, rows: usize) -> BTreeMap<String, TensorInfo> {
        let info = TensorInfo {
            file: 0,
            dtype,
            shape: vec![rows, 8],
            start: 0,
            bytes: 0,
        };
        BTreeMap::from([("fc.weight".to_owned(), info)])
    }

    fn empty() -> Checkpoint {
        Checkpoint {
            dir: PathBuf::new(),
            config: serde_json::Map::new(),
            files: Vec::new(),
            tensors: tensors(safetensors::Dtype::F32, 64),
            stray: BTreeMap::new(),
            subfolder: BTreeMap::new(),
            subfolder_config: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_head_is_told_from_another_wherever_it_lies() {
        use safetensors::Dtype::{BF16, F32};
        let config = |bits: u32| serde_json::Map::from_iter([("bits".to_owned(), bits.into())]);
        let mut prints = vec![empty().head_fingerprint()];
        for (dtype, rows) in [(F32, 8), (BF16, 8), (F32, 16)] {
            let stray = Checkpoint {
                stray: tensors(dtype, rows),
                ..empty()
            };
            let inside = |config| Checkpoint {
                subfolder: tensors(dtype, rows),
                subfolder_config: config,
                ..empty()
            };
            let all = [stray, inside(None), inside(Some(config(4))), inside(Some(config(8)))];
            // The target's own is that of its own files, whatever lies beside them.
            assert!(all.iter().all(|c| c.fingerprint() == empty().fingerprint()));
            prints.extend(all.iter().map(Checkpoint::head_fingerprint));
        }
        let count = prints.len();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), count);
        assert_eq!(empty().head_fingerprint(), empty().fingerprint());
    }
}
