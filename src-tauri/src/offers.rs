//! The catalogue's pairs as this machine sees them: do they fit, and are they here already.

use crate::hub::HubConfig;
use crate::hub::catalog::{Catalog, Entry, Part};
use crate::ipc::{
    CatalogPair, CatalogView, LocalModel, Machine, ModelHealth, ModelRole, Need, PairVerdict, Shelved, Verdict, Wanted,
    WantedPart,
};
use crate::machine::{self, Memory};

/// Repositories of targets and their heads that the catalogue knows to go together.
#[must_use]
pub fn known_pairs() -> Vec<(String, String)> {
    let entries = Catalog::built_in().entries().iter();
    entries
        .filter_map(|entry| Some((entry.target.repo.to_string(), entry.drafter.as_ref()?.repo.to_string())))
        .collect()
}

/// All pairs, the recommended one first. Models may have so much of the memory, if there is a limit.
#[must_use]
pub fn view(config: &HubConfig, shelf: &[Shelved], limit: Option<f64>) -> CatalogView {
    let memory = machine::memory(limit);
    let machine = Machine {
        memory_total: memory.total,
        memory_free: memory.free,
        disk_free: (config.disk_free)(&config.cache_dir).map(|free| free as f64),
        cache_dir: config.cache_dir.to_string_lossy().into_owned(),
        offline: config.offline,
    };
    let catalog = Catalog::built_in();
    let recommended = recommend(catalog, memory).map(|entry| entry.id.clone());
    let mut pairs: Vec<CatalogPair> = catalog
        .entries()
        .iter()
        .map(|entry| pair(entry, memory, machine.disk_free, shelf))
        .collect();
    for pair in &mut pairs {
        pair.recommended = Some(&pair.id) == recommended.as_ref();
    }
    pairs.sort_by_key(|pair| !pair.recommended);
    CatalogView { machine, pairs }
}

fn pair(entry: &Entry, machine: Memory, disk_free: Option<f64>, shelf: &[Shelved]) -> CatalogPair {
    let memory = memory(entry, machine);
    let bytes = entry.bytes().map(|bytes| bytes as f64);
    let here = installed(entry, shelf);
    CatalogPair {
        id: entry.id.clone(),
        wanted: Wanted {
            name: entry.name.clone(),
            parts: entry
                .parts()
                .map(|part| WantedPart {
                    repo: part.repo.to_string(),
                    revision: part.revision.clone(),
                    asked: None,
                    include: part.include.clone(),
                    exclude: part.exclude.clone(),
                    head_only: false,
                })
                .collect(),
        },
        note: entry.note.clone(),
        quantization: entry.target.quantization.clone(),
        licence: entry.target.license.clone(),
        download_bytes: bytes,
        verified: entry.verified,
        recommended: false,
        memory,
        disk: machine::fits_disk(bytes, disk_free),
        installed: here.as_ref().map(|(model, _)| model.clone()),
        measured: here.and_then(|(_, measured)| measured),
    }
}

/// What a plan of so many bytes would take of the memory.
#[must_use]
pub fn memory_of_plan(wanted: &Wanted, bytes: f64, limit: Option<f64>) -> Need {
    need(entry_of(wanted), bytes, machine::memory(limit))
}

/// What a model that is here would take of a machine's memory, with its head or without.
#[must_use]
pub fn memory_of_model(repo: Option<&str>, head: Option<&str>, bytes: f64, machine: Memory) -> Need {
    let is = |part: &Part, repo: &str| part.repo.to_string() == repo;
    let mut entries = Catalog::built_in().entries().iter();
    let entry = entries.find(|entry| {
        repo.is_some_and(|repo| is(&entry.target, repo))
            && match (&entry.drafter, head) {
                (Some(part), Some(head)) => is(part, head),
                (part, head) => part.is_none() && head.is_none(),
            }
    });
    need(entry, bytes, machine)
}

/// Whether it is a pair as the catalogue has it, and not the person's own choice of files.
#[must_use]
pub fn is_catalogued(wanted: &Wanted) -> bool {
    entry_of(wanted).is_some()
}

fn entry_of(wanted: &Wanted) -> Option<&'static Entry> {
    let is = |part: &Part, wanted: &WantedPart| {
        part.repo.to_string() == wanted.repo
            && (&part.include, &part.exclude, false) == (&wanted.include, &wanted.exclude, wanted.head_only)
    };
    Catalog::built_in().entries().iter().find(|entry| {
        entry.parts().count() == wanted.parts.len()
            && entry.parts().zip(&wanted.parts).all(|(part, wanted)| is(part, wanted))
    })
}

/// As the catalogue says of a pair of its own, else by the bytes of its files.
fn need(entry: Option<&Entry>, bytes: f64, machine: Memory) -> Need {
    match entry.map(|entry| memory(entry, machine)) {
        Some(need) if need.bytes.is_some() => need,
        _ => machine::fits_memory(machine::memory_need(bytes), None, machine),
    }
}

fn memory(entry: &Entry, machine: Memory) -> Need {
    let advised = entry.memory.mac_bytes.map(|bytes| bytes as f64);
    machine::fits_memory(memory_need(entry), advised, machine)
}

/// Memory that a pair takes: as stated, else estimated by its size.
fn memory_need(entry: &Entry) -> Option<f64> {
    let files: u64 = entry.parts().filter_map(|part| part.bytes).sum();
    let estimate = || entry.target.bytes.and_then(|_| machine::memory_need(files as f64));
    entry.memory.peak_bytes.map(|bytes| bytes as f64).or_else(estimate)
}

/// The pair for a machine with so much memory: of those that may be suggested and suit it, the one with the largest
/// target. Where the memory cannot be read it is the smallest of all.
fn recommend(catalog: &Catalog, machine: Memory) -> Option<&Entry> {
    let suggested = catalog
        .entries()
        .iter()
        .filter(|e| e.suggest && e.target.bytes.is_some());
    if machine.total.is_none() {
        return suggested.min_by_key(|e| e.target.bytes);
    }
    // What other programs hold now is no reason to recommend a smaller one; advice is one to recommend a tight one.
    let empty = Memory { free: None, ..machine };
    let suits = |entry: &&Entry| match memory(entry, empty).verdict {
        Verdict::Fits => true,
        Verdict::Tight => entry.memory.mac_bytes.is_some(),
        Verdict::TooLarge | Verdict::Unknown => false,
    };
    suggested.filter(suits).max_by_key(|e| e.target.bytes)
}

/// The pair on this machine, if both parts load, and what was measured of it.
fn installed(entry: &Entry, shelf: &[Shelved]) -> Option<(LocalModel, Option<PairVerdict>)> {
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
    let drafter_path = head.map(|head| head.model.path.clone());
    let measured = target.measured.iter().find(|verdict| verdict.drafter == drafter_path);
    let model = LocalModel {
        drafter_path: drafter_path.clone(),
        ..target.model.clone()
    };
    Some((model, measured.cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = (1_u64 << 30) as f64;

    #[test]
    fn each_mac_gets_the_largest_that_suits_it() {
        let recommended = |total| recommend(Catalog::built_in(), of(total)).map(|entry| entry.id.as_str());
        for (gib, id) in [
            (4.0, None),
            (8.0, Some("qwen3.5-4b-4bit")),
            (16.0, Some("qwen3.5-9b-4bit")),
            (24.0, Some("qwen3.5-9b-4bit")),
            (32.0, Some("qwen3.8-27b-4bit")),
            (36.0, Some("qwen3.8-27b-4bit")),
            (48.0, Some("qwen3.8-27b-8bit")),
            (128.0, Some("qwen3.8-27b-8bit")),
            (192.0, Some("inkling-small-4bit")),
            (512.0, Some("inkling-small-4bit")),
        ] {
            assert_eq!(recommended(Some(gib * GIB)), id, "{gib} GB");
        }
        let kept_back = recommended(Some(15.5 * GIB));
        assert_eq!(kept_back, Some("qwen3.5-9b-4bit"), "the system keeps some back");
        assert_eq!(recommended(None), Some("qwen3.5-4b-4bit"));
    }

    #[test]
    fn a_fit_goes_by_advice_then_by_need() {
        let catalog = Catalog::built_in();
        let fit = |id: &str, gib: f64| memory(catalog.entry(id).unwrap(), of(Some(gib * GIB))).verdict;
        let small = fit("qwen3.5-4b-4bit", 8.0);
        assert_eq!(small, Verdict::Tight, "its stated peak is more than an 8 GB Mac lends");
        assert_eq!(fit("qwen3.5-4b-4bit", 16.0), Verdict::Fits);
        assert_eq!(fit("qwen3.5-4b-4bit", 4.0), Verdict::TooLarge);
        assert_eq!(fit("qwen3.8-27b-4bit", 24.0), Verdict::TooLarge);
        assert_eq!(fit("qwen3.8-27b-4bit", 32.0), Verdict::Fits);
        assert_eq!(fit("qwen3.8-27b-8bit", 36.0), Verdict::Tight);
        assert_eq!(fit("qwen3.8-27b-8bit", 24.0), Verdict::TooLarge);
        assert_eq!(fit("qwen3.6-35b-a3b-4bit", 32.0), Verdict::Tight);
        assert_eq!(fit("inkling-0.6b", 1.0), Verdict::Unknown);
        for entry in catalog.entries() {
            let unreadable = memory(entry, Memory::default()).verdict;
            assert_eq!(unreadable, Verdict::Unknown, "it never stands in the way");
        }
    }

    /// The catalogue, a plan and a card of a model that is here say the same of a pair.
    #[test]
    fn a_pair_needs_the_same_wherever_it_is_shown() {
        let mac = Memory {
            free: Some(6.0 * GIB),
            ..of(Some(8.0 * GIB))
        };
        for entry in Catalog::built_in()
            .entries()
            .iter()
            .filter(|e| e.target.bytes.is_some())
        {
            let pair = pair(entry, mac, None, &[]);
            assert!(is_catalogued(&pair.wanted), "{}", entry.id);
            assert_eq!(need(entry_of(&pair.wanted), 1e9, mac), pair.memory, "{}", entry.id);
            let repo = |part: &WantedPart| part.repo.clone();
            let mut repos = pair.wanted.parts.iter().map(repo);
            let (target, head) = (repos.next(), repos.next());
            let here = memory_of_model(target.as_deref(), head.as_deref(), 1e9, mac);
            assert_eq!(here, pair.memory, "{}", entry.id);
        }
        let entry = Catalog::built_in().entry("qwen3.5-4b-4bit").unwrap();
        let mut own = pair(entry, mac, None, &[]).wanted;
        own.parts[0].include = vec!["config.json".to_owned()];
        assert!(!is_catalogued(&own));
        assert_eq!(memory_of_model(Some("a/b"), None, 8e9, mac).bytes, Some(11e9));
    }

    /// A limit counts in every verdict, so that a pair beyond it is not the one that is recommended.
    #[test]
    fn a_limit_of_ones_own_is_kept_by_what_is_recommended() {
        let limited = |limit: f64| Memory {
            limit: Some(limit),
            ..of(Some(32.0 * GIB))
        };
        let recommended = |limit| recommend(Catalog::built_in(), limited(limit)).map(|entry| entry.id.as_str());
        assert_eq!(recommended(30e9), Some("qwen3.8-27b-4bit"));
        assert_eq!(recommended(12e9), Some("qwen3.5-9b-4bit"));
        assert_eq!(recommended(1e9), None);
        let entry = Catalog::built_in().entry("qwen3.8-27b-4bit").unwrap();
        assert_eq!(memory(entry, limited(12e9)).limit, Some(12e9));
        assert_eq!(
            memory_of_model(Some("a/b"), None, 8e9, limited(10e9)).verdict,
            Verdict::TooLarge
        );
    }

    fn of(total: Option<f64>) -> Memory {
        Memory {
            total,
            ..Memory::default()
        }
    }

    #[test]
    fn the_estimate_is_near_the_peaks_that_are_stated() {
        let mut compared = 0;
        for entry in Catalog::built_in().entries() {
            let Some(peak) = entry.memory.peak_bytes else { continue };
            let mut unstated = entry.clone();
            unstated.memory.peak_bytes = None;
            let ratio = peak as f64 / memory_need(&unstated).unwrap();
            assert!((0.875..=1.125).contains(&ratio), "{}: {ratio}", entry.id);
            compared += 1;
        }
        assert!(compared >= 5);
    }
}
