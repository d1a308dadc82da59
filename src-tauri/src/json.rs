//! JSON as it is kept in files.

use serde::Serialize;
use serde_json::Value;

/// A value as it is kept.
pub(crate) fn stored(value: &impl Serialize) -> String {
    whole(&serde_json::json!(value)).to_string()
}

/// Writes whole numbers without a fraction: read as floats, those near 2^53 come back a little off.
pub(crate) fn whole(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0 => Value::from(float as i64),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), whole(value))).collect(),
        _ => value.clone(),
    }
}
