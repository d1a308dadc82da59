//! The hub's API: what a repository is and holds, and search.
//!
//! `hf-hub` asks about repositories and searches. The tree is read here: `hf-hub` 1.0 loses the content hash of large
//! files in it, and that hash is what names and checks them.

use std::error::Error as _;
use std::future::Future;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::StreamExt;
use hf_hub::repository::ModelInfo;
use hf_hub::{HFClient, HFError};
use reqwest::{Method, Url, redirect};
use serde::Deserialize;

use super::cache::is_commit;
use super::http::{Failure, Http, Question, client, no_answer};
use super::retry::{Miss, Patience};
use super::{CancelToken, Hub, HubConfig, HubError, Listing, RemoteFile, RepoId, SearchHit, Secret};

/// Pages of a tree: a thousand files each.
const MOST_PAGES: usize = 100;
/// Bytes of one page.
const LONGEST_PAGE: usize = 32 << 20;

/// The client that was used last, and whose token it has.
pub(super) type LastClient = Option<(Option<Secret>, HFClient)>;

/// An entry of a tree.
#[derive(Deserialize)]
struct TreeEntry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    oid: Option<String>,
    #[serde(default)]
    lfs: Option<Lfs>,
}

/// What a tree tells of a large file; `sha256` is how the repository's own listing calls it.
#[derive(Deserialize)]
struct Lfs {
    #[serde(default, alias = "sha256")]
    oid: Option<String>,
    #[serde(default)]
    size: Option<u64>,
}

impl From<TreeEntry> for RemoteFile {
    fn from(entry: TreeEntry) -> Self {
        let size = entry.lfs.as_ref().and_then(|lfs| lfs.size).or(entry.size);
        RemoteFile {
            path: entry.path,
            size,
            sha256: entry.lfs.and_then(|lfs| lfs.oid),
            git_oid: entry.oid,
        }
    }
}

impl Hub {
    /// What a repository holds, from the hub.
    pub(super) async fn list_online(
        &self,
        repo: &RepoId,
        revision: &str,
        cancel: &CancelToken,
    ) -> Result<Listing, HubError> {
        let what = match revision {
            "main" => repo.to_string(),
            _ => format!("{repo} at {revision}"),
        };
        let asked = self.api(Some(repo), &what, cancel, |client| async move {
            let repository = client.model(repo.owner(), repo.name());
            repository.info().revision(revision.to_owned()).send().await
        });
        let info: ModelInfo = asked.await?;
        let commit = match info.sha {
            Some(sha) if is_commit(&sha) => sha,
            _ if is_commit(revision) => revision.to_owned(),
            _ => return Err(answer(&what, "it names no commit")),
        };
        let files = self.tree(repo, &commit, &what, cancel).await?;
        let card = info.card_data.as_ref();
        let license = card.and_then(|card| card.get("license")).and_then(|name| name.as_str());
        Ok(Listing {
            repo: repo.clone(),
            revision: revision.to_owned(),
            commit,
            files,
            gated: is_gated(info.gated.as_ref()),
            private: info.private.unwrap_or(false),
            license: license.map(str::to_owned),
            offline: false,
        })
    }

    async fn tree(
        &self,
        repo: &RepoId,
        commit: &str,
        what: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<RemoteFile>, HubError> {
        let mut url = self
            .http()
            .url(&["api", "models", repo.owner(), repo.name(), "tree", commit], "")?;
        url.query_pairs_mut().append_pair("recursive", "true");
        let mut files = Vec::new();
        let mut next = Some(url);
        for _ in 0..MOST_PAGES {
            let Some(url) = next.take() else { break };
            let (entries, following) = self.page(repo, url, what, cancel).await?;
            files.extend(entries.into_iter().filter(|e| e.kind == "file").map(RemoteFile::from));
            next = following;
        }
        Ok(files)
    }

    async fn page(
        &self,
        repo: &RepoId,
        url: Url,
        what: &str,
        cancel: &CancelToken,
    ) -> Result<(Vec<TreeEntry>, Option<Url>), HubError> {
        let config = self.impatient();
        let mut patience = Patience::default();
        loop {
            let question = Question {
                method: Method::GET,
                url: url.clone(),
                repo,
                what,
                range: None,
            };
            let failure = match self.http().ask(config, cancel, &question).await {
                Ok(mut answered) => {
                    let link = super::headers::text(answered.response.headers(), "link");
                    let following = link.and_then(next_page).and_then(|to| url.join(to).ok());
                    // The next page is asked for with the token.
                    let following = following.filter(|to| to.origin() == self.http().endpoint().origin());
                    match body(&mut answered.response, &answered.host, what, cancel).await {
                        Ok(text) => {
                            let entries = serde_json::from_slice(&text).map_err(|e| answer(what, &e.to_string()))?;
                            return Ok((entries, following));
                        }
                        Err(failure) => failure,
                    }
                }
                Err(failure) => failure,
            };
            self.pause(&mut patience, failure, cancel).await?;
        }
    }

    /// Repositories that match a text, the most downloaded first.
    pub(super) async fn search_online(
        &self,
        query: &str,
        limit: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<SearchHit>, HubError> {
        let asked = self.api(None, query, cancel, |client| async move {
            let found = client
                .list_models()
                .search(query.to_owned())
                .sort("downloads".to_owned())
                .full(true)
                .limit(limit)
                .send()?;
            let found: Vec<Result<ModelInfo, HFError>> = found.collect().await;
            found.into_iter().collect::<Result<Vec<_>, _>>()
        });
        Ok(asked.await?.into_iter().filter_map(hit).collect())
    }

    /// One call of `hf-hub`, which tries once and knows neither our patience nor a token that is refused.
    async fn api<'a, T, F>(
        &'a self,
        repo: Option<&RepoId>,
        what: &str,
        cancel: &CancelToken,
        call: impl Fn(HFClient) -> F,
    ) -> Result<T, HubError>
    where
        F: Future<Output = Result<T, HFError>> + 'a,
    {
        let config = self.impatient();
        let mut patience = Patience::default();
        let mut first_refusal = None;
        loop {
            let token = match first_refusal {
                Some(_) => None,
                None => self.http().token_for(repo),
            };
            let sent = token.is_some();
            let client = self.client_of_api(token)?;
            let asked = tokio::select! {
                () = cancel.cancelled() => return Err(HubError::Cancelled { kept: 0 }),
                asked = tokio::time::timeout(config.connect_timeout + 3 * config.stall, call(client)) => asked,
            };
            let failure = match asked {
                Ok(Ok(found)) => {
                    if let (Some(_), Some(repo)) = (&first_refusal, repo) {
                        self.http().goes_without_token(repo);
                    }
                    return Ok(found);
                }
                Ok(Err(error)) => self.meaning(error, repo, what, sent),
                Err(_elapsed) => super::http::stalled(self.host(), what),
            };
            match (failure, first_refusal.take()) {
                (Failure::Refused(error), None) if sent => {
                    first_refusal = Some(error);
                    continue;
                }
                (Failure::Refused(_) | Failure::Fatal(_), Some(first)) => return Err(first),
                (failure, first) => {
                    first_refusal = first;
                    let failure = self.with_wait(failure, cancel).await;
                    self.pause(&mut patience, failure, cancel).await?;
                }
            }
        }
    }

    /// What an error of `hf-hub` means.
    fn meaning(&self, error: HFError, repo: Option<&RepoId>, what: &str, token_sent: bool) -> Failure {
        let status = match &error {
            HFError::Request { source, .. } if is_no_json(source) => {
                return Failure::Fatal(answer(what, "it is not what the hub answers"));
            }
            HFError::Request { source, .. } => return no_answer(source, self.host(), what, true),
            HFError::RateLimited { retry_after, .. } => {
                return Failure::Miss(Miss {
                    error: HubError::RateLimited {
                        seconds: retry_after.map_or(0, |wait| wait.as_secs()),
                    },
                    wait: *retry_after,
                    gone: None,
                });
            }
            HFError::Http { context }
            | HFError::AuthRequired { context }
            | HFError::Forbidden { context }
            | HFError::Conflict { context } => Some(context),
            HFError::RepoNotFound { context, .. }
            | HFError::RevisionNotFound { context, .. }
            | HFError::EntryNotFound { context, .. } => context.as_ref(),
            _ => None,
        };
        let Some(context) = status else {
            // Texts of other errors can hold addresses; only what went wrong is told.
            return Failure::Fatal(match error {
                HFError::Json(error) => answer(what, &error.to_string()),
                _ => answer(what, "it is not what the hub answers"),
            });
        };
        let status = context.status.as_u16();
        match (status, repo) {
            (401 | 403 | 404, Some(repo)) => {
                let code = context.error_code.as_deref().unwrap_or_default();
                let message = context.server_message.as_deref().unwrap_or_default();
                self.http().refused((status, code, message), repo, what, token_sent)
            }
            (401 | 403, None) => Failure::Refused(HubError::Unauthorized {
                what: what.to_owned(),
                token_sent,
            }),
            (300..=399, _) => Failure::Fatal(HubError::Redirect {
                what: what.to_owned(),
                message: "the API sends to another host".to_owned(),
            }),
            (408 | 425 | 429 | 500..=599, _) => Failure::Miss(Miss {
                error: match status {
                    429 => HubError::RateLimited { seconds: 0 },
                    _ => HubError::Server {
                        what: what.to_owned(),
                        status,
                    },
                },
                wait: None,
                gone: None,
            }),
            _ => Failure::Fatal(HubError::Server {
                what: what.to_owned(),
                status,
            }),
        }
    }

    /// `hf-hub` passes on only one of the ways in which the hub asks to wait. For the others the hub is asked once more,
    /// after a pause, for nothing but its headers.
    async fn with_wait(&self, failure: Failure, cancel: &CancelToken) -> Failure {
        let (
            Failure::Miss(Miss {
                error: HubError::RateLimited { .. },
                wait: None,
                ..
            }),
            Ok(url),
        ) = (&failure, self.http().url(&["api", "models"], ""))
        else {
            return failure;
        };
        let pause = self.config().backoff.min(Duration::from_secs(1));
        tokio::select! {
            () = cancel.cancelled() => return failure,
            () = tokio::time::sleep(pause) => {}
        }
        match self.http().probe(self.config(), url, cancel).await {
            Some(miss) => Failure::Miss(miss),
            None => failure,
        }
    }

    /// Waits before the next try, or ends with the error.
    async fn pause(&self, patience: &mut Patience, failure: Failure, cancel: &CancelToken) -> Result<(), HubError> {
        let miss = match failure {
            Failure::Fatal(error) | Failure::Refused(error) => return Err(error),
            Failure::Unsatisfiable(_) => return Err(HubError::Task),
            Failure::Miss(miss) => miss,
        };
        let pause = patience.missed(self.impatient(), miss)?;
        tokio::select! {
            () = cancel.cancelled() => Err(HubError::Cancelled { kept: 0 }),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    /// One client for as long as the token stays the same: setting one up reads the system's certificates.
    fn client_of_api(&self, token: Option<Secret>) -> Result<HFClient, HubError> {
        let mut kept = self.inner.api.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((of, client)) if *of == token => Ok(client.clone()),
            _ => {
                let client = api_client(self.config(), token.clone())?;
                *kept = Some((token, client.clone()));
                Ok(client)
            }
        }
    }

    fn host(&self) -> &str {
        self.http().endpoint().host_str().unwrap_or_default()
    }
}

fn api_client(config: &HubConfig, token: Option<Secret>) -> Result<HFClient, HubError> {
    // Redirects of the API stay where the token may go.
    let home = Url::parse(&config.endpoint).ok().map(|url| url.origin());
    let policy = redirect::Policy::custom(move |attempt| {
        let stays = home.as_ref().is_some_and(|home| *home == attempt.url().origin());
        match stays && attempt.previous().len() < 10 {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    });
    // Without a token `hf-hub` looks for one by itself; one that is no valid header is never sent.
    let token = token.map_or_else(|| "\n".to_owned(), |token| token.reveal().to_owned());
    HFClient::builder()
        .client(client(config, policy)?)
        .endpoint(config.endpoint.clone())
        .token(token)
        .cache_dir(config.cache_dir.clone())
        .retry_max_attempts(0)
        .build()
        .map_err(|_| HubError::Config {
            name: "HF_ENDPOINT",
            message: "no connection can be set up with it".to_owned(),
        })
}

async fn body(
    response: &mut reqwest::Response,
    host: &str,
    what: &str,
    cancel: &CancelToken,
) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    loop {
        // The client itself gives up on a body that stalls.
        let chunk = tokio::select! {
            () = cancel.cancelled() => return Err(Failure::Fatal(HubError::Cancelled { kept: 0 })),
            chunk = response.chunk() => chunk,
        };
        match chunk {
            Ok(Some(chunk)) if text.len() + chunk.len() > LONGEST_PAGE => {
                return Err(Failure::Fatal(answer(what, "it is too long")));
            }
            Ok(Some(chunk)) => text.extend_from_slice(&chunk),
            Ok(None) => return Ok(text),
            Err(error) => return Err(no_answer(&error, host, what, false)),
        }
    }
}

/// Reads `<https://…>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    link.split(',').find_map(|part| {
        let (address, relation) = part.split_once(';')?;
        let address = address.trim().strip_prefix('<')?.strip_suffix('>')?;
        relation.replace('"', "").contains("rel=next").then_some(address)
    })
}

/// Whether an answer came whole but was something else, such as a page to sign in to a network.
fn is_no_json(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(inner) = source {
        if inner.is::<serde_json::Error>() {
            return true;
        }
        source = inner.source();
    }
    false
}

fn is_gated(value: Option<&serde_json::Value>) -> bool {
    match value {
        Some(serde_json::Value::Bool(gated)) => *gated,
        Some(serde_json::Value::String(mode)) => mode != "false",
        _ => false,
    }
}

fn hit(info: ModelInfo) -> Option<SearchHit> {
    Some(SearchHit {
        repo: info.id.parse().ok()?,
        downloads: info.downloads.unwrap_or(0),
        likes: info.likes.unwrap_or(0),
        gated: is_gated(info.gated.as_ref()),
        modified: info.last_modified,
        library: info.library_name,
        tags: info.tags.unwrap_or_default(),
    })
}

fn answer(what: &str, message: &str) -> HubError {
    HubError::Answer {
        what: what.to_owned(),
        message: message.to_owned(),
    }
}

/// A look at the hub's headers, for [`Hub::with_wait`].
impl Http {
    async fn probe(&self, config: &HubConfig, url: Url, cancel: &CancelToken) -> Option<Miss> {
        let repo = RepoId::parse("hub/api").ok()?.0;
        let question = Question {
            method: Method::HEAD,
            url,
            repo: &repo,
            what: "the hub",
            range: None,
        };
        match self.ask(config, cancel, &question).await {
            Err(Failure::Miss(miss)) if miss.wait.is_some() => Some(miss),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_in_the_link_header() {
        let link = "<https://hub/api/models/o/n/tree/main?cursor=x%3D>; rel=\"next\"";
        assert_eq!(
            next_page(link),
            Some("https://hub/api/models/o/n/tree/main?cursor=x%3D")
        );
        assert_eq!(next_page("<https://a>; rel=\"prev\", </b>; rel=\"next\""), Some("/b"));
        assert_eq!(next_page("<https://a>; rel=\"prev\""), None);
        assert_eq!(next_page("nonsense"), None);
    }

    #[test]
    fn large_files_keep_their_content_hash_and_size() {
        let text = r#"{"type":"file","path":"m.safetensors","oid":"pointer","size":9,"lfs":{"oid":"sha","size":9,"pointerSize":134}}"#;
        let file = RemoteFile::from(serde_json::from_str::<TreeEntry>(text).unwrap());
        assert_eq!((file.etag(), file.size), (Some("sha"), Some(9)));
        let text = r#"{"type":"file","path":"config.json","oid":"blob","size":2}"#;
        let file = RemoteFile::from(serde_json::from_str::<TreeEntry>(text).unwrap());
        assert_eq!(
            (file.etag(), file.size, file.sha256.clone()),
            (Some("blob"), Some(2), None)
        );
    }
}
