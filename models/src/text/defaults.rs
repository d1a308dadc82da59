//! What the checkpoint's authors recommend for sampling.

use std::path::Path;

use serde_json::Value;

use super::json;

/// Sampling settings of `generation_config.json`; `None` where the file says nothing usable.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerationDefaults {
    /// `Some(false)` asks for greedy decoding, whatever the other fields say.
    pub do_sample: Option<bool>,
    /// Finite, at least 0.
    pub temperature: Option<f32>,
    /// Above 0, at most 1.
    pub top_p: Option<f32>,
    /// Number of candidates; 0 keeps all.
    pub top_k: Option<u32>,
    /// From 0 to 1.
    pub min_p: Option<f32>,
    /// Finite, above 0; 1 changes nothing.
    pub repetition_penalty: Option<f32>,
    /// Values that were passed over, in words.
    pub warnings: Vec<String>,
}

impl GenerationDefaults {
    /// Reads `generation_config.json` in `dir`. A missing file is no settings; a damaged file or value is a warning.
    #[must_use]
    pub fn load(dir: &Path) -> GenerationDefaults {
        let mut defaults = GenerationDefaults::default();
        let file = match json::read_object(dir, "generation_config.json") {
            Ok(Some(file)) => file,
            Ok(None) => return defaults,
            Err(error) => {
                defaults.warnings.push(error.to_string());
                return defaults;
            }
        };
        let mut warnings = Vec::new();
        let mut take = |name: &str, is_valid: fn(f64) -> bool| {
            let value = file.get(name).filter(|value| !value.is_null())?;
            let number = value.as_f64().filter(|number| number.is_finite() && is_valid(*number));
            if number.is_none() {
                warnings.push(format!(
                    "{name} in generation_config.json is {value}, which makes no sense"
                ));
            }
            number
        };
        // Single precision is what the sampler works in.
        let single = |number: Option<f64>| number.map(|number| number as f32);
        defaults.temperature = single(take("temperature", |value| (0.0..=100.0).contains(&value)));
        defaults.top_p = single(take("top_p", |value| value > 0.0 && value <= 1.0));
        defaults.top_k = take("top_k", |value| {
            value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value)
        })
        .map(|value| value as u32);
        defaults.min_p = single(take("min_p", |value| (0.0..=1.0).contains(&value)));
        defaults.repetition_penalty = single(take("repetition_penalty", |value| value > 0.0 && value <= 100.0));
        match file.get("do_sample") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(do_sample)) => defaults.do_sample = Some(*do_sample),
            Some(other) => warnings.push(format!(
                "do_sample in generation_config.json is {other}, which is not true or false"
            )),
        }
        defaults.warnings = warnings;
        defaults
    }
}

#[cfg(test)]
mod tests {
    use super::GenerationDefaults;

    fn load(text: &str) -> GenerationDefaults {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("generation_config.json"), text).unwrap();
        GenerationDefaults::load(dir.path())
    }

    #[test]
    fn good_values_are_taken_and_nonsense_is_not() {
        let good = load(
            r#"{"do_sample": true, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0, "repetition_penalty": null}"#,
        );
        assert_eq!(
            (good.do_sample, good.temperature, good.top_p),
            (Some(true), Some(0.6), Some(0.95))
        );
        assert_eq!(
            (good.top_k, good.min_p, good.repetition_penalty),
            (Some(20), Some(0.0), None)
        );
        assert!(good.warnings.is_empty());
        let bad = load(
            r#"{"do_sample": 1, "temperature": -1, "top_p": 0, "top_k": 2.5, "min_p": "x", "repetition_penalty": 0}"#,
        );
        assert_eq!(
            GenerationDefaults {
                warnings: Vec::new(),
                ..bad.clone()
            },
            GenerationDefaults::default()
        );
        assert_eq!(bad.warnings.len(), 6);
    }

    #[test]
    fn a_damaged_file_is_a_warning() {
        assert_eq!(load("[1").warnings.len(), 1);
        assert_eq!(
            GenerationDefaults::load(std::path::Path::new("/nowhere")),
            GenerationDefaults::default()
        );
    }
}
