//! The MTP head of a repository, by byte range: of a checkpoint of many gigabytes only the tensors of the head come.
//!
//! What comes of it is a drafter folder that the engine opens as it is: the repository's own `config.json`, and the
//! head's tensors byte for byte under their own names. It is no snapshot, so it has a place beside the hub's cache:
//! `assets/slipstream/heads/OWNER--NAME/COMMIT` in the home folder of the hub's tools, where these keep what is theirs.
//!
//! A whole file can be checked by its hash. Of parts there is none: they are as good as the connection, the commit and
//! the hash that the hub named with each of them. `slipstream-head.json` in the folder says what was checked.

mod fetch;
mod header;
mod journal;
mod plan;
mod record;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::range::Manner;
use super::{CancelToken, Hub, HubError, Listing, PartFile, RepoId, WaitReason};

/// The file in a head's folder that says what it is and what of it was checked.
pub const RECORD: &str = record::NAME;

/// What takes bytes, in their order.
type Sink<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<(), HubError> + Send);

/// Where stretches of files come from.
trait Source: Sync {
    /// Hands bytes of `file` to `sink`: each once, in order, and of the very content that `file` names. Fails where
    /// that is not to be had; what `sink` has by then counts.
    fn read(
        &self,
        file: &PartFile,
        bytes: Range<u64>,
        sink: Sink<'_>,
    ) -> impl Future<Output = Result<(), HubError>> + Send;

    /// Nothing can be done now.
    fn waiting(&self, reason: WaitReason);
}

/// Which byte ranges of which files make the head.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadPlan {
    repo: RepoId,
    commit: String,
    /// Files of the folder to be made.
    outputs: Vec<Output>,
    tensors: usize,
    in_place_of: u64,
    /// The folder of all heads.
    root: PathBuf,
}

/// One file of the folder to be made.
#[derive(Debug, Clone, PartialEq)]
struct Output {
    path: String,
    /// What it begins with; not from the hub.
    prefix: Vec<u8>,
    /// What follows.
    pieces: Vec<Piece>,
    /// The hub's hash, where this is a whole file of the repository.
    etag: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Piece {
    file: PartFile,
    bytes: Range<u64>,
}

impl Output {
    /// A file of the repository as it is.
    fn whole(path: &str, file: PartFile) -> Self {
        Output {
            path: path.to_owned(),
            prefix: Vec::new(),
            etag: file.etag.clone(),
            pieces: vec![Piece {
                bytes: 0..file.size.unwrap_or(0),
                file,
            }],
        }
    }

    fn len(&self) -> u64 {
        let pieces: u64 = self
            .pieces
            .iter()
            .map(|piece| piece.bytes.end - piece.bytes.start)
            .sum();
        self.prefix.len() as u64 + pieces
    }
}

impl HeadPlan {
    /// Bytes of the whole head.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.outputs.iter().map(Output::len).sum()
    }

    /// Bytes of it that are there.
    #[must_use]
    pub fn present(&self) -> u64 {
        fetch::present(self)
    }

    /// Bytes of the weights that stay where they are thanks to this: what all would be.
    #[must_use]
    pub fn in_place_of(&self) -> u64 {
        self.in_place_of
    }

    /// Number of its tensors.
    #[must_use]
    pub fn tensors(&self) -> usize {
        self.tensors
    }

    /// The folder that it will be in.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.repo_dir().join(&self.commit)
    }

    fn repo_dir(&self) -> PathBuf {
        // No name has two hyphens in a row.
        self.root.join(format!("{}--{}", self.repo.owner(), self.repo.name()))
    }
}

/// The folder of all heads, in the home folder of the hub's tools.
#[must_use]
pub fn heads_dir(home: &Path) -> PathBuf {
    home.join("assets").join("slipstream").join("heads")
}

/// Reads the headers of a repository's weight files and chooses the head's tensors. Somebody waits for it: it gives up
/// sooner than a download does.
///
/// # Errors
/// [`HubError::NoHead`] where there is none, or a file contradicts itself, the index or the hub.
pub async fn plan_head(hub: &Hub, listing: &Listing, cancel: &CancelToken) -> Result<HeadPlan, HubError> {
    let source = OfHub {
        hub,
        manner: Manner {
            config: hub.impatient(),
            waiting: &|_| (),
            cancel,
        },
    };
    plan::plan(&source, listing, &heads_dir(&hub.config().home)).await
}

/// Fetches the head to a folder of its own; `progress` hears how many bytes of it are there, `waiting` why none come.
/// Broken off, it keeps what came, and the same call goes on from there.
///
/// # Errors
/// What the hub and the disk say.
pub async fn fetch_head(
    hub: &Hub,
    plan: &HeadPlan,
    progress: &(dyn Fn(u64) + Send + Sync),
    waiting: &(dyn Fn(WaitReason) + Send + Sync),
    cancel: &CancelToken,
) -> Result<PathBuf, HubError> {
    let source = OfHub {
        hub,
        manner: Manner {
            config: hub.config(),
            waiting,
            cancel,
        },
    };
    fetch::fetch(&source, plan, progress, cancel).await
}

struct OfHub<'a> {
    hub: &'a Hub,
    manner: Manner<'a>,
}

impl Source for OfHub<'_> {
    async fn read(&self, file: &PartFile, bytes: Range<u64>, sink: Sink<'_>) -> Result<(), HubError> {
        self.hub.stretch(file, bytes, sink, self.manner).await
    }

    fn waiting(&self, reason: WaitReason) {
        (self.manner.waiting)(reason);
    }
}
