//! Which files of a repository are fetched: those that the patterns choose, as far as they are safe to write and of a
//! kind that a model needs.

mod fnmatch;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::{HubError, RemoteFile};

/// What the loader reads besides weights.
const NEEDED: &[&str] = &[
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    "model.safetensors.index.json",
];
const WEIGHTS: &str = "*.safetensors";
/// A second copy of the weights, for another program.
const COPY: &str = "consolidated.safetensors";

/// Endings of what is fetched; no code, no pickles, no pictures.
const ENDINGS: &[&str] = &[".json", ".jinja", ".txt", ".md", ".safetensors", ".model", ".tiktoken"];
const WITHOUT_ENDING: &[&str] = &["LICENSE", "NOTICE"];

const MAX_PART: usize = 255;
const MAX_PATH: usize = 1024;

/// Chooses files by patterns, then drops what is not safe or not needed. Patterns mean what they mean to the hub's own
/// client: `*` crosses folders, a `/` in last place stands for all below. Without any, the loader's needs are chosen.
///
/// # Errors
/// [`HubError::NoMatch`] when nothing is left, and [`HubError::CaseCollision`].
pub fn select<'a>(
    files: &'a [RemoteFile],
    include: &[String],
    exclude: &[String],
) -> Result<Vec<&'a RemoteFile>, HubError> {
    let mut seen = BTreeSet::new();
    let chosen: Vec<&RemoteFile> = files
        .iter()
        .filter(|file| is_chosen(&file.path, include, exclude) && is_allowed(&file.path))
        .filter(|file| seen.insert(&file.path))
        .collect();
    if chosen.is_empty() {
        let patterns = match include {
            [] if exclude.is_empty() => ["config.json", WEIGHTS].map(str::to_owned).into(),
            [] => vec!["*".to_owned()],
            include => include.to_vec(),
        };
        return Err(HubError::NoMatch {
            patterns,
            files: names_for_reading(files),
        });
    }
    no_collision(&chosen)?;
    Ok(chosen)
}

/// The include patterns that choose nothing which may be fetched: a misspelt one beside good ones is worth a word.
#[must_use]
pub fn unmatched<'p>(files: &[RemoteFile], include: &'p [String]) -> Vec<&'p str> {
    let chooses = |pattern: &str| files.iter().any(|f| is_match(pattern, &f.path) && is_allowed(&f.path));
    let patterns = include.iter().map(String::as_str);
    patterns.filter(|pattern| !chooses(pattern)).collect()
}

/// Whether a path may be written below a folder of ours, and is of a kind that is fetched: relative, of plain printable
/// names, none of them hidden, and with an ending that models have.
#[must_use]
pub fn is_allowed(path: &str) -> bool {
    let is_plain = |c: char| (' '..='~').contains(&c) && !r#"\:*?"<>|"#.contains(c);
    let is_part = |part: &str| {
        !part.is_empty() && part.len() <= MAX_PART && !part.starts_with(['.', ' ']) && !part.ends_with(' ')
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    path.len() <= MAX_PATH
        && path.chars().all(is_plain)
        && path.split('/').all(is_part)
        && (ENDINGS.iter().any(|ending| name.ends_with(ending)) || WITHOUT_ENDING.contains(&name))
}

fn is_chosen(path: &str, include: &[String], exclude: &[String]) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| is_match(pattern, path));
    match (include, exclude) {
        ([], []) => is_needed(path),
        ([], exclude) => !any(exclude),
        (include, exclude) => any(include) && !any(exclude),
    }
}

fn is_needed(path: &str) -> bool {
    let is_weights = path.ends_with(".safetensors") && path != COPY;
    !path.contains('/') && (is_weights || NEEDED.contains(&path))
}

fn is_match(pattern: &str, path: &str) -> bool {
    if pattern.ends_with('/') {
        fnmatch::matches(&format!("{pattern}*"), path)
    } else {
        fnmatch::matches(pattern, path)
    }
}

/// Disks that ignore case, as a Mac's do, hold one of two such files; and a file cannot be a folder too.
fn no_collision(chosen: &[&RemoteFile]) -> Result<(), HubError> {
    let folded = |path: &str| path.to_ascii_lowercase();
    let mut by_name: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for file in chosen {
        by_name.entry(folded(&file.path)).or_default().push(&file.path);
    }
    for file in chosen {
        let folders = file.path.match_indices('/').map(|(end, _)| folded(&file.path[..end]));
        for folder in folders {
            if let Some(files) = by_name.get_mut(&folder) {
                files.push(&file.path);
            }
        }
    }
    let files: Vec<String> = by_name
        .into_values()
        .filter(|files| files.len() > 1)
        .flatten()
        .map(str::to_owned)
        .collect();
    if files.is_empty() {
        Ok(())
    } else {
        Err(HubError::CaseCollision { files })
    }
}

/// Names as a message can show them, what is likely meant first: a long list is cut, and shards would fill it.
fn names_for_reading(files: &[RemoteFile]) -> Vec<String> {
    let mut paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    paths.sort_by_key(|path| {
        (
            !is_allowed(path),
            path.matches('/').count(),
            path.contains("-of-"),
            *path,
        )
    });
    paths.dedup();
    // A hostile name must not steer a terminal or turn the text around.
    paths.into_iter().map(|path| path.escape_debug().to_string()).collect()
}
