//! A stretch of a file, without the rest.

use std::ops::Range;
use std::time::Instant;

use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE};
use reqwest::{Method, StatusCode};

use super::fetch::{Floor, unchanged};
use super::http::{Answer, Failure, Question, cause};
use super::retry::{Miss, Patience};
use super::{CancelToken, Hub, HubConfig, HubError, PartFile, WaitReason, headers};

/// What takes the bytes.
type Sink<'a> = &'a mut (dyn FnMut(&[u8]) -> Result<(), HubError> + Send);

/// How a stretch is fetched.
#[derive(Clone, Copy)]
pub(super) struct Manner<'a> {
    /// How patiently.
    pub(super) config: &'a HubConfig,
    /// Hears why nothing comes, each time that nothing does.
    pub(super) waiting: &'a (dyn Fn(WaitReason) + Send + Sync),
    pub(super) cancel: &'a CancelToken,
}

impl Hub {
    pub(super) async fn stretch(
        &self,
        file: &PartFile,
        bytes: Range<u64>,
        sink: Sink<'_>,
        manner: Manner<'_>,
    ) -> Result<(), HubError> {
        if let Some(size) = file.size.filter(|size| bytes.end > *size) {
            return Err(HubError::LengthMismatch {
                file: file.path.clone(),
                expected: bytes.end,
                found: size,
            });
        }
        if self.config().offline {
            return Err(HubError::Offline {
                what: format!("{}/{}", file.repo, file.path),
            });
        }
        let mut at = bytes.start;
        let mut patience = Patience::default();
        while at < bytes.end {
            let before = at;
            let missed = self.some(file, &mut at, bytes.end, sink, manner).await?;
            patience.moved(at - before);
            let Some(miss) = missed else { continue };
            let reason = WaitReason::of(&miss);
            let pause = patience.missed(manner.config, miss)?;
            (manner.waiting)(reason);
            tokio::select! {
                () = manner.cancel.cancelled() => return Err(HubError::Cancelled { kept: 0 }),
                () = tokio::time::sleep(pause) => {}
            }
        }
        Ok(())
    }

    /// One request; `at` moves with each byte that is handed on.
    async fn some(
        &self,
        file: &PartFile,
        at: &mut u64,
        end: u64,
        sink: Sink<'_>,
        Manner { config, cancel, .. }: Manner<'_>,
    ) -> Result<Option<Miss>, HubError> {
        let question = Question {
            method: Method::GET,
            url: self.http().resolve_url(&file.repo, &file.commit, &file.path)?,
            repo: &file.repo,
            what: &file.path,
            range: Some(format!("bytes={at}-{}", end - 1)),
        };
        let mut answer = match self.http().ask(config, cancel, &question).await {
            Ok(answer) => answer,
            Err(Failure::Fatal(error) | Failure::Refused(error)) => return Err(error),
            Err(Failure::Miss(miss)) => return Ok(Some(miss)),
            Err(Failure::Unsatisfiable(_)) => return Ok(Some(no_ranges(file, "it refuses the range"))),
        };
        if let Some(etag) = &file.etag {
            unchanged(&answer.metadata, &file.path, etag, &file.commit)?;
        }
        if let Err(message) = starts_at(&answer, *at, file.size) {
            return Ok(Some(no_ranges(file, message)));
        }
        let mut floor = Floor::new(config.floor, config.floor_window);
        while *at < end {
            let chunk = tokio::select! {
                () = cancel.cancelled() => return Err(HubError::Cancelled { kept: 0 }),
                chunk = tokio::time::timeout(config.stall, answer.response.chunk()) => chunk,
            };
            let stalled = HubError::Stalled {
                host: answer.host.clone(),
                what: file.path.clone(),
            };
            let network = |message: String| HubError::Network {
                host: answer.host.clone(),
                what: file.path.clone(),
                message,
            };
            let chunk = match chunk {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(Some(missed(network(format!("the connection ended at byte {at}"))))),
                Ok(Err(error)) if error.is_timeout() => return Ok(Some(missed(stalled))),
                Ok(Err(error)) => return Ok(Some(missed(network(cause(&error))))),
                Err(_elapsed) => return Ok(Some(missed(stalled))),
            };
            let wanted = usize::try_from(end - *at).map_or(chunk.len(), |left| left.min(chunk.len()));
            let blocked = Instant::now();
            sink(&chunk[..wanted])?;
            *at += wanted as u64;
            if *at < end && floor.is_too_slow(wanted as u64, blocked.elapsed(), Instant::now()) {
                return Ok(Some(missed(stalled)));
            }
        }
        Ok(None)
    }
}

/// Whether the body's first byte is the one asked for. A whole file is only good for its beginning: reading on to
/// somewhere inside would fetch what is not wanted.
fn starts_at(answer: &Answer, at: u64, size: Option<u64>) -> Result<(), &'static str> {
    let headers = answer.response.headers();
    if headers::text(headers, CONTENT_ENCODING.as_str()).is_some_and(|packed| !matches!(packed, "" | "identity")) {
        return Err("it sends packed bytes");
    }
    if answer.response.status() != StatusCode::PARTIAL_CONTENT {
        return if at == 0 {
            Ok(())
        } else {
            Err("it sends the whole file to a request for a part")
        };
    }
    match headers::text(headers, CONTENT_RANGE.as_str()).and_then(headers::content_range) {
        Some(range) if range.total.zip(size).is_some_and(|(total, size)| total != size) => Err("its length is another"),
        Some(range) if range.first == at => Ok(()),
        _ => Err("it sends another range than asked for"),
    }
}

fn missed(error: HubError) -> Miss {
    Miss {
        error,
        wait: None,
        gone: None,
    }
}

fn no_ranges(file: &PartFile, message: &str) -> Miss {
    missed(HubError::Range {
        file: file.path.clone(),
        message: message.to_owned(),
    })
}
