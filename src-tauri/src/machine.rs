//! What this machine has, and whether something fits. A number that cannot be read stands in nobody's way.

use crate::ipc::{Need, Verdict};

/// Left free on a disk, so that the system goes on working.
const DISK_RESERVE: f64 = 2e9;

/// Bytes of memory: in all, and what programs could take now.
#[must_use]
pub fn memory() -> (Option<f64>, Option<f64>) {
    let Ok(mut system) = sysinfo::System::new() else {
        return (None, None);
    };
    system.refresh_memory();
    let read = |bytes: u64| (bytes > 0).then_some(bytes as f64);
    (read(system.total_memory()), read(system.available_memory()))
}

/// A model's need against the memory.
#[must_use]
pub fn fits_memory(bytes: Option<f64>, total: Option<f64>, free: Option<f64>) -> Need {
    let verdict = match (bytes, total) {
        (Some(bytes), Some(total)) if bytes > usable(total) => Verdict::TooLarge,
        (Some(bytes), Some(_)) if free.is_some_and(|free| bytes > free) => Verdict::Tight,
        (Some(_), Some(_)) => Verdict::Fits,
        _ => Verdict::Unknown,
    };
    Need {
        verdict,
        bytes,
        free,
        total,
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
    }
}

/// The share of the memory that a model may take: the GPU is lent about two thirds of a small machine's and three
/// quarters of a large one's, and the system and its programs need the rest.
#[must_use]
pub fn usable(total: f64) -> f64 {
    if total > 36e9 { total * 0.75 } else { total * 0.67 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_numbers_never_block() {
        assert_eq!(fits_memory(Some(9e9), None, None).verdict, Verdict::Unknown);
        assert_eq!(fits_memory(None, Some(8e9), Some(1e9)).verdict, Verdict::Unknown);
        assert_eq!(fits_memory(Some(4e9), Some(8e9), None).verdict, Verdict::Fits);
        assert_eq!(fits_disk(Some(9e9), None).verdict, Verdict::Unknown);
    }

    #[test]
    fn a_need_is_compared_with_what_may_be_taken_and_what_is_free() {
        assert_eq!(fits_memory(Some(6e9), Some(8e9), Some(7e9)).verdict, Verdict::TooLarge);
        assert_eq!(fits_memory(Some(5e9), Some(8e9), Some(2e9)).verdict, Verdict::Tight);
        assert_eq!(fits_memory(Some(5e9), Some(8e9), Some(6e9)).verdict, Verdict::Fits);
        assert_eq!(fits_disk(Some(20e9), Some(10e9)).verdict, Verdict::TooLarge);
        assert_eq!(fits_disk(Some(9e9), Some(10e9)).verdict, Verdict::Tight);
        assert_eq!(fits_disk(Some(7e9), Some(10e9)).verdict, Verdict::Fits);
    }

    #[test]
    fn this_machine_tells_its_memory() {
        let (total, free) = memory();
        assert!(total.unwrap() >= free.unwrap());
    }
}
