//! Which weight files of a folder count.
//!
//! With an index, the files it names count and every other one is stray. Without one, all count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use super::{TensorInfo, WeightFile, config, header};
use crate::{Error, Result};

const INDEX: &str = "model.safetensors.index.json";

pub(super) struct Found {
    pub(super) files: Vec<WeightFile>,
    pub(super) tensors: BTreeMap<String, TensorInfo>,
    pub(super) stray: BTreeMap<String, TensorInfo>,
    pub(super) warnings: Vec<String>,
}

pub(super) fn discover(dir: &Path) -> Result<Found> {
    let present = safetensors_in(dir)?;
    let mut found = Found {
        files: Vec::new(),
        tensors: BTreeMap::new(),
        stray: BTreeMap::new(),
        warnings: Vec::new(),
    };
    let Some(index) = read_index(dir)? else {
        for name in &present {
            let tensors = found.scan(dir, name)?;
            merge(&found.files, &mut found.tensors, tensors)?;
        }
        return Ok(found);
    };
    let named: BTreeSet<&String> = index.values().collect();
    let absent: Vec<&String> = named.iter().copied().filter(|n| !dir.join(n).is_file()).collect();
    if absent.is_empty() {
        for name in &named {
            let tensors = found.scan(dir, name)?;
            merge(&found.files, &mut found.tensors, tensors)?;
        }
        if let Some(name) = index.keys().find(|n| !found.tensors.contains_key(*n)) {
            return Err(Error::IndexInvalid {
                file: INDEX.to_owned(),
                message: format!("it puts `{name}` in `{}`, which does not hold it", index[name]),
            });
        }
        for name in present.iter().filter(|n| !named.contains(n)) {
            scan_stray(&mut found, dir, name);
        }
        return Ok(found);
    }
    // Some converters leave an old index beside one complete file: what is there decides.
    for name in &present {
        let tensors = found.scan(dir, name)?;
        merge(&found.files, &mut found.tensors, tensors)?;
    }
    if index.keys().all(|n| found.tensors.contains_key(n)) {
        found.warnings.push(format!(
            "`{INDEX}` names {} missing file(s), `{}` first; the files that are there are complete and were used",
            absent.len(),
            absent[0]
        ));
        return Ok(found);
    }
    Err(Error::ShardMissing {
        file: absent[0].clone(),
    })
}

impl Found {
    fn scan(&mut self, dir: &Path, name: &str) -> Result<Vec<(String, TensorInfo)>> {
        let path = dir.join(name);
        let header = header::read(&path, name)?;
        let file = self.files.len();
        self.files.push(WeightFile {
            name: name.to_owned(),
            path,
            metadata: header.metadata,
            bytes: header.bytes,
        });
        Ok(header
            .tensors
            .into_iter()
            .map(|(name, dtype, shape, start, bytes)| {
                (
                    name,
                    TensorInfo {
                        file,
                        dtype,
                        shape,
                        start,
                        bytes,
                    },
                )
            })
            .collect())
    }
}

/// A damaged file that nothing needs is worth a word, not a refusal.
fn scan_stray(found: &mut Found, dir: &Path, name: &str) {
    match found.scan(dir, name) {
        Ok(tensors) => {
            for (tensor, info) in tensors {
                found.stray.entry(tensor).or_insert(info);
            }
        }
        Err(e) => found
            .warnings
            .push(format!("`{name}` is not in the index and was left out: {e}")),
    }
}

fn merge(
    files: &[WeightFile],
    into: &mut BTreeMap<String, TensorInfo>,
    tensors: Vec<(String, TensorInfo)>,
) -> Result<()> {
    for (name, info) in tensors {
        if let Some(first) = into.get(&name) {
            return Err(Error::TensorDuplicate {
                first: files[first.file].name.clone(),
                second: files[info.file].name.clone(),
                name,
            });
        }
        into.insert(name, info);
    }
    Ok(())
}

fn safetensors_in(dir: &Path) -> Result<BTreeSet<String>> {
    let io = |source| Error::Io {
        path: dir.to_path_buf(),
        source,
    };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // `consolidated` is another format's copy of the same weights; dot files are unfinished downloads.
        let wanted = name.ends_with(".safetensors") && !name.starts_with('.') && name != "consolidated.safetensors";
        if wanted && entry.path().is_file() {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Tensor name to file name.
fn read_index(dir: &Path) -> Result<Option<BTreeMap<String, String>>> {
    let invalid = |message: String| Error::IndexInvalid {
        file: INDEX.to_owned(),
        message,
    };
    let object = match config::read_json_object(dir, INDEX) {
        Ok(Some(object)) => object,
        Ok(None) => return Ok(None),
        Err(Error::ConfigSyntax { message, .. }) => return Err(invalid(message)),
        Err(e) => return Err(e),
    };
    let map = object
        .get("weight_map")
        .and_then(serde_json::Value::as_object)
        .ok_or_else(|| invalid("it has no `weight_map`".to_owned()))?;
    let mut index = BTreeMap::new();
    for (tensor, file) in map {
        let file = file
            .as_str()
            .ok_or_else(|| invalid(format!("`{tensor}` names no file")))?;
        if !is_inside(file) {
            return Err(Error::UnsafePath { path: file.to_owned() });
        }
        if !file.ends_with(".safetensors") {
            return Err(invalid(format!(
                "`{tensor}` is in `{file}`, which is not a safetensors file"
            )));
        }
        index.insert(tensor.clone(), file.to_owned());
    }
    if index.is_empty() {
        return Err(invalid("its `weight_map` is empty".to_owned()));
    }
    Ok(Some(index))
}

/// Whether a path stays in the folder, by its text alone.
fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\\')
        && !path.contains('\0')
        && Path::new(path).components().all(|c| matches!(c, Component::Normal(_)))
}
