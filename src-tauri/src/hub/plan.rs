//! What to fetch, and what came of it.

use std::path::PathBuf;

use super::head::HeadPlan;
use super::{RemoteFile, RepoId};

/// A repository, or a part of one, that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRequest {
    /// Which repository.
    pub repo: RepoId,
    /// Branch, tag or commit; `main` if not given.
    pub revision: Option<String>,
    /// The branch or tag that leads to `revision`, where that is a commit: the cache notes where it led.
    pub branch: Option<String>,
    /// Patterns of paths; none means what the loader needs.
    pub include: Vec<String>,
    /// Patterns of paths that are left out.
    pub exclude: Vec<String>,
    /// Only the MTP tensors, by range requests.
    pub head_only: bool,
}

/// A download, counted and pinned, but not begun.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its parts, in the order of the requests.
    pub parts: Vec<PlanPart>,
    /// Free bytes where the cache is, where that can be read.
    pub disk_free: Option<u64>,
}

/// One part of a plan.
#[derive(Debug, Clone)]
pub struct PlanPart {
    /// Which repository.
    pub repo: RepoId,
    /// What was asked for.
    pub revision: String,
    /// The commit it is pinned to.
    pub commit: String,
    /// Whether a licence must be accepted first.
    pub gated: bool,
    /// The licence it names.
    pub license: Option<String>,
    /// The files, with what is there of them; empty where only the head is fetched.
    pub files: Vec<PlanFile>,
    /// The head's tensors, where only they are fetched.
    pub head: Option<HeadPlan>,
}

/// A file of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// Which.
    pub file: RemoteFile,
    /// What the cache has of it.
    pub presence: Presence,
}

/// What the cache has of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nothing.
    Absent,
    /// So many bytes, of a broken off download.
    Partial(u64),
    /// All of it.
    Whole,
}

impl PlanFile {
    /// Bytes of it that are there.
    #[must_use]
    pub fn present(&self) -> u64 {
        match self.presence {
            Presence::Absent => 0,
            Presence::Partial(bytes) => bytes,
            Presence::Whole => self.file.size.unwrap_or(0),
        }
    }
}

impl PlanPart {
    /// Bytes of the whole part.
    #[must_use]
    pub fn total(&self) -> u64 {
        let files: u64 = self.files.iter().filter_map(|f| f.file.size).sum();
        files + self.head.as_ref().map_or(0, HeadPlan::total)
    }

    /// Bytes of it that are there.
    #[must_use]
    pub fn present(&self) -> u64 {
        let files: u64 = self.files.iter().map(PlanFile::present).sum();
        files + self.head.as_ref().map_or(0, HeadPlan::present)
    }
}

impl Plan {
    /// Bytes of all parts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.parts.iter().map(PlanPart::total).sum()
    }

    /// Bytes that are there.
    #[must_use]
    pub fn present(&self) -> u64 {
        self.parts.iter().map(PlanPart::present).sum()
    }

    /// Bytes to be fetched.
    #[must_use]
    pub fn to_fetch(&self) -> u64 {
        self.total().saturating_sub(self.present())
    }

    /// Whether the disk has room. A disk that cannot be asked does not stand in the way.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.disk_free.is_none_or(|free| self.to_fetch() <= free)
    }
}

/// A part that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPart {
    /// Which repository.
    pub repo: RepoId,
    /// The commit.
    pub commit: String,
    /// The folder with its files.
    pub dir: PathBuf,
    /// Their paths in it.
    pub files: Vec<String>,
}
