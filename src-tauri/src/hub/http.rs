//! One request for a file, with its redirects: who gets the token, and what an answer means.

use std::collections::HashSet;
use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT_ENCODING, HeaderMap, LOCATION, RANGE};
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url, redirect};

use super::headers::{self, Metadata};
use super::retry::{Gone, Miss};
use super::{CancelToken, HubConfig, HubError, RepoId, Secret};

const MOST_REDIRECTS: usize = 10;
const LONGEST_MESSAGE: usize = 300;
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Variables that name further certificates, as OpenSSL, Python's `requests` and curl read them.
pub(super) const BUNDLES: [&str; 3] = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"];

/// How a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// It will not go better another time.
    Fatal(HubError),
    /// It may.
    Miss(Miss),
    /// The hub does not let this token, or nobody, in.
    Refused(HubError),
    /// The range lies behind the end of a file of so many bytes.
    Unsatisfiable(Option<u64>),
}

/// An answer with bytes to come.
#[derive(Debug)]
pub(super) struct Answer {
    /// 200 or 206.
    pub(super) response: Response,
    /// What the hub itself told on the way here.
    pub(super) metadata: Metadata,
    /// Who sends the bytes.
    pub(super) host: String,
}

/// The connections to the hub and its file hosts.
pub(super) struct Http {
    client: Result<Client, HubError>,
    endpoint: Url,
    token: RwLock<Option<Secret>>,
    /// Repositories that refused the token but let nobody in particular in.
    open: Mutex<HashSet<RepoId>>,
}

impl Http {
    pub(super) fn new(config: &HubConfig) -> Result<Self, HubError> {
        let bad = |message: String| HubError::Config {
            name: "HF_ENDPOINT",
            message,
        };
        let endpoint = Url::parse(&config.endpoint).map_err(|e| bad(format!("`{}`: {e}", config.endpoint)))?;
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host_str().is_none() {
            return Err(bad(format!("`{}` is no web address", config.endpoint)));
        }
        Ok(Http {
            client: client(config, redirect::Policy::none()),
            endpoint,
            token: RwLock::new(config.token.clone()),
            open: Mutex::default(),
        })
    }

    pub(super) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    pub(super) fn set_token(&self, token: Option<Secret>) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The token for a repository: none where it was refused and is not needed.
    pub(super) fn token_for(&self, repo: Option<&RepoId>) -> Option<Secret> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if repo.is_some_and(|repo| open.contains(repo)) {
            return None;
        }
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on the repository is asked without the token.
    pub(super) fn goes_without_token(&self, repo: &RepoId) {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(repo.clone());
    }

    /// The address of a file.
    pub(super) fn resolve_url(&self, repo: &RepoId, revision: &str, path: &str) -> Result<Url, HubError> {
        self.url(&[repo.owner(), repo.name(), "resolve", revision], path)
    }

    /// An address below the endpoint: segments as they are, then a path. Both are escaped.
    pub(super) fn url(&self, segments: &[&str], path: &str) -> Result<Url, HubError> {
        let mut url = self.endpoint.clone();
        url.path_segments_mut()
            .map_err(|()| HubError::Config {
                name: "HF_ENDPOINT",
                message: "it is no web address".to_owned(),
            })?
            .pop_if_empty()
            .extend(segments)
            .extend(path.split('/').filter(|part| !part.is_empty()));
        Ok(url)
    }

    /// Asks once. A token that is refused is left out once.
    pub(super) async fn ask(
        &self,
        config: &HubConfig,
        cancel: &CancelToken,
        question: &Question<'_>,
    ) -> Result<Answer, Failure> {
        let token = self.token_for(Some(question.repo));
        let first = match self.follow(config, cancel, question, token.as_ref()).await {
            Err(Failure::Refused(error)) => error,
            other => return other,
        };
        if token.is_none() {
            return Err(Failure::Fatal(first));
        }
        match self.follow(config, cancel, question, None).await {
            Ok(answer) => {
                self.goes_without_token(question.repo);
                Ok(answer)
            }
            // Nobody is let in: what the hub said to the token is what counts.
            Err(Failure::Refused(_) | Failure::Fatal(_)) => Err(Failure::Fatal(first)),
            Err(other) => Err(other),
        }
    }

    async fn follow(
        &self,
        config: &HubConfig,
        cancel: &CancelToken,
        question: &Question<'_>,
        token: Option<&Secret>,
    ) -> Result<Answer, Failure> {
        let client = self.client.as_ref().map_err(|e| Failure::Fatal(e.clone()))?;
        let what = question.what;
        let lost = |message: &str| {
            Failure::Fatal(HubError::Redirect {
                what: what.to_owned(),
                message: message.to_owned(),
            })
        };
        let mut url = question.url.clone();
        let mut metadata = Metadata::default();
        let mut seen = HashSet::new();
        for hop in 0..=MOST_REDIRECTS {
            if !seen.insert(url.clone()) {
                return Err(lost("they go in a circle"));
            }
            let host = url.host_str().unwrap_or_default().to_owned();
            let home = url.origin() == self.endpoint.origin();
            let mut request = client
                .request(question.method.clone(), url.clone())
                // Packed bytes have other offsets and another hash.
                .header(ACCEPT_ENCODING, "identity");
            if let Some(range) = &question.range {
                request = request.header(RANGE, range);
            }
            if let Some(token) = token.filter(|_| home) {
                request = request.bearer_auth(token.reveal());
            }
            let sent = tokio::select! {
                () = cancel.cancelled() => return Err(Failure::Fatal(HubError::Cancelled { kept: 0 })),
                sent = tokio::time::timeout(config.connect_timeout + config.stall, request.send()) => sent,
            };
            let response = match sent {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => return Err(no_answer(&error, &host, what, hop == 0)),
                Err(_elapsed) => return Err(stalled(&host, what)),
            };
            let status = response.status();
            if home {
                let later = Metadata::read(response.headers(), status.is_redirection());
                // What an error page says of itself is not about the file.
                if status.is_success() || status.is_redirection() {
                    metadata = metadata.or(later);
                }
            }
            if status.is_redirection() {
                if question.method == Method::HEAD && home && metadata.etag.is_some() {
                    return Ok(Answer {
                        response,
                        metadata,
                        host,
                    });
                }
                let to = headers::text(response.headers(), LOCATION.as_str()).and_then(|to| url.join(to).ok());
                let to = to.ok_or_else(|| lost("one names no address"))?;
                if !matches!(to.scheme(), "http" | "https") || (url.scheme() == "https" && to.scheme() == "http") {
                    return Err(lost("one leads to an address that is not safe"));
                }
                url = to;
                continue;
            }
            if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
                return Ok(Answer {
                    response,
                    metadata,
                    host,
                });
            }
            if status == StatusCode::RANGE_NOT_SATISFIABLE && question.range.is_some() {
                return Err(Failure::Unsatisfiable(headers::unsatisfied_total(response.headers())));
            }
            return Err(if home {
                self.refusal(status.as_u16(), response.headers(), question, token.is_some())
            } else {
                // A signed address that expired, a file host in trouble: the hub gives out a fresh address.
                miss_status(status.as_u16(), response.headers(), what)
            });
        }
        Err(lost("there are too many"))
    }
}

/// What is asked for.
pub(super) struct Question<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) repo: &'a RepoId,
    /// In error texts.
    pub(super) what: &'a str,
    pub(super) range: Option<String>,
}

/// A client as the configuration and the environment want it: proxies and the system's certificates are the library's
/// own doing (on Linux `SSL_CERT_FILE` takes these' place, as it does for other programs), and the certificates that the
/// environment names are believed besides.
pub(super) fn client(config: &HubConfig, redirects: redirect::Policy) -> Result<Client, HubError> {
    let mut builder = Client::builder()
        .user_agent(&config.user_agent)
        .redirect(redirects)
        .connect_timeout(config.connect_timeout)
        .read_timeout(config.stall)
        .tcp_keepalive(KEEP_ALIVE)
        // A shared connection that died during a sleep must not serve the next tries.
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE);
    for (name, path) in bundles(|name| std::env::var_os(name)) {
        let certificates = certificates(Path::new(&path)).map_err(|message| HubError::Config {
            name,
            message: format!("`{}`: {message}", path.display()),
        })?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(|e| HubError::Config {
        name: "network",
        message: cause(&e),
    })
}

/// The variables that are set.
fn bundles(variable: impl Fn(&str) -> Option<OsString>) -> impl Iterator<Item = (&'static str, OsString)> {
    let set = move |name| Some((name, variable(name).filter(|path| !path.is_empty())?));
    BUNDLES.into_iter().filter_map(set)
}

/// The certificates of a PEM file or, as `requests` allows too, of all such files in a folder.
fn certificates(path: &Path) -> Result<Vec<Certificate>, String> {
    let of = |path: &Path| {
        let text = std::fs::read(path).map_err(|e| e.to_string())?;
        Certificate::from_pem_bundle(&text).map_err(|e| e.to_string())
    };
    let found = if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|e| e.to_string())?;
        // Such folders hold other files too.
        let each = entries.flatten().filter_map(|entry| of(&entry.path()).ok());
        each.flatten().collect()
    } else {
        of(path)?
    };
    match found.is_empty() {
        true => Err("it holds no certificate".to_owned()),
        false => Ok(found),
    }
}

impl Http {
    /// What a status of the hub itself means.
    fn refusal(&self, status: u16, headers: &HeaderMap, question: &Question<'_>, token_sent: bool) -> Failure {
        match status {
            401 | 403 | 404 => {
                let code = headers::text(headers, "x-error-code").unwrap_or_default();
                let message = headers::text(headers, "x-error-message").unwrap_or_default();
                self.refused((status, code, message), question.repo, question.what, token_sent)
            }
            _ => miss_status(status, headers, question.what),
        }
    }

    /// What 401, 403 and 404 with the hub's own code and message mean. 401 says of a missing repository only that one may
    /// not see it.
    pub(super) fn refused(
        &self,
        (status, code, message): (u16, &str, &str),
        repo: &RepoId,
        what: &str,
        token_sent: bool,
    ) -> Failure {
        let not_found = |what: String| HubError::NotFound { what };
        Failure::Refused(match (code, status) {
            ("GatedRepo", _) => {
                let endpoint = self.endpoint.as_str().trim_end_matches('/');
                return Failure::Fatal(HubError::Gated {
                    repo: repo.to_string(),
                    url: format!("{endpoint}/{repo}"),
                });
            }
            ("RevisionNotFound" | "EntryNotFound", _) => return Failure::Fatal(not_found(what.to_owned())),
            ("RepoNotFound", _) => not_found(repo.to_string()),
            (_, 404) => return Failure::Fatal(not_found(what.to_owned())),
            (_, 401) => HubError::Unauthorized {
                what: what.to_owned(),
                token_sent,
            },
            _ => HubError::Forbidden {
                what: what.to_owned(),
                message: message
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(LONGEST_MESSAGE)
                    .collect(),
            },
        })
    }
}

fn miss_status(status: u16, headers: &HeaderMap, what: &str) -> Failure {
    let wait = headers::wait(headers, SystemTime::now());
    let error = match status {
        429 => HubError::RateLimited {
            seconds: wait.map_or(0, |wait| wait.as_secs()),
        },
        _ => HubError::Server {
            what: what.to_owned(),
            status,
        },
    };
    match status {
        400..=499 if !matches!(status, 400 | 401 | 403 | 404 | 408 | 410 | 416 | 425 | 429) => Failure::Fatal(error),
        _ => Failure::Miss(Miss {
            error,
            wait,
            gone: None,
        }),
    }
}

pub(super) fn stalled(host: &str, what: &str) -> Failure {
    Failure::Miss(Miss {
        error: HubError::Stalled {
            host: host.to_owned(),
            what: what.to_owned(),
        },
        wait: None,
        gone: None,
    })
}

/// What it means that no answer came; `first` is the hub itself.
pub(super) fn no_answer(error: &reqwest::Error, host: &str, what: &str, first: bool) -> Failure {
    let message = cause(error);
    let network = HubError::Network {
        host: host.to_owned(),
        what: what.to_owned(),
        message: message.clone(),
    };
    if error.is_builder() {
        return Failure::Fatal(HubError::Token {
            message: "it holds characters that no token has".to_owned(),
        });
    }
    // Neither gets better by waiting.
    if message.contains("certificate") {
        return Failure::Fatal(HubError::Certificate {
            host: host.to_owned(),
            message,
        });
    }
    if message.contains("proxy auth") {
        return Failure::Fatal(HubError::Config {
            name: "HTTPS_PROXY",
            message: format!("the proxy asks for a name and password ({message}); write them into its address"),
        });
    }
    if error.is_timeout() && !error.is_connect() {
        return stalled(host, what);
    }
    Failure::Miss(Miss {
        error: network,
        wait: None,
        gone: error
            .is_connect()
            .then_some(if first { Gone::Hub } else { Gone::FileHost }),
    })
}

/// The innermost cause: the outer ones repeat the address, which may be a signed one.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut text = None;
    let mut source = error.source();
    while let Some(inner) = source {
        text = Some(inner.to_string());
        source = inner.source();
    }
    text.unwrap_or_else(|| {
        if error.is_timeout() {
            "no answer in time"
        } else {
            "the connection failed"
        }
        .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_named_by_any_of_three_variables() {
        let set = |name: &str| match name {
            "SSL_CERT_FILE" => Some(OsString::new()),
            "REQUESTS_CA_BUNDLE" | "CURL_CA_BUNDLE" => Some(OsString::from("/x.pem")),
            _ => None,
        };
        let names: Vec<&str> = bundles(set).map(|(name, _)| name).collect();
        assert_eq!(names, ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]);
    }

    #[test]
    fn a_bundle_without_a_certificate_is_no_bundle() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        assert!(certificates(&file).unwrap_err().contains("No such file"));
        std::fs::write(&file, "none").unwrap();
        for path in [dir.path(), &file] {
            assert_eq!(certificates(path).unwrap_err(), "it holds no certificate");
        }
    }
}
