//! Faults, as the shared cases write them: which requests, how often, and what is answered instead.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a request is about. `Content` is the one that carries a file's bytes, on whatever host.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum On {
    Api,
    Resolve,
    Content,
}

/// A fault. The first rule that fits a request and is not used up is played.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub on: On,
    #[serde(default)]
    pub when: When,
    /// How often; always if absent.
    pub times: Option<u32>,
    pub respond: Respond,
}

/// What a request must be like.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    pub authorization: Option<bool>,
    pub range: Option<bool>,
    /// A part of the request's target.
    pub target: Option<String>,
}

/// What is answered. Fields that are absent leave the answer as the real hub gives it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Respond {
    pub status: Option<u16>,
    pub headers: BTreeMap<String, String>,
    pub text: Option<String>,
    /// Waits before the first byte of the answer.
    pub delay_ms: u64,
    /// Sends the header of the answer line by line, this far apart.
    pub header_every_ms: u64,
    /// Closes after this many bytes of the body.
    pub cut_at: Option<u64>,
    /// Sends no more after this many bytes and stays open.
    pub stall_at: Option<u64>,
    pub trickle: Option<Trickle>,
    /// Offset of a byte that is changed.
    pub flip: Option<u64>,
    /// The server's file is this short.
    pub truncate: Option<u64>,
    /// The server's file has this many bytes more, and all of them are sent.
    pub longer: u64,
    /// 200 and the whole file to a request for a range.
    pub ignore_range: bool,
    /// 206 from another place than was asked for.
    pub serve_from: Option<u64>,
    pub etag: Option<String>,
    pub gzip_if_accepted: bool,
    /// Also to those who do not want it, as some proxies do.
    pub gzip: bool,
    /// Chunks and no length.
    pub chunked: bool,
}

/// So many bytes every so often.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trickle {
    pub bytes: u64,
    pub every_ms: u64,
}

impl Rule {
    /// The fault for every request of a kind.
    pub fn on(on: On, respond: Respond) -> Self {
        Rule {
            on,
            when: When::default(),
            times: None,
            respond,
        }
    }

    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    pub fn with_range(mut self) -> Self {
        self.when.range = Some(true);
        self
    }

    pub fn with_authorization(mut self) -> Self {
        self.when.authorization = Some(true);
        self
    }

    pub fn target(mut self, part: &str) -> Self {
        self.when.target = Some(part.into());
        self
    }

    pub(super) fn fits(&self, on: On, target: &str, authorization: bool, range: bool) -> bool {
        self.on == on
            && self.times != Some(0)
            && self.when.authorization.is_none_or(|wanted| wanted == authorization)
            && self.when.range.is_none_or(|wanted| wanted == range)
            && self.when.target.as_ref().is_none_or(|part| target.contains(part))
    }
}

impl Respond {
    pub fn status(status: u16) -> Self {
        Respond {
            status: Some(status),
            ..Respond::default()
        }
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    pub fn cut_at(at: u64) -> Self {
        Respond {
            cut_at: Some(at),
            ..Respond::default()
        }
    }

    pub fn stall_at(at: u64) -> Self {
        Respond {
            stall_at: Some(at),
            ..Respond::default()
        }
    }

    pub fn trickle(bytes: u64, every_ms: u64) -> Self {
        Respond {
            trickle: Some(Trickle { bytes, every_ms }),
            ..Respond::default()
        }
    }

    /// Whether the answer is this rule's alone, with nothing of the file's.
    pub(super) fn stands_alone(&self) -> bool {
        self.status.is_some_and(|status| status >= 300) || self.text.is_some()
    }
}
