//! The MTP head of a repository, by byte range.

use std::path::PathBuf;

use super::{CancelToken, Hub, HubError, Listing};

/// Which byte ranges of which files make the head.
#[derive(Debug, Clone)]
pub struct HeadPlan {}

impl HeadPlan {
    /// Bytes of the whole head.
    #[must_use]
    pub fn total(&self) -> u64 {
        0
    }

    /// Bytes of it that are there.
    #[must_use]
    pub fn present(&self) -> u64 {
        0
    }
}

/// Reads the headers of a repository's weight files and chooses the head's tensors.
pub async fn plan_head(hub: &Hub, listing: &Listing, cancel: &CancelToken) -> Result<HeadPlan, HubError> {
    let _ = (hub, cancel);
    Err(HubError::NoHead {
        repo: listing.repo.to_string(),
        message: "not yet".to_owned(),
    })
}

/// Fetches the head to a folder of its own; `progress` hears how many bytes of it are there.
pub async fn fetch_head(
    hub: &Hub,
    plan: &HeadPlan,
    progress: &(dyn Fn(u64) + Send + Sync),
    cancel: &CancelToken,
) -> Result<PathBuf, HubError> {
    let _ = (hub, plan, progress, cancel);
    Err(HubError::Task)
}
