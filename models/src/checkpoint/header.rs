//! The header of one safetensors file, checked against the file's real length.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::Metadata;

use crate::{Error, Result};

/// Longest header that is read; the format's own limit.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// What a header says.
pub(super) struct Header {
    pub(super) metadata: HashMap<String, String>,
    /// Name, element type, shape, first byte from the start of the file, length.
    pub(super) tensors: Vec<(String, safetensors::Dtype, Vec<usize>, u64, u64)>,
    pub(super) bytes: u64,
}

/// A name that a header object has twice; JSON maps would keep the last without a word.
fn repeated_name(header: &[u8]) -> Option<String> {
    struct Names(Option<String>);
    impl<'de> serde::de::Visitor<'de> for Names {
        type Value = Option<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
            let mut seen = std::collections::HashSet::new();
            while let Some(name) = map.next_key::<String>()? {
                map.next_value::<serde::de::IgnoredAny>()?;
                if self.0.is_none() && seen.contains(&name) {
                    self.0 = Some(name);
                } else {
                    seen.insert(name);
                }
            }
            Ok(self.0)
        }
    }
    let mut json = serde_json::Deserializer::from_slice(header);
    serde::Deserializer::deserialize_map(&mut json, Names(None))
        .ok()
        .flatten()
}

/// Reads the header of `path`, called `name` in errors.
pub(super) fn read(path: &Path, name: &str) -> Result<Header> {
    let io = |source| Error::Io {
        path: path.to_path_buf(),
        source,
    };
    let corrupt = |message: String| Error::FileCorrupt {
        file: name.to_owned(),
        message,
    };
    let mut file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if !meta.is_file() {
        return Err(corrupt("it is not a regular file".to_owned()));
    }
    let bytes = meta.len();
    let mut length = [0u8; 8];
    if bytes < 8 {
        return Err(corrupt(format!("it has {bytes} bytes, too few for a header")));
    }
    file.read_exact(&mut length).map_err(io)?;
    let header_bytes = u64::from_le_bytes(length);
    if &length == b"version " {
        return Err(corrupt("it is a Git LFS pointer, not the weights".to_owned()));
    }
    // Checked before anything of this size is allocated.
    if header_bytes > MAX_HEADER_BYTES || header_bytes > bytes - 8 {
        return Err(corrupt(format!(
            "its header claims {header_bytes} bytes, the file has {bytes}"
        )));
    }
    let mut buffer = Vec::with_capacity(header_bytes as usize);
    file.take(header_bytes).read_to_end(&mut buffer).map_err(io)?;
    // Parsing checks that each tensor's bytes fit its shape and that the data is covered without gaps or overlaps.
    let header: Metadata =
        serde_json::from_slice(&buffer).map_err(|e| corrupt(format!("its header is broken: {e}")))?;
    if let Some(name) = repeated_name(&buffer) {
        return Err(corrupt(format!("its header lists `{name}` twice")));
    }
    let start = 8 + header_bytes;
    let mut tensors = Vec::new();
    let mut end = 0u64;
    for (tensor, info) in header.tensors() {
        let (from, to) = (info.data_offsets.0 as u64, info.data_offsets.1 as u64);
        end = end.max(to);
        tensors.push((tensor, info.dtype, info.shape.clone(), start + from, to - from));
    }
    if start.checked_add(end) != Some(bytes) {
        return Err(corrupt(format!(
            "its header describes {} bytes, the file has {bytes}",
            u128::from(start) + u128::from(end)
        )));
    }
    Ok(Header {
        metadata: header.metadata().clone().unwrap_or_default(),
        tensors,
        bytes,
    })
}
