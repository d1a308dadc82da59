//! Pairs of models and drafters that are known to fit: `assets/catalog.json`, which is data only.
//!
//! Nothing in it was checked against the live hub unless it says so, and what nobody stated is empty. A plan reads
//! sizes, commits and licences from the hub; until then these are what there is to show.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::cache::is_commit;
use super::{HubError, PartRequest, RepoId};

const TEXT: &str = include_str!("../../../../assets/catalog.json");
const VERSION: u64 = 1;

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| Catalog::parse(TEXT).unwrap_or_default());

/// The pairs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    version: u64,
    /// For its readers.
    #[serde(rename = "about")]
    _about: String,
    sources: BTreeMap<String, String>,
    entries: Vec<Entry>,
}

/// A target and its drafter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Stable, in lower case.
    pub id: String,
    /// For people.
    pub name: String,
    /// A sentence about it.
    pub note: Option<String>,
    /// Whether it may be recommended without being asked for.
    pub suggest: bool,
    /// Whether its facts were checked against the hub.
    pub verified: bool,
    /// The model.
    pub target: Part,
    /// The drafter; none where the target's own files hold the head.
    pub drafter: Option<Part>,
    /// What is known of the memory that it takes.
    pub memory: Memory,
    /// Where each fact comes from, by the keys of the catalogue's sources.
    facts: BTreeMap<String, String>,
}

/// A repository, or a part of one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Which.
    pub repo: RepoId,
    /// The commit, where the pair was used with a certain one; else it is pinned when the download is planned.
    pub revision: Option<String>,
    /// Patterns of paths; none means what the loader needs.
    pub include: Vec<String>,
    /// Patterns of paths that are left out.
    pub exclude: Vec<String>,
    /// Size, where stated.
    pub bytes: Option<u64>,
    /// What the size counts, and how exactly.
    pub bytes_are: Option<String>,
    /// In words.
    pub quantization: Option<String>,
    /// Its short name.
    pub license: Option<String>,
}

/// Memory, as far as somebody stated it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The most that it took.
    pub peak_bytes: Option<u64>,
    /// Of what, and where.
    pub peak_is: Option<String>,
    /// The smallest machine that it was advised for.
    pub mac_bytes: Option<u64>,
}

impl Catalog {
    /// The one that the app brings along.
    #[must_use]
    pub fn built_in() -> &'static Catalog {
        &BUILT_IN
    }

    /// Reads a catalogue and checks it.
    ///
    /// # Errors
    /// [`HubError::BadFile`], naming the entry and the field.
    pub fn parse(text: &str) -> Result<Self, HubError> {
        let bad = |message: String| HubError::BadFile {
            file: "catalog.json".to_owned(),
            message,
        };
        let catalog: Catalog = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
        if catalog.version != VERSION {
            return Err(bad(format!(
                "its version is {}, this app reads {VERSION}",
                catalog.version
            )));
        }
        let mut ids = BTreeSet::new();
        for entry in &catalog.entries {
            let checked = entry.check(&catalog.sources);
            checked.map_err(|message| bad(format!("entry `{}`: {message}", entry.id)))?;
            if !ids.insert(&entry.id) {
                return Err(bad(format!("entry `{}` is there twice", entry.id)));
            }
        }
        Ok(catalog)
    }

    /// All, in the catalogue's order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// One by its id.
    #[must_use]
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}

impl Entry {
    /// Target first.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.target).chain(&self.drafter)
    }

    /// What to ask the hub for, target first.
    #[must_use]
    pub fn requests(&self) -> Vec<PartRequest> {
        self.parts().map(Part::request).collect()
    }

    /// Size of all parts, where all are stated.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.parts().map(|part| part.bytes).sum()
    }

    fn check(&self, sources: &BTreeMap<String, String>) -> Result<(), String> {
        let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if self.id.is_empty() || !self.id.chars().all(is_id) || self.name.trim().is_empty() {
            return Err("its id or name is no good".to_owned());
        }
        self.target.check().map_err(|e| format!("target: {e}"))?;
        if let Some(drafter) = &self.drafter {
            drafter.check().map_err(|e| format!("drafter: {e}"))?;
            if drafter.revision.is_some() != self.target.revision.is_some() {
                return Err("target and drafter must be pinned together".to_owned());
            }
        }
        let files: u64 = self.parts().filter_map(|part| part.bytes).sum();
        if [self.memory.peak_bytes, self.memory.mac_bytes]
            .into_iter()
            .flatten()
            .any(|memory| memory < files)
        {
            return Err("it takes less memory than its files".to_owned());
        }
        let stated = self.stated();
        if let Some(fact) = stated.iter().find(|fact| !self.facts.contains_key(**fact)) {
            return Err(format!("`{fact}` has no source"));
        }
        for (fact, source) in &self.facts {
            if !stated.contains(&fact.as_str()) {
                return Err(format!("`{fact}` has a source, but is not stated"));
            }
            if !sources.contains_key(source) {
                return Err(format!("`{fact}` names the source `{source}`, which is not listed"));
            }
        }
        Ok(())
    }

    /// The facts that it states.
    fn stated(&self) -> Vec<&'static str> {
        let (target, drafter) = (Some(&self.target), self.drafter.as_ref());
        let said = [
            ("pair", true),
            ("target.revision", target.is_some_and(|p| p.revision.is_some())),
            ("target.bytes", target.is_some_and(|p| p.bytes.is_some())),
            ("target.quantization", target.is_some_and(|p| p.quantization.is_some())),
            ("target.license", target.is_some_and(|p| p.license.is_some())),
            ("drafter.revision", drafter.is_some_and(|p| p.revision.is_some())),
            ("drafter.bytes", drafter.is_some_and(|p| p.bytes.is_some())),
            (
                "drafter.quantization",
                drafter.is_some_and(|p| p.quantization.is_some()),
            ),
            ("drafter.license", drafter.is_some_and(|p| p.license.is_some())),
            ("memory.peak_bytes", self.memory.peak_bytes.is_some()),
            ("memory.mac_bytes", self.memory.mac_bytes.is_some()),
        ];
        said.iter()
            .filter(|(_, is_stated)| *is_stated)
            .map(|(fact, _)| *fact)
            .collect()
    }
}

impl Part {
    /// What to ask the hub for.
    #[must_use]
    pub fn request(&self) -> PartRequest {
        PartRequest {
            repo: self.repo.clone(),
            revision: self.revision.clone(),
            branch: None,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            head_only: false,
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.revision.as_ref().is_some_and(|revision| !is_commit(revision)) {
            return Err("its revision is no commit".to_owned());
        }
        if self.bytes == Some(0) || self.bytes.is_some() != self.bytes_are.is_some() {
            return Err("`bytes` and `bytes_are` do not fit".to_owned());
        }
        Ok(())
    }
}
