//! The model hub: what a repository holds, which of it is needed, and fetching that so that nothing is fetched twice.
//!
//! Files land in the Hugging Face cache in its own layout, so other tools find them and theirs are found. Requests to
//! the API go through `hf-hub`; the bytes of files are our own doing, since only so they can be resumed.

pub mod catalog;
pub mod head;
pub mod select;
pub mod token;

mod api;
mod cache;
mod config;
mod download;
mod error;
mod fetch;
mod headers;
mod http;
mod lock;
mod part;
mod plan;
mod progress;
mod range;
mod repo;
mod retry;
mod verify;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use cache::disk_free;
pub use config::{DiskFree, HubConfig, Secret};
pub use error::HubError;
pub use plan::{FetchedPart, PartRequest, Plan, PlanFile, PlanPart, Presence};
pub use progress::{FileProgress, FileState, Progress, WaitReason};
pub use repo::{Listing, PartFile, RemoteFile, RepoId, SearchHit};
/// Ends every wait of a call at once; `cancel()` can be called from anywhere.
pub use tokio_util::sync::CancellationToken as CancelToken;

/// The branch that is meant where none is named.
const MAIN: &str = "main";

/// The hub and its cache. Cheap to clone; no network is touched before a call asks for it.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    config: HubConfig,
    /// For calls that somebody looks at: they end sooner.
    impatient: HubConfig,
    http: http::Http,
    api: Mutex<api::LastClient>,
}

impl Hub {
    /// A hub as configured.
    pub fn new(config: HubConfig) -> Result<Self, HubError> {
        let http = http::Http::new(&config)?;
        let impatient = HubConfig {
            network_wait: config.network_wait.min(4 * config.backoff),
            max_wait: config.max_wait.min(Duration::from_secs(60)),
            ..config.clone()
        };
        Ok(Hub {
            inner: Arc::new(Inner {
                config,
                impatient,
                http,
                api: Mutex::default(),
            }),
        })
    }

    /// How it is configured.
    #[must_use]
    pub fn config(&self) -> &HubConfig {
        &self.inner.config
    }

    fn impatient(&self) -> &HubConfig {
        &self.inner.impatient
    }

    fn http(&self) -> &http::Http {
        &self.inner.http
    }

    /// Uses another access token from now on, or none, in all clones.
    pub fn set_token(&self, token: Option<Secret>) {
        self.http().set_token(token);
    }

    /// What a repository holds. Without a revision it is `main`. Offline it is what the cache holds.
    pub async fn list(&self, repo: &RepoId, revision: Option<&str>, cancel: &CancelToken) -> Result<Listing, HubError> {
        let revision = revision.unwrap_or(MAIN);
        if self.config().offline {
            return self.list_offline(repo, revision);
        }
        self.list_online(repo, revision, cancel).await
    }

    /// What a download would fetch: commits pinned, files chosen, bytes counted. Downloads no file; for a head alone it
    /// reads the headers of the weight files.
    pub async fn plan(&self, parts: &[PartRequest], cancel: &CancelToken) -> Result<Plan, HubError> {
        self.make_plan(parts, cancel).await
    }

    /// Fetches what a plan lacks. Dropped or cancelled, it keeps what came; the same call goes on from there.
    pub async fn download(
        &self,
        plan: &Plan,
        progress: &(dyn Fn(Progress) + Send + Sync),
        cancel: &CancelToken,
    ) -> Result<Vec<FetchedPart>, HubError> {
        self.run_plan(plan, progress, cancel).await
    }

    /// Repositories that match a text, most downloaded first.
    pub async fn search(&self, query: &str, limit: usize, cancel: &CancelToken) -> Result<Vec<SearchHit>, HubError> {
        if self.config().offline {
            return Err(HubError::Offline { what: query.to_owned() });
        }
        self.search_online(query, limit, cancel).await
    }

    /// The snapshot folder of a revision in the cache, if there is one. Never touches the network.
    #[must_use]
    pub fn cached(&self, repo: &RepoId, revision: Option<&str>) -> Option<PathBuf> {
        let cache = cache::RepoCache::new(&self.config().cache_dir, repo);
        let commit = cache.commit_of(revision.unwrap_or(MAIN))?;
        Some(cache.snapshot(&commit)).filter(|dir| dir.is_dir())
    }

    /// Bytes of a file from `start` up to `end`, in memory.
    pub async fn range(&self, file: &PartFile, bytes: Range<u64>, cancel: &CancelToken) -> Result<Vec<u8>, HubError> {
        let mut buffer = Vec::new();
        let mut sink = |chunk: &[u8]| {
            buffer.extend_from_slice(chunk);
            Ok(())
        };
        self.range_to(file, bytes, &mut sink, cancel).await?;
        Ok(buffer)
    }

    /// Streams bytes of a file to `sink`, going on after a broken connection: `sink` gets each byte once, in order.
    pub async fn range_to(
        &self,
        file: &PartFile,
        bytes: Range<u64>,
        sink: &mut (dyn FnMut(&[u8]) -> Result<(), HubError> + Send),
        cancel: &CancelToken,
    ) -> Result<(), HubError> {
        let manner = range::Manner {
            config: self.config(),
            waiting: &|_| (),
            cancel,
        };
        self.stretch(file, bytes, sink, manner).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever downloads in the background spawns it. It compiles or it does not.
    #[allow(dead_code)]
    fn calls_can_be_spawned(hub: Hub, plan: Plan, file: PartFile, cancel: CancelToken) {
        tokio::spawn(async move {
            let repo = RepoId::parse("o/n")?.0;
            hub.list(&repo, None, &cancel).await?;
            hub.plan(&[], &cancel).await?;
            hub.search("text", 1, &cancel).await?;
            hub.range(&file, 0..1, &cancel).await?;
            hub.download(&plan, &|_| (), &cancel).await
        });
    }

    #[test]
    fn nothing_is_asked_before_a_call() {
        let home = tempfile::tempdir().unwrap();
        let hub = Hub::new(HubConfig::at("http://hub.invalid", home.path())).unwrap();
        assert_eq!(hub.cached(&"o/n".parse().unwrap(), None), None);
        for bad in ["", "hub", "ftp://hub", "file:///hub"] {
            let refused = Hub::new(HubConfig::at(bad, home.path())).map(|_| ());
            assert_eq!(refused.unwrap_err().kind(), "config", "{bad}");
        }
    }
}
