//! Which weight files of a folder count.
//!
//! With an index, the files it names count and every other one is stray. Without one, all count. A folder `mtp` inside
//! may hold a head.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use super::{TensorInfo, WeightFile, config, header};
use crate::{Error, Result};

const INDEX: &str = "model.safetensors.index.json";

/// Folder inside a target's in which some publishers put its head.
pub(super) const HEAD_FOLDER: &str = "mtp";
/// A config in that folder.
pub(super) const HEAD_CONFIG: &str = "mtp/config.json";

#[derive(Default)]
pub(super) struct Found {
    pub(super) files: Vec<WeightFile>,
    pub(super) tensors: BTreeMap<String, TensorInfo>,
    pub(super) stray: BTreeMap<String, TensorInfo>,
    pub(super) subfolder: BTreeMap<String, TensorInfo>,
    pub(super) warnings: Vec<String>,
}

pub(super) fn discover(dir: &Path) -> Result<Found> {
    let mut found = target_files(dir)?;
    scan_subfolder(&mut found, dir)?;
    Ok(found)
}

/// As [`discover`], but an index that does not fit the files is ignored.
pub(super) fn discover_head(dir: &Path) -> Result<Found> {
    let mut found = match target_files(dir) {
        Ok(found) => found,
        Err(
            Error::ShardMissing { .. }
            | Error::TensorNotInShard { .. }
            | Error::IndexInvalid { .. }
            | Error::UnsafePath { .. },
        ) => all_files(dir, &safetensors_in(dir)?)?,
        Err(e) => return Err(e),
    };
    scan_subfolder(&mut found, dir)?;
    Ok(found)
}

/// Every file counts.
fn all_files(dir: &Path, present: &BTreeSet<String>) -> Result<Found> {
    let mut found = Found::default();
    for name in present {
        let tensors = found.scan(dir, name)?;
        merge(&found.files, &mut found.tensors, tensors)?;
    }
    Ok(found)
}

fn scan_subfolder(found: &mut Found, dir: &Path) -> Result<()> {
    if !dir.join(HEAD_FOLDER).is_dir() {
        return Ok(());
    }
    for name in safetensors_in(&dir.join(HEAD_FOLDER))? {
        let scanned = found.scan(dir, &format!("{HEAD_FOLDER}/{name}"));
        match scanned.and_then(|tensors| merge(&found.files, &mut found.subfolder, tensors)) {
            Ok(()) => {}
            Err(e) => found.warnings.push(format!("`{HEAD_FOLDER}/{name}` was left out: {e}")),
        }
    }
    Ok(())
}

fn target_files(dir: &Path) -> Result<Found> {
    let present = safetensors_in(dir)?;
    let mut found = Found::default();
    let Some(index) = read_index(dir)? else {
        return all_files(dir, &present);
    };
    let named: BTreeSet<&String> = index.values().collect();
    let absent: Vec<&String> = named.iter().copied().filter(|n| !dir.join(n).is_file()).collect();
    if absent.is_empty() {
        for name in &named {
            let tensors = found.scan(dir, name)?;
            merge(&found.files, &mut found.tensors, tensors)?;
        }
        let holds = |name: &str, file: &str| {
            let info = found.tensors.get(name);
            info.is_some_and(|info| found.files[info.file].name == file)
        };
        if let Some((name, file)) = index.iter().find(|(name, file)| !holds(name, file)) {
            return Err(Error::TensorNotInShard {
                name: name.clone(),
                file: file.clone(),
            });
        }
        for name in present.iter().filter(|n| !named.contains(n)) {
            scan_stray(&mut found, dir, name);
        }
        return Ok(found);
    }
    // Some converters leave an old index beside one complete file: what is there decides.
    found = match all_files(dir, &present) {
        // Copies beside an incomplete set are not what keeps it from loading.
        Err(Error::TensorDuplicate { .. }) => {
            return Err(Error::ShardMissing {
                file: absent[0].clone(),
            });
        }
        found => found?,
    };
    let mut lost = index.iter().filter(|(name, _)| !found.tensors.contains_key(*name));
    let first = lost.clone().next();
    let Some((name, file)) = lost.find(|(_, file)| absent.contains(file)).or(first) else {
        found.warnings.push(format!(
            "`{INDEX}` names {} missing file(s), `{}` first; the files that are there are complete and were used",
            absent.len(),
            absent[0]
        ));
        return Ok(found);
    };
    let (name, file) = (name.clone(), file.clone());
    Err(if absent.contains(&&file) {
        Error::ShardMissing { file }
    } else {
        Error::TensorNotInShard { name, file }
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
        if !is_file_name(file) {
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

/// Whether a path is one plain name, by its text alone.
fn is_file_name(path: &str) -> bool {
    !path.contains(['/', '\\', '\0'])
        && matches!(
            Path::new(path).components().collect::<Vec<_>>()[..],
            [Component::Normal(_)]
        )
}
