//! The catalogue's pairs as this machine sees them: do they fit, and are they here already.

use crate::hub::HubConfig;
use crate::hub::catalog::{Catalog, Entry, Fit};
use crate::ipc::{
    CatalogPair, CatalogView, LocalModel, Machine, ModelHealth, ModelRole, Need, Shelved, Verdict, Wanted, WantedPart,
};
use crate::machine;

/// Repositories of targets and their heads that the catalogue knows to go together.
#[must_use]
pub fn known_pairs() -> Vec<(String, String)> {
    let entries = Catalog::built_in().entries().iter();
    entries
        .filter_map(|entry| Some((entry.target.repo.to_string(), entry.drafter.as_ref()?.repo.to_string())))
        .collect()
}

/// All pairs, the recommended one first.
#[must_use]
pub fn view(config: &HubConfig, shelf: &[Shelved]) -> CatalogView {
    let (memory_total, memory_free) = machine::memory();
    let machine = Machine {
        memory_total,
        memory_free,
        disk_free: (config.disk_free)(&config.cache_dir).map(|free| free as f64),
        cache_dir: config.cache_dir.to_string_lossy().into_owned(),
        offline: config.offline,
    };
    let catalog = Catalog::built_in();
    let recommended = catalog
        .recommend(memory_total.map(|bytes| bytes as u64))
        .map(|entry| entry.id.clone());
    let mut pairs: Vec<CatalogPair> = catalog
        .entries()
        .iter()
        .map(|entry| pair(entry, &machine, shelf))
        .collect();
    for pair in &mut pairs {
        pair.recommended = Some(&pair.id) == recommended.as_ref();
    }
    pairs.sort_by_key(|pair| !pair.recommended);
    CatalogView { machine, pairs }
}

fn pair(entry: &Entry, machine: &Machine, shelf: &[Shelved]) -> CatalogPair {
    let need = entry.memory_need().map(|bytes| bytes as f64);
    let bytes = entry.bytes().map(|bytes| bytes as f64);
    CatalogPair {
        id: entry.id.clone(),
        wanted: Wanted {
            name: entry.name.clone(),
            parts: entry
                .parts()
                .map(|part| WantedPart {
                    repo: part.repo.to_string(),
                    revision: part.revision.clone(),
                    include: part.include.clone(),
                    exclude: part.exclude.clone(),
                    head_only: false,
                })
                .collect(),
            memory_bytes: need,
        },
        note: entry.note.clone(),
        quantization: entry.target.quantization.clone(),
        licence: entry.target.license.clone(),
        download_bytes: bytes,
        verified: entry.verified,
        recommended: false,
        memory: Need {
            verdict: match entry.fit(machine.memory_total.map(|bytes| bytes as u64)) {
                // It would fit, but other programs hold the room now.
                Fit::Fits if need.zip(machine.memory_free).is_some_and(|(need, free)| need > free) => Verdict::Tight,
                Fit::Fits => Verdict::Fits,
                Fit::Tight => Verdict::Tight,
                Fit::TooLarge => Verdict::TooLarge,
                Fit::Unknown => Verdict::Unknown,
            },
            bytes: need,
            free: machine.memory_free,
            total: machine.memory_total,
        },
        disk: machine::fits_disk(bytes, machine.disk_free),
        installed: installed(entry, shelf),
    }
}

/// The pair on this machine, if both parts load.
fn installed(entry: &Entry, shelf: &[Shelved]) -> Option<LocalModel> {
    let here = |repo: &str, fits: fn(ModelRole) -> bool| {
        shelf
            .iter()
            .find(|model| model.health == ModelHealth::Whole && fits(model.role) && model.repo.as_deref() == Some(repo))
    };
    let target = here(&entry.target.repo.to_string(), |role| {
        matches!(role, ModelRole::Target | ModelRole::Both)
    })?;
    let head = match &entry.drafter {
        Some(part) => Some(here(&part.repo.to_string(), |role| role == ModelRole::Drafter)?),
        None => None,
    };
    Some(LocalModel {
        drafter_path: head.map(|head| head.model.path.clone()),
        ..target.model.clone()
    })
}
