//! JSON files of a checkpoint folder.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{Error, Result};

/// The object in `dir/file`; `None` when there is no such file.
pub(super) fn read_object(dir: &Path, file: &str) -> Result<Option<Map<String, Value>>> {
    let path = dir.join(file);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { path, source }),
    };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let syntax = |message: String| Error::ConfigSyntax {
        file: file.to_owned(),
        message,
    };
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(syntax("it holds no JSON object".to_owned())),
        Err(error) => Err(syntax(error.to_string())),
    }
}
