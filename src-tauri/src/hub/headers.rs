//! What the headers of an answer tell. Pure.

use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, RETRY_AFTER};

/// What the hub tells of a file beside its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    /// The commit that was resolved.
    pub(super) commit: Option<String>,
    /// The content's hash, bare.
    pub(super) etag: Option<String>,
    /// Bytes of the whole file.
    pub(super) size: Option<u64>,
}

impl Metadata {
    /// Reads one answer. A redirect's own length and hash are not the file's.
    pub(super) fn read(headers: &HeaderMap, redirect: bool) -> Self {
        let linked = text(headers, "x-linked-etag");
        let own = (!redirect).then(|| headers.get(ETAG)?.to_str().ok()).flatten();
        let size = match text(headers, "x-linked-size") {
            Some(size) => size.trim().parse().ok(),
            None if redirect || headers.contains_key("content-encoding") => None,
            None => match headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok()) {
                Some(range) => content_range(range).and_then(|range| range.total),
                None => content_length(headers),
            },
        };
        Metadata {
            commit: text(headers, "x-repo-commit").map(str::to_owned),
            etag: linked.or(own).and_then(bare_etag),
            size,
        }
    }

    /// Takes from a later answer what is not known yet.
    pub(super) fn or(self, later: Metadata) -> Self {
        Metadata {
            commit: self.commit.or(later.commit),
            etag: self.etag.or(later.etag),
            size: self.size.or(later.size),
        }
    }
}

/// A header's text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The length of the body.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// An etag without its quotes and the mark of a weak one.
pub(super) fn bare_etag(value: &str) -> Option<String> {
    let value = value.trim();
    let value = value.strip_prefix("W/").unwrap_or(value);
    let value = value.trim_matches('"');
    (!value.is_empty()).then(|| value.to_owned())
}

/// Which bytes an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// The first.
    pub(super) first: u64,
    /// The last, itself included.
    pub(super) last: u64,
    /// Bytes of the whole.
    pub(super) total: Option<u64>,
}

/// Reads `bytes 10-19/100`.
pub(super) fn content_range(value: &str) -> Option<ContentRange> {
    let (range, total) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then(|| ContentRange {
        first,
        last,
        total: total.trim().parse().ok(),
    })
}

/// Reads `bytes */100`, the answer to a range behind the end.
pub(super) fn unsatisfied_total(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    value.trim().strip_prefix("bytes */")?.trim().parse().ok()
}

/// How long the hub asks to wait, in either of its ways.
pub(super) fn wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let after = headers
        .get(RETRY_AFTER)
        .and_then(|value| retry_after(value.to_str().ok()?, now));
    let limit = text(headers, "ratelimit").and_then(rate_limit);
    after.max(limit)
}

fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // A date has whole seconds: rounded up, so as not to ask too early.
    let at = httpdate::parse_http_date(value).ok()?;
    Some(
        at.duration_since(now)
            .map_or(Duration::ZERO, |wait| wait + Duration::from_secs(1)),
    )
}

/// Reads `"api";r=0;t=55`: nothing is left, and it fills up again in so many seconds.
fn rate_limit(value: &str) -> Option<Duration> {
    let field = |name: &str| {
        value
            .split(';')
            .filter_map(|part| part.trim().split_once('='))
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    match (field("r"), field("t")) {
        (Some(0), Some(seconds)) => Some(Duration::from_secs(seconds + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap()))
            .collect()
    }

    #[test]
    fn etags_lose_quotes_and_the_weak_mark() {
        assert_eq!(bare_etag("W/\"abc\"").as_deref(), Some("abc"));
        assert_eq!(bare_etag("\"abc\"").as_deref(), Some("abc"));
        assert_eq!(bare_etag("abc").as_deref(), Some("abc"));
        assert_eq!(bare_etag("\"\""), None);
    }

    #[test]
    fn the_linked_etag_and_size_come_first_and_a_redirects_own_do_not_count() {
        let h = headers(&[
            ("x-linked-etag", "\"sha\""),
            ("etag", "\"pointer\""),
            ("x-linked-size", "77"),
            ("content-length", "5"),
            ("x-repo-commit", "c0"),
        ]);
        let m = Metadata::read(&h, true);
        assert_eq!(
            (m.etag.as_deref(), m.size, m.commit.as_deref()),
            (Some("sha"), Some(77), Some("c0"))
        );
        let bare = headers(&[("etag", "\"x\""), ("content-length", "5")]);
        assert_eq!(Metadata::read(&bare, true), Metadata::default());
        assert_eq!(Metadata::read(&bare, false).size, Some(5));
        let part = headers(&[("content-length", "5"), ("content-range", "bytes 5-9/10")]);
        assert_eq!(Metadata::read(&part, false).size, Some(10));
        let packed = headers(&[("content-length", "5"), ("content-encoding", "gzip")]);
        assert_eq!(Metadata::read(&packed, false).size, None);
    }

    #[test]
    fn ranges_are_read_or_refused() {
        let range = content_range("bytes 10-19/100").unwrap();
        assert_eq!((range.first, range.last, range.total), (10, 19, Some(100)));
        assert_eq!(content_range("bytes 0-0/*").unwrap().total, None);
        for bad in ["bytes */100", "bytes 9-3/10", "10-19/100", "bytes x-9/10", ""] {
            assert_eq!(content_range(bad), None, "{bad}");
        }
        assert_eq!(
            unsatisfied_total(&headers(&[("content-range", "bytes */100")])),
            Some(100)
        );
        assert_eq!(unsatisfied_total(&headers(&[("content-range", "bytes 1-2/3")])), None);
    }

    #[test]
    fn waits_are_read_as_seconds_date_and_rate_limit() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let secs = |pairs: &[(&'static str, &str)]| wait(&headers(pairs), now).map(|d| d.as_secs_f64());
        assert_eq!(secs(&[("retry-after", "2")]), Some(2.0));
        assert_eq!(secs(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")]), Some(4.0));
        assert_eq!(secs(&[("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT")]), Some(0.0));
        assert_eq!(secs(&[("ratelimit", "\"api\";r=0;t=55")]), Some(56.0));
        assert_eq!(secs(&[("ratelimit", "\"api\";r=3;t=55")]), None);
        assert_eq!(
            secs(&[("ratelimit", "\"api\";r=0;t=55"), ("retry-after", "90")]),
            Some(90.0)
        );
        assert_eq!(secs(&[("retry-after", "soon")]), None);
        assert_eq!(secs(&[("retry-after", "-3")]), None);
    }
}
