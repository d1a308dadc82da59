//! Reading config values: every number is checked before it sizes anything.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use crate::{Error, Result};

/// Largest JSON file that is read, in bytes. The largest published index is under 20 MB.
const MAX_JSON_BYTES: u64 = 64 << 20;

/// Reads a JSON object of the checkpoint; `None` when the file is not there.
pub(crate) fn read_json_object(dir: &Path, file: &str) -> Result<Option<Map<String, Value>>> {
    let path = dir.join(file);
    let handle = match std::fs::File::open(&path) {
        Ok(handle) => handle,
        Err(e)
            if matches!(
                e.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(source) => return Err(Error::Io { path, source }),
    };
    let mut text = Vec::new();
    handle
        .take(MAX_JSON_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|source| Error::Io { path, source })?;
    let syntax = |message: String| Error::ConfigSyntax {
        file: file.to_owned(),
        message,
    };
    if text.len() as u64 > MAX_JSON_BYTES {
        return Err(syntax(format!("it is larger than {} MB", MAX_JSON_BYTES >> 20)));
    }
    match serde_json::from_slice(&text) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(syntax("it is not a JSON object".to_owned())),
        Err(e) => Err(syntax(e.to_string())),
    }
}

/// The fields of one config object, with errors that name field, value and allowed range.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Wraps an object.
    #[must_use]
    pub fn new(object: &'a Map<String, Value>) -> Self {
        Self { object }
    }

    /// The value of a field that is there and not null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|v| !v.is_null())
    }

    /// A field's value error.
    #[must_use]
    pub fn error(name: &str, value: impl ToString, expected: impl Into<String>) -> Error {
        Error::ConfigValue {
            field: name.to_owned(),
            value: value.to_string(),
            expected: expected.into(),
        }
    }

    /// A nested object.
    ///
    /// # Errors
    /// When the field is there but no object.
    pub fn object(&self, name: &str) -> Result<Option<Fields<'a>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Fields { object })),
            Some(other) => Err(Self::error(name, other, "an object")),
        }
    }

    /// An integer within `min..=max`; `None` when absent.
    ///
    /// # Errors
    /// When it is something else, or out of range.
    pub fn int(&self, name: &str, min: i64, max: i64) -> Result<Option<i32>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let expected = || format!("an integer from {min} to {max}");
        let n = value.as_i64().ok_or_else(|| Self::error(name, value, expected()))?;
        if !(min..=max).contains(&n) {
            return Err(Self::error(name, value, expected()));
        }
        i32::try_from(n)
            .map(Some)
            .map_err(|_| Self::error(name, value, expected()))
    }

    /// A required integer within `min..=max`.
    ///
    /// # Errors
    /// As [`Fields::int`], and when absent.
    pub fn required_int(&self, name: &str, min: i64, max: i64) -> Result<i32> {
        self.int(name, min, max)?.ok_or_else(|| Error::FieldMissing {
            field: name.to_owned(),
            expected: format!("an integer from {min} to {max}"),
        })
    }

    /// A finite number with `min < x <= max` or, where `inclusive`, `min <= x <= max`; `None` when absent.
    ///
    /// # Errors
    /// When it is something else, or out of range.
    pub fn float(&self, name: &str, min: f64, inclusive: bool, max: f64) -> Result<Option<f32>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let bound = if inclusive { "from" } else { "above" };
        let expected = || format!("a number {bound} {min} to {max}");
        let x = value.as_f64().ok_or_else(|| Self::error(name, value, expected()))?;
        let low = if inclusive { x >= min } else { x > min };
        if !x.is_finite() || !low || x > max {
            return Err(Self::error(name, value, expected()));
        }
        Ok(Some(x as f32))
    }

    /// A truth value; `None` when absent.
    ///
    /// # Errors
    /// When it is something else.
    pub fn bool(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(*b)),
            Some(other) => Err(Self::error(name, other, "true or false")),
        }
    }

    /// A text; `None` when absent.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(other) => Err(Self::error(name, other, "a text")),
        }
    }

    /// A list of texts; `None` when absent.
    ///
    /// # Errors
    /// When it is something else.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let error = || Self::error(name, value, "a list of texts");
        let list = value.as_array().ok_or_else(error)?;
        list.iter()
            .map(|v| v.as_str().ok_or_else(error))
            .collect::<Result<Vec<_>>>()
            .map(Some)
    }

    /// A list of integers, each within `min..=max`; `None` when absent.
    ///
    /// # Errors
    /// When it is something else, or one is out of range.
    pub fn ints(&self, name: &str, min: i64, max: i64) -> Result<Option<Vec<i32>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let error = || Self::error(name, value, format!("a list of integers from {min} to {max}"));
        let list = value.as_array().ok_or_else(error)?;
        let int = |v: &Value| {
            let n = v.as_i64().filter(|n| (min..=max).contains(n));
            n.and_then(|n| i32::try_from(n).ok()).ok_or_else(error)
        };
        list.iter().map(int).collect::<Result<Vec<_>>>().map(Some)
    }

    /// Accepts the field only when it is absent or has this value: for switches whose other position is not built.
    ///
    /// # Errors
    /// When it has another value.
    pub fn only(&self, name: &str, allowed: &Value) -> Result<()> {
        match self.get(name) {
            Some(value) if value != allowed => Err(Error::UnsupportedModel {
                message: format!("`{name}` is {value}; only {allowed} is supported"),
            }),
            _ => Ok(()),
        }
    }
}
