//! Names of repositories and files, and what the API tells of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::HubError;

/// A model repository, `owner/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoId {
    owner: String,
    name: String,
}

impl RepoId {
    /// Reads `owner/name`, or the address of a repository's page with the revision it may name.
    pub fn parse(text: &str) -> Result<(Self, Option<String>), HubError> {
        let bad = || HubError::BadRepo { text: text.to_owned() };
        let text = text.trim();
        let (path, is_url) = match text.split_once("://") {
            Some(("http" | "https", rest)) => (rest.split_once('/').map_or("", |(_host, path)| path), true),
            Some(("hf", rest)) => (rest, true),
            Some(_) => return Err(bad()),
            None => match text.strip_prefix("huggingface.co/").or(text.strip_prefix("hf.co/")) {
                Some(rest) => (rest, true),
                None => (text, false),
            },
        };
        let path = if is_url {
            path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/')
        } else {
            path
        };
        let path = path.strip_prefix("models/").filter(|_| is_url).unwrap_or(path);
        let mut parts = path.split('/');
        let (Some(owner), Some(name)) = (parts.next(), parts.next()) else {
            return Err(bad());
        };
        let revision = match (is_url, parts.next()) {
            (_, None) => None,
            (true, Some("tree" | "resolve" | "blob" | "commit")) => {
                parts.next().filter(|r| !r.is_empty()).map(|r| r.replace("%2F", "/"))
            }
            (true, Some("discussions" | "commits")) => None,
            _ => return Err(bad()),
        };
        if !is_segment(owner) || !is_segment(name) || ["datasets", "spaces", "api"].contains(&owner) {
            return Err(bad());
        }
        let id = RepoId {
            owner: owner.to_owned(),
            name: name.to_owned(),
        };
        Ok((id, revision))
    }

    /// Whose it is.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Its name without the owner.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The hub's own rule, so that a name is also a safe folder name and a safe part of an address.
fn is_segment(text: &str) -> bool {
    (1..=96).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && !text.starts_with(['.', '-'])
        && !text.ends_with(['.', '-'])
        && !text.contains("..")
        && !text.contains("--")
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl FromStr for RepoId {
    type Err = HubError;

    fn from_str(text: &str) -> Result<Self, HubError> {
        RepoId::parse(text).map(|(id, _revision)| id)
    }
}

impl TryFrom<String> for RepoId {
    type Error = HubError;

    fn try_from(text: String) -> Result<Self, HubError> {
        text.parse()
    }
}

impl From<RepoId> for String {
    fn from(id: RepoId) -> String {
        id.to_string()
    }
}

/// A file as the API lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    /// Path in the repository; not yet checked to be a safe one.
    pub path: String,
    /// Bytes.
    pub size: Option<u64>,
    /// Hash of the content, of large files.
    pub sha256: Option<String>,
    /// Git's hash of the blob, of small files; of large ones it is the pointer's.
    pub git_oid: Option<String>,
}

impl RemoteFile {
    /// The name of its blob in the cache, as far as the listing tells.
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        self.sha256.as_deref().or(self.git_oid.as_deref())
    }
}

/// What a repository holds at a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Which repository.
    pub repo: RepoId,
    /// The branch, tag or commit that was asked for.
    pub revision: String,
    /// The commit it stands for.
    pub commit: String,
    /// Its files.
    pub files: Vec<RemoteFile>,
    /// Whether a licence must be accepted first.
    pub gated: bool,
    /// Whether only some may see it.
    pub private: bool,
    /// The licence it names.
    pub license: Option<String>,
    /// Read from the cache, because there is no network to be used.
    pub offline: bool,
}

impl Listing {
    /// A file by its path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&RemoteFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// A file's coordinates, for range requests.
    #[must_use]
    pub fn part_file(&self, file: &RemoteFile) -> PartFile {
        PartFile {
            repo: self.repo.clone(),
            commit: self.commit.clone(),
            path: file.path.clone(),
            size: file.size,
            etag: file.etag().map(str::to_owned),
        }
    }
}

/// One file of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartFile {
    /// Which repository.
    pub repo: RepoId,
    /// The commit.
    pub commit: String,
    /// The path in it.
    pub path: String,
    /// Bytes, where known.
    pub size: Option<u64>,
    /// Its hash, where known: answers about another content are refused.
    pub etag: Option<String>,
}

/// A repository that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// Which.
    pub repo: RepoId,
    /// Downloads of the last month.
    pub downloads: u64,
    /// How many like it.
    pub likes: u64,
    /// Whether a licence must be accepted first.
    pub gated: bool,
    /// Last change, as the hub writes it.
    pub modified: Option<String>,
    /// The library it is for, such as `mlx`.
    pub library: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
}
