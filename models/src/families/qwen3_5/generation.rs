//! Which model of the family a folder holds, as far as names tell: sizes repeat from one generation to the next, so a
//! head of another generation passes every check of shapes.

use std::path::Path;

use super::head::is_announced;
use crate::checkpoint::Checkpoint;

/// What a name says: `Qwen3.8-27B`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelName {
    /// `3.5`, `3.6`, `3.8`.
    generation: String,
    /// `27B`, `35B-A3B`; empty where the name does not say.
    size: String,
}

impl ModelName {
    /// Reads a repository or folder name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let at = lower.find("qwen3.")?;
        let rest = &name[at + "qwen".len()..];
        let generation: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let is_size = |part: &str, first: &str| {
            let digits = part.strip_suffix(['B', 'b']).and_then(|p| p.strip_prefix(first));
            digits.is_some_and(|d| !d.is_empty() && d.chars().all(|c| c.is_ascii_digit() || c == '.'))
        };
        let mut parts = rest[generation.len()..]
            .split(['-', '_'])
            .filter(|p| !p.is_empty())
            .peekable();
        let mut size = parts
            .next_if(|p| is_size(p, ""))
            .unwrap_or_default()
            .to_ascii_uppercase();
        if let Some(active) = parts.next_if(|p| !size.is_empty() && is_size(&p.to_ascii_uppercase(), "A")) {
            size = format!("{size}-{}", active.to_ascii_uppercase());
        }
        Some(Self { generation, size })
    }

    /// Of a checkpoint folder: its own name, its repository's in a hub cache, or the name in its config.
    pub(super) fn of(checkpoint: &Checkpoint) -> Option<Self> {
        let config = checkpoint
            .config
            .get("_name_or_path")
            .and_then(serde_json::Value::as_str);
        names(&checkpoint.dir)
            .iter()
            .map(String::as_str)
            .chain(config)
            .find_map(Self::parse)
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Qwen{}", self.generation)?;
        if !self.size.is_empty() {
            write!(f, "-{}", self.size)?;
        }
        Ok(())
    }
}

/// The folder's name and, in a hub cache (`models--OWNER--NAME/snapshots/COMMIT`), the repository's.
fn names(dir: &Path) -> Vec<String> {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let ancestors = dir.ancestors().take(3);
    ancestors
        .filter_map(|d| Some(d.file_name()?.to_string_lossy().into_owned()))
        .enumerate()
        .filter(|(i, name)| *i == 0 || name.starts_with("models--"))
        .map(|(_, name)| name)
        .collect()
}

/// Why target and head may not belong together although every size agrees; `None` where names say nothing against it.
pub(super) fn doubt(target: &Checkpoint, head: &Checkpoint) -> Option<String> {
    let (target, head) = (ModelName::of(target)?, ModelName::of(head)?);
    let differs = target.generation != head.generation
        || (!target.size.is_empty() && !head.size.is_empty() && target.size != head.size);
    differs.then(|| {
        format!(
            "by its name the drafter is {head}'s and the target {target}: the text stays the target's own, but few \
             drafts may be accepted"
        )
    })
}

/// Heads published on their own in MLX form, as far as known.
const PUBLISHED: &[&str] = &[
    "Qwen3.5-4B",
    "Qwen3.5-9B",
    "Qwen3.6-27B",
    "Qwen3.6-35B-A3B",
    "Qwen3.8-27B",
];

/// What to fetch for a target without a head.
pub(super) fn head_advice(target: &Checkpoint) -> Option<String> {
    let said = if is_announced(target) {
        "its config announces one, but conversions leave the tensors out. "
    } else {
        ""
    };
    let name = ModelName::of(target).map(|n| n.to_string());
    match name.filter(|name| PUBLISHED.contains(&name.as_str())) {
        Some(name) => Some(format!("{said}Get its drafter, mlx-community/{name}-MTP-bf16")),
        None if is_announced(target) => Some(format!(
            "{said}Get the drafter (`qwen3_5_mtp`) published for this model, or the `mtp.*` tensors of the original"
        )),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_generation_and_size() {
        let parse = |name| ModelName::parse(name).map(|n| n.to_string());
        for (name, model) in [
            ("mlx-community/Qwen3.8-27B-4bit", "Qwen3.8-27B"),
            ("models--mlx-community--Qwen3.6-35B-A3B-MTP-bf16", "Qwen3.6-35B-A3B"),
            ("Qwen3.5-0.8B", "Qwen3.5-0.8B"),
            ("qwen3.8-27b-mxfp4", "Qwen3.8-27B"),
            ("Qwen3.8-Flash-Next-4bit", "Qwen3.8"),
            ("Qwen3.5-9B_q4", "Qwen3.5-9B"),
        ] {
            assert_eq!(parse(name).as_deref(), Some(model), "{name}");
        }
        assert_eq!(parse("my-model"), None);
        assert_eq!(parse("Qwen3-8B"), None);
    }
}
