//! The header of a safetensors file on the hub, checked against the file's length.

use std::collections::HashMap;

use safetensors::tensor::{Metadata, TensorInfo};

use super::Source;
use crate::hub::{HubError, PartFile};

/// Longest header that is read; the hub's own client reads no longer one.
const MAX_HEADER: u64 = 25_000_000;
/// Read at once, in the hope that the header is in it.
const FIRST_READ: u64 = 128 << 10;

/// What a header says.
pub(super) struct Header {
    pub(super) file: PartFile,
    /// First byte of the data.
    pub(super) start: u64,
    /// By name; offsets count from `start`.
    pub(super) tensors: HashMap<String, TensorInfo>,
    pub(super) format: Option<String>,
}

/// Reads a header by range.
pub(super) async fn read<S: Source>(source: &S, file: &PartFile) -> Result<Header, HubError> {
    let bad = |message: String| no_head(file, format!("`{}`: {message}", file.path));
    let size = file
        .size
        .ok_or_else(|| bad("the hub does not tell its length".to_owned()))?;
    if size < 8 {
        return Err(bad(format!("it has {size} bytes, too few for a header")));
    }
    let mut bytes = all(source, file, 0, size.min(FIRST_READ)).await?;
    let length = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    // Before anything of this size is asked for.
    if length > MAX_HEADER || length > size - 8 {
        return Err(bad(format!("its header claims {length} bytes, the file has {size}")));
    }
    let start = 8 + length;
    if start > bytes.len() as u64 {
        bytes.extend(all(source, file, bytes.len() as u64, start).await?);
    }
    // Parsing checks that each tensor's bytes fit its shape and that the data is covered without gaps or overlaps.
    let metadata = bytes.get(8..start as usize).map(serde_json::from_slice::<Metadata>);
    let metadata = match metadata {
        Some(Ok(metadata)) => metadata,
        Some(Err(e)) => return Err(bad(format!("its header is broken: {e}"))),
        None => return Err(bad("its header is cut off".to_owned())),
    };
    let described = start.checked_add(metadata.data_len() as u64);
    if described != Some(size) {
        return Err(bad(format!(
            "its header does not describe the {size} bytes that it has"
        )));
    }
    Ok(Header {
        file: file.clone(),
        start,
        tensors: metadata
            .tensors()
            .into_iter()
            .map(|(name, info)| (name, info.clone()))
            .collect(),
        format: metadata
            .metadata()
            .as_ref()
            .and_then(|said| said.get("format").cloned()),
    })
}

/// Bytes of a file from `from` up to `to`, in memory.
pub(super) async fn all<S: Source>(source: &S, file: &PartFile, from: u64, to: u64) -> Result<Vec<u8>, HubError> {
    let mut bytes = Vec::new();
    let mut sink = |more: &[u8]| {
        bytes.extend_from_slice(more);
        Ok(())
    };
    source.read(file, from..to, &mut sink).await?;
    if bytes.len() as u64 != to - from {
        return Err(HubError::LengthMismatch {
            file: file.path.clone(),
            expected: to - from,
            found: bytes.len() as u64,
        });
    }
    Ok(bytes)
}

pub(super) fn no_head(file: &PartFile, message: String) -> HubError {
    HubError::NoHead {
        repo: file.repo.to_string(),
        message,
    }
}
