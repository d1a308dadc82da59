//! What this machine has, what a model needs of it, and whether that fits. A number that cannot be read stands in nobody's
//! way.

use crate::ipc::{Need, Verdict};

/// Left free on a disk, so that the system goes on working.
const DISK_RESERVE: f64 = 2e9;
/// Up to this much memory, a Mac lends two thirds of it to the GPU, above it three quarters.
const SMALL_MAC: f64 = (36_u64 << 30) as f64;
/// Conversation and program; a model smaller than that is not talked to at such length.
const BESIDE_FILES: f64 = 2e9;

/// Bytes of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    /// In all.
    pub total: Option<f64>,
    /// What programs could take now.
    pub free: Option<f64>,
    /// What the person lets models have.
    pub limit: Option<f64>,
}

/// The machine's memory, of which models may have so much.
#[must_use]
pub fn memory(limit: Option<f64>) -> Memory {
    let Ok(mut system) = sysinfo::System::new() else {
        return Memory {
            limit,
            ..Memory::default()
        };
    };
    system.refresh_memory();
    let read = |bytes: u64| (bytes > 0).then_some(bytes as f64);
    Memory {
        total: read(system.total_memory()),
        free: read(system.available_memory()),
        limit,
    }
}

/// The memory that a model takes whose files have so many bytes: an eighth more for what is computed, and what is beside
/// it. The peaks that the catalogue states are within an eighth of that.
#[must_use]
pub fn memory_need(files: f64) -> Option<f64> {
    (files > 0.0).then(|| files + files / 8.0 + files.min(BESIDE_FILES))
}

/// A model's need against the memory. `advised` is the smallest machine that somebody advised it for: on a smaller one it
/// is too large, on such a one it is not. Beyond the person's own limit everything is.
#[must_use]
pub fn fits_memory(bytes: Option<f64>, advised: Option<f64>, memory: Memory) -> Need {
    let Memory { total, free, limit } = memory;
    let exceeded = limit.filter(|limit| bytes.is_some_and(|bytes| bytes > *limit));
    // Systems keep some memory back from what they tell.
    let is_advised = advised
        .zip(total)
        .map(|(advised, total)| total >= advised - advised / 16.0);
    let verdict = match (is_advised, bytes, total) {
        _ if exceeded.is_some() => Verdict::TooLarge,
        (Some(false), ..) => Verdict::TooLarge,
        (_, Some(bytes), Some(total)) if bytes <= lent(total) => match free {
            // It would fit, but other programs hold the room now.
            Some(free) if bytes > free => Verdict::Tight,
            _ => Verdict::Fits,
        },
        (Some(true), ..) => Verdict::Tight,
        (None, Some(bytes), Some(total)) if bytes <= total => Verdict::Tight,
        (None, Some(_), Some(_)) => Verdict::TooLarge,
        (None, ..) => Verdict::Unknown,
    };
    Need {
        verdict,
        bytes,
        free,
        total,
        limit: exceeded,
    }
}

/// Bytes to be written against the disk.
#[must_use]
pub fn fits_disk(bytes: Option<f64>, free: Option<f64>) -> Need {
    let verdict = match (bytes, free) {
        (Some(bytes), Some(free)) if bytes > free => Verdict::TooLarge,
        (Some(bytes), Some(free)) if bytes + DISK_RESERVE > free => Verdict::Tight,
        (Some(_), Some(_)) => Verdict::Fits,
        _ => Verdict::Unknown,
    };
    Need {
        verdict,
        bytes,
        free,
        total: None,
        limit: None,
    }
}

/// Memory that a Mac lends to the GPU by itself; the system and its programs need the rest.
fn lent(total: f64) -> f64 {
    if total <= SMALL_MAC {
        total / 3.0 * 2.0
    } else {
        total / 4.0 * 3.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(bytes: Option<f64>, advised: Option<f64>, total: Option<f64>, free: Option<f64>) -> Verdict {
        let limit = None;
        fits_memory(bytes, advised, Memory { total, free, limit }).verdict
    }

    #[test]
    fn a_limit_of_ones_own_only_takes_away() {
        let of_eight = |bytes, advised, limit| {
            let (total, free, limit) = (Some(8e9), Some(7e9), Some(limit));
            fits_memory(Some(bytes), advised, Memory { total, free, limit })
        };
        let over = of_eight(4e9, None, 3e9);
        assert_eq!((over.verdict, over.limit), (Verdict::TooLarge, Some(3e9)));
        let within = of_eight(4e9, None, 5e9);
        assert_eq!((within.verdict, within.limit), (Verdict::Fits, None));
        assert_eq!(
            of_eight(4e9, Some(8e9), 3e9).verdict,
            Verdict::TooLarge,
            "advice or not"
        );
        assert_eq!(
            of_eight(6e9, None, 100e9).verdict,
            Verdict::Tight,
            "it makes no machine larger"
        );
        assert_eq!(of_eight(9e9, None, 100e9).verdict, Verdict::TooLarge);
        let unreadable = Memory {
            limit: Some(3e9),
            ..Memory::default()
        };
        assert_eq!(fits_memory(Some(4e9), None, unreadable).verdict, Verdict::TooLarge);
        assert_eq!(fits_memory(None, None, unreadable).verdict, Verdict::Unknown);
    }

    #[test]
    fn unreadable_numbers_never_block() {
        assert_eq!(verdict(Some(9e9), None, None, None), Verdict::Unknown);
        assert_eq!(verdict(Some(9e9), Some(99e9), None, None), Verdict::Unknown);
        assert_eq!(verdict(None, None, Some(8e9), Some(1e9)), Verdict::Unknown);
        assert_eq!(verdict(Some(4e9), None, Some(8e9), None), Verdict::Fits);
        assert_eq!(fits_disk(Some(9e9), None).verdict, Verdict::Unknown);
    }

    #[test]
    fn a_need_is_compared_with_what_is_lent_what_there_is_and_what_is_free() {
        let of_eight = |bytes, free| verdict(Some(bytes), None, Some(8e9), Some(free));
        assert_eq!(of_eight(9e9, 7e9), Verdict::TooLarge);
        assert_eq!(of_eight(6e9, 7e9), Verdict::Tight);
        assert_eq!(of_eight(5e9, 2e9), Verdict::Tight);
        assert_eq!(of_eight(5e9, 6e9), Verdict::Fits);
        assert_eq!(fits_disk(Some(20e9), Some(10e9)).verdict, Verdict::TooLarge);
        assert_eq!(fits_disk(Some(9e9), Some(10e9)).verdict, Verdict::Tight);
        assert_eq!(fits_disk(Some(7e9), Some(10e9)).verdict, Verdict::Fits);
    }

    #[test]
    fn advice_counts_more_than_a_need() {
        assert_eq!(verdict(Some(6e9), Some(8e9), Some(8e9), None), Verdict::Tight);
        assert_eq!(verdict(Some(6e9), Some(8e9), Some(7.6e9), None), Verdict::Tight);
        assert_eq!(verdict(Some(1e9), Some(8e9), Some(7e9), None), Verdict::TooLarge);
        assert_eq!(verdict(None, Some(8e9), Some(8e9), None), Verdict::Tight);
        assert_eq!(verdict(None, Some(8e9), Some(4e9), None), Verdict::TooLarge);
    }

    #[test]
    fn a_small_model_is_not_said_to_need_gigabytes() {
        assert_eq!(memory_need(0.0), None);
        assert_eq!(memory_need(8e6), Some(17e6));
        assert_eq!(memory_need(8e9), Some(11e9));
    }

    #[test]
    fn this_machine_tells_its_memory() {
        let memory = memory(Some(1e9));
        assert!(memory.total.unwrap() >= memory.free.unwrap());
        assert_eq!(memory.limit, Some(1e9));
    }
}
