//! `strftime_now`, in English whatever the locale.

use std::fmt::Write as _;

use crate::text::LocalTime;

/// `format` as Python's `strftime` without a time zone writes it. What is no directive stays as it is.
pub(super) fn strftime(now: LocalTime, format: &str) -> String {
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        let flag = usize::from(tail[1..].starts_with(['-', '_', '0']));
        let Some(directive) = tail[1 + flag..].chars().next() else {
            out.push_str(tail);
            return out;
        };
        let end = 1 + flag + directive.len_utf8();
        match directive {
            'f' => {
                let _ = write!(out, "{:06}", now.and_utc().timestamp_subsec_micros());
            }
            // Local time carries no zone.
            'z' | 'Z' => {}
            '%' => out.push('%'),
            'a' | 'A' | 'b' | 'B' | 'c' | 'C' | 'd' | 'D' | 'e' | 'F' | 'g' | 'G' | 'h' | 'H' | 'I' | 'j' | 'k'
            | 'l' | 'm' | 'M' | 'n' | 'p' | 'P' | 'r' | 'R' | 'S' | 't' | 'T' | 'u' | 'U' | 'V' | 'w' | 'W' | 'x'
            | 'X' | 'y' | 'Y' => {
                // Formatting fails without a trace of text for a directive that chrono does not have.
                let _ = write!(out, "{}", now.format(&tail[..end]));
            }
            _ => out.push_str(&tail[..end]),
        }
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn directives_are_those_of_python() {
        let now = "2026-02-03T04:05:06.000789".parse().unwrap();
        for (format, text) in [
            ("%d %b %Y", "03 Feb 2026"),
            ("%-d/%-m/%y %I:%M %p", "3/2/26 04:05 AM"),
            ("%f|%z|%Z|%%|100%", "000789|||%|100%"),
            ("%c|%x|%X", "Tue Feb  3 04:05:06 2026|02/03/26|04:05:06"),
            ("%G-W%V-%u %U %w", "2026-W06-2 05 2"),
            ("%é %Q", "%é %Q"),
        ] {
            assert_eq!(strftime(now, format), text, "{format}");
        }
    }
}
