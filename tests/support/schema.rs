//! As much of JSON Schema as the report's schema uses. A crate for all of it would turn on features of `serde_json` that the
//! program does not have: everything would be compiled twice, and tests would read numbers otherwise than it does.
//!
//! A keyword that is not known here is a fault, so that a schema cannot promise what nobody checks.

use serde_json::Value;

/// Words about a schema that demand nothing.
const NOTES: [&str; 5] = ["$schema", "$id", "$defs", "title", "description"];

/// What is wrong with a value, each with its place.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let rules = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in rules {
        let holds = match keyword.as_str() {
            note if NOTES.contains(&note) => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                check(root, root.pointer(pointer).expect("a definition"), value, at, found);
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|one| is_of(value, one)),
                one => is_of(value, one),
            },
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
            "minItems" => value
                .as_array()
                .is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value
                .as_array()
                .is_none_or(|a| a.len() as u64 <= rule.as_u64().unwrap()),
            "uniqueItems" => value
                .as_array()
                .is_none_or(|a| a.iter().enumerate().all(|(i, one)| !a[..i].contains(one))),
            "items" => {
                for (i, one) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, one, &format!("{at}/{i}"), found);
                }
                true
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(one) = value.get(name) {
                        check(root, rule, one, &format!("{at}/{name}"), found);
                    }
                }
                true
            }
            "required" => {
                let names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let missing: Vec<&str> = names
                    .filter(|name| value.is_object() && value.get(name).is_none())
                    .collect();
                found.extend(missing.iter().map(|name| format!("{at}: `{name}` is missing")));
                true
            }
            "additionalProperties" => {
                assert_eq!(rule, &Value::Bool(false));
                let known = &schema["properties"];
                let names = value.as_object().into_iter().flatten().map(|(name, _)| name);
                let extra = names.filter(|name| known.get(name.as_str()).is_none());
                found.extend(extra.map(|name| format!("{at}: `{name}` is not known")));
                true
            }
            "anyOf" => matching(root, rule, value) >= 1,
            "oneOf" => matching(root, rule, value) == 1,
            other => {
                found.push(format!("the schema's `{other}` is not checked here"));
                true
            }
        };
        if !holds {
            found.push(format!("{at}: {value} against `{keyword}` {rule}"));
        }
    }
}

fn matching(root: &Value, schemas: &Value, value: &Value) -> usize {
    let all = schemas.as_array().unwrap().iter();
    all.filter(|schema| {
        let mut found = Vec::new();
        check(root, schema, value, "", &mut found);
        found.is_empty()
    })
    .count()
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        _ => false,
    }
}
