//! Failures of the hub, and their wording.

use std::path::PathBuf;

use super::http::BUNDLES;
use crate::words::{bytes, list};

/// A repository may have thousands of files.
const MOST_NAMES: usize = 40;

/// A failure of the hub. Texts never hold a token or a signed address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// Not the name of a repository.
    #[error("`{text}` is not the name of a model repository")]
    BadRepo {
        /// What was given.
        text: String,
    },
    /// Not there, or not to be seen.
    #[error("`{what}` was not found on the hub")]
    NotFound {
        /// Repository, revision or file.
        what: String,
    },
    /// The hub wants to know who asks, or does not believe it.
    #[error("the hub refuses access to `{what}`{}", if *.token_sent { ": the access token is not accepted" } else { "" })]
    Unauthorized {
        /// Repository or file.
        what: String,
        /// Whether there was a token.
        token_sent: bool,
    },
    /// A licence must be accepted first.
    #[error("`{repo}` is gated: its licence must be accepted first")]
    Gated {
        /// Which repository.
        repo: String,
        /// Its page.
        url: String,
    },
    /// The token's owner may not see it.
    #[error("the hub forbids access to `{what}`{}", colon(.message))]
    Forbidden {
        /// Repository or file.
        what: String,
        /// What the hub says, or nothing.
        message: String,
    },
    /// Too many requests.
    #[error("the hub wants fewer requests{}", if *.seconds > 0 { format!(": it asks to wait {seconds} s") } else { String::new() })]
    RateLimited {
        /// For how long; 0 if it does not say.
        seconds: u64,
    },
    /// The hub or its file host has trouble.
    #[error("the hub cannot serve `{what}`: status {status}")]
    Server {
        /// Repository or file.
        what: String,
        /// HTTP status.
        status: u16,
    },
    /// No connection, or it broke off too often.
    #[error("no connection to `{host}` for `{what}`: {message}")]
    Network {
        /// Which host.
        host: String,
        /// Repository or file.
        what: String,
        /// The cause.
        message: String,
    },
    /// Nobody who is trusted vouches for who answers.
    #[error("the certificate of `{host}` is not trusted: {message}")]
    Certificate {
        /// Which host.
        host: String,
        /// What is wrong with it.
        message: String,
    },
    /// The bytes stopped coming, too often.
    #[error("`{what}` stopped coming from `{host}`")]
    Stalled {
        /// Which host.
        host: String,
        /// Which file.
        what: String,
    },
    /// Redirected in a circle, or too often, or to something that is no web address.
    #[error("the hub's redirects for `{what}` lead nowhere: {message}")]
    Redirect {
        /// Repository or file.
        what: String,
        /// The cause.
        message: String,
    },
    /// An answer that makes no sense.
    #[error("the hub's answer about `{what}` cannot be used: {message}")]
    Answer {
        /// Repository or file.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// The bytes are not those that the hub promised.
    #[error("`{file}` has the wrong hash: expected {expected}, found {found}")]
    HashMismatch {
        /// Which file.
        file: String,
        /// Hash the hub tells.
        expected: String,
        /// Hash of what came.
        found: String,
    },
    /// More or fewer bytes than the hub promised.
    #[error("`{file}` has the wrong length: expected {expected} bytes, found {found}")]
    LengthMismatch {
        /// Which file.
        file: String,
        /// Bytes the hub tells.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// The file host does not do ranges as it must.
    #[error("`{file}` cannot be fetched in parts: {message}")]
    Range {
        /// Which file.
        file: String,
        /// What it answered.
        message: String,
    },
    /// The file is another one than when the download was planned.
    #[error("`{file}` changed on the hub during the download")]
    Changed {
        /// Which file.
        file: String,
    },
    /// No room.
    #[error("the disk of `{}` is full{}", .dir.display(), room(*.needed, *.free))]
    DiskFull {
        /// The folder written to.
        dir: PathBuf,
        /// Bytes still to be written.
        needed: u64,
        /// Free bytes, where known.
        free: Option<u64>,
    },
    /// The system forbids it.
    #[error("`{}` may not be written or read", .path.display())]
    Permission {
        /// Which file or folder.
        path: PathBuf,
    },
    /// The disk refused.
    #[error("`{}` cannot be written or read: {message}", .path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// The cause.
        message: String,
    },
    /// Patterns that choose nothing.
    #[error("no file matches {}; there are: {}", list(.patterns, MOST_NAMES), list(.files, MOST_NAMES))]
    NoMatch {
        /// The patterns.
        patterns: Vec<String>,
        /// The files that are there.
        files: Vec<String>,
    },
    /// Names that are one on a disk that ignores case.
    #[error("names differ only in case: {}", list(.files, MOST_NAMES))]
    CaseCollision {
        /// These.
        files: Vec<String>,
    },
    /// A path that must not be written.
    #[error("the path `{path}` is not safe to write")]
    UnsafePath {
        /// Which.
        path: String,
    },
    /// Stopped by the person.
    #[error("the download was stopped; {kept} bytes are kept")]
    Cancelled {
        /// Bytes of unfinished files that stay on disk.
        kept: u64,
    },
    /// Not in the cache, and the network is not to be used.
    #[error("`{what}` is not in the cache, and the hub is not asked while offline")]
    Offline {
        /// Repository or file.
        what: String,
    },
    /// The token cannot be kept or read.
    #[error("the access token cannot be kept or read: {message}")]
    Token {
        /// The cause.
        message: String,
    },
    /// The repository has no MTP head, or one that cannot be taken out.
    #[error("no MTP head can be taken from `{repo}`: {message}")]
    NoHead {
        /// Which repository.
        repo: String,
        /// The cause.
        message: String,
    },
    /// A file's own contents make no sense.
    #[error("`{file}` cannot be used: {message}")]
    BadFile {
        /// Which file.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// A setting that cannot work.
    #[error("the setting `{name}` cannot be used: {message}")]
    Config {
        /// Which.
        name: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A background task was lost.
    #[error("a task of the download ended unexpectedly")]
    Task,
}

fn colon(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

fn room(needed: u64, free: Option<u64>) -> String {
    let needed = (needed > 0).then(|| format!("{} are needed", bytes(needed)));
    let free = free.map(|free| format!("{} are free", bytes(free)));
    let known: Vec<String> = needed.into_iter().chain(free).collect();
    colon(&known.join(", "))
}

impl HubError {
    /// Stable name of the kind, in snake case.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            HubError::BadRepo { .. } => "bad_repo",
            HubError::NotFound { .. } => "not_found",
            HubError::Unauthorized { .. } => "unauthorized",
            HubError::Gated { .. } => "gated",
            HubError::Forbidden { .. } => "forbidden",
            HubError::RateLimited { .. } => "rate_limited",
            HubError::Server { .. } => "server",
            HubError::Network { .. } => "network",
            HubError::Certificate { .. } => "certificate",
            HubError::Stalled { .. } => "stalled",
            HubError::Redirect { .. } => "redirect",
            HubError::Answer { .. } => "answer",
            HubError::HashMismatch { .. } => "hash_mismatch",
            HubError::LengthMismatch { .. } => "length_mismatch",
            HubError::Range { .. } => "range",
            HubError::Changed { .. } => "changed",
            HubError::DiskFull { .. } => "disk_full",
            HubError::Permission { .. } => "permission",
            HubError::Io { .. } => "io",
            HubError::NoMatch { .. } => "no_match",
            HubError::CaseCollision { .. } => "case_collision",
            HubError::UnsafePath { .. } => "unsafe_path",
            HubError::Cancelled { .. } => "cancelled",
            HubError::Offline { .. } => "offline",
            HubError::Token { .. } => "token",
            HubError::NoHead { .. } => "no_head",
            HubError::BadFile { .. } => "bad_file",
            HubError::Config { .. } => "config",
            HubError::Task => "internal",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            HubError::BadRepo { .. } => "write it as owner/name, or paste the address of its page",
            HubError::NotFound { .. } => {
                "check the spelling; if the repository is private, sign in with a token that may see it"
            }
            HubError::Unauthorized { token_sent: true, .. } => {
                "the token may be revoked: make a new one at https://huggingface.co/settings/tokens and enter it in the settings"
            }
            HubError::Unauthorized { token_sent: false, .. } => {
                "check the spelling; a private or gated repository needs an access token, entered in the settings"
            }
            HubError::Gated { url, .. } => {
                return Some(format!(
                    "accept the licence at {url}, then try again with a token of the same account"
                ));
            }
            HubError::Forbidden { .. } => "use a token that may read this repository",
            HubError::RateLimited { .. } => {
                "what was fetched is kept; try again later, or sign in: accounts have higher limits"
            }
            HubError::Server { .. } => "what was fetched is kept; try again later",
            HubError::Network { .. } | HubError::Stalled { .. } => {
                "what was fetched is kept; check the network or a proxy (HTTPS_PROXY), then try again"
            }
            HubError::Certificate { .. } => {
                "if your network or hub has a certificate authority of its own, add its certificate to the system's, or name its PEM file in SSL_CERT_FILE, and start Slipstream again; else somebody may be reading along"
            }
            HubError::Redirect { .. } | HubError::Answer { .. } => {
                "check HF_ENDPOINT, or whether a proxy or sign-in page answers in place of the hub"
            }
            HubError::HashMismatch { .. } | HubError::LengthMismatch { .. } => {
                "what came was thrown away; try again, and if it stays so, the hub or a proxy on the way damages the file"
            }
            HubError::Range { .. } => "download the whole file in place of a part",
            HubError::Changed { .. } => "start the download again to get the new version",
            HubError::DiskFull { .. } => {
                "free some space, or set HF_HOME to a folder on another disk; what was fetched is kept"
            }
            HubError::Permission { .. } => "check who owns the folder, or set HF_HOME to one that you may write",
            HubError::Io { .. } => "check the disk, then try again",
            HubError::NoMatch { .. } => "patterns are matched against whole paths; * also crosses folders",
            HubError::CaseCollision { .. } => "exclude one of them",
            HubError::UnsafePath { .. } => "do not use this repository",
            HubError::Cancelled { .. } => "start it again to go on from there",
            HubError::Offline { .. } => "unset HF_HUB_OFFLINE, or switch offline mode off, to fetch it",
            HubError::Token { .. } => "enter the token again, or set HF_TOKEN",
            HubError::NoHead { .. } => "use another drafter, or load the model without one",
            HubError::BadFile { .. } => "delete the file and fetch it again",
            HubError::Config { name, .. } if BUNDLES.contains(name) => {
                "it must name a file with certificates in PEM form; correct or unset it, and start Slipstream again"
            }
            HubError::Config { .. } => return None,
            HubError::Task => "try again; if it comes back, restart Slipstream",
        };
        Some(text.to_owned())
    }
}
