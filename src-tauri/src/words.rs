//! Sizes, times and lists of names, as people read them.

use std::time::Duration;

/// Bytes in decimal units, as disks and the hub count.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} KB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Names in backticks, `most` of them, and how many more there are.
pub(crate) fn list(names: &[String], most: usize) -> String {
    let shown: Vec<String> = names.iter().take(most).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_readable() {
        assert_eq!(
            [bytes(999), bytes(1500), bytes(5_000_000_000)],
            ["999 B", "1.5 KB", "5.00 GB"]
        );
        let time = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!([time(59), time(61), time(7260)], ["59 s", "2 min", "2 h 1 min"]);
    }

    #[test]
    fn a_long_list_has_an_end() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&names, 3), "`a`, `b`, `c`");
        assert_eq!(list(&names, 1), "`a` and 2 more");
    }
}
