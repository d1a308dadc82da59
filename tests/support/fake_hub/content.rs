//! Sends the bytes of a file, and stops where a fault says.

use std::borrow::Cow;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::answers::write_header;
use super::body::gzip;
use super::http::{Answer, Head};
use super::{Body, Request, Respond, State, lock};

const STEP: u64 = 256 << 10;

/// An answer that carries bytes.
pub(super) struct Job<'a> {
    pub head: &'a Head,
    pub respond: &'a Respond,
    pub request: &'a Request,
    pub body: &'a Body,
    /// What the header says beside the length.
    pub answer: Answer,
}

/// Counts the answers that are under way.
struct Busy<'a>(&'a State);

impl<'a> Busy<'a> {
    fn new(state: &'a State) -> Self {
        let now = state.busy.fetch_add(1, Ordering::SeqCst) + 1;
        state.busiest.fetch_max(now, Ordering::SeqCst);
        Busy(state)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether the connection may go on.
pub(super) fn send(state: &State, stream: &mut TcpStream, job: Job<'_>) -> std::io::Result<bool> {
    let Job {
        head,
        respond,
        request,
        body,
        mut answer,
    } = job;
    let there = body.size().min(respond.truncate.unwrap_or(u64::MAX)) + respond.longer;
    let (mut start, mut end) = (0, there);
    if let Some((first, last)) = request.range.filter(|_| !respond.ignore_range) {
        if first >= there {
            answer = answer
                .header("Content-Range", format!("bytes */{there}"))
                .header("Content-Length", "0");
            answer.status = 416;
            write_header(state, stream, respond, &answer)?;
            return Ok(true);
        }
        start = respond.serve_from.unwrap_or(first);
        end = last.map_or(there, |last| there.min(last + 1));
        answer.status = 206;
        answer = answer.header("Content-Range", format!("bytes {start}-{}/{there}", end - 1));
    }
    let accepted = head.header("accept-encoding").is_some_and(|e| e.contains("gzip"));
    let packed = (respond.gzip || respond.gzip_if_accepted && accepted)
        .then(|| gzip(&body.bytes()[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()]));
    if packed.is_some() {
        answer = answer.header("Content-Encoding", "gzip");
    }
    let length = packed.as_ref().map_or(end - start, |packed| packed.len() as u64);
    answer = if respond.chunked {
        answer.header("Transfer-Encoding", "chunked")
    } else {
        answer.header("Content-Length", length.to_string())
    };
    let _busy = (head.method == "GET").then(|| Busy::new(state));
    write_header(state, stream, respond, &answer)?;
    if head.method == "HEAD" {
        return Ok(true);
    }
    let (hold, speed) = {
        let contents = lock(&state.contents);
        (contents.hold_after, contents.speed)
    };
    let stall = respond.stall_at.or(hold.map(|byte| byte.saturating_sub(start)));
    let limit = length
        .min(respond.cut_at.unwrap_or(u64::MAX))
        .min(stall.unwrap_or(u64::MAX));
    let step = respond
        .trickle
        .map_or(speed.map_or(STEP, |speed| (speed / 50).clamp(1, STEP)), |trickle| {
            trickle.bytes.max(1)
        });
    let began = Instant::now();
    let mut position = 0;
    let mut buffer = vec![0; usize::try_from(step.min(length).max(1)).unwrap()];
    while position < limit {
        let n = step.min(limit - position);
        let piece: Cow<'_, [u8]> = match &packed {
            Some(packed) => packed[usize::try_from(position).unwrap()..][..usize::try_from(n).unwrap()].into(),
            None => {
                let piece = &mut buffer[..usize::try_from(n).unwrap()];
                fill(body, respond, start + position, piece);
                (&*piece).into()
            }
        };
        request.bytes.store(position + n, Ordering::SeqCst);
        if respond.chunked {
            stream.write_all(format!("{n:x}\r\n").as_bytes())?;
        }
        stream.write_all(&piece)?;
        if respond.chunked {
            stream.write_all(b"\r\n")?;
        }
        position += n;
        let pause = match (respond.trickle, speed) {
            (Some(trickle), _) => Duration::from_millis(trickle.every_ms),
            #[expect(clippy::cast_precision_loss, reason = "a pause")]
            (None, Some(speed)) => {
                Duration::from_secs_f64(position as f64 / speed as f64).saturating_sub(began.elapsed())
            }
            (None, None) => continue,
        };
        if !state.wait(pause) {
            return Ok(false);
        }
    }
    if limit == length {
        if respond.chunked {
            stream.write_all(b"0\r\n\r\n")?;
        }
        return Ok(true);
    }
    request.held.store(true, Ordering::SeqCst);
    if stall == Some(limit) {
        state.wait(Duration::from_secs(120));
    }
    Ok(false)
}

/// Bytes of the file as the fault has it.
fn fill(body: &Body, respond: &Respond, at: u64, out: &mut [u8]) {
    let real = usize::try_from(body.size().saturating_sub(at)).map_or(out.len(), |n| n.min(out.len()));
    body.fill(at.min(body.size()), &mut out[..real]);
    out[real..].fill(b'+');
    if let Some(index) = respond
        .flip
        .and_then(|flip| flip.checked_sub(at))
        .and_then(|i| usize::try_from(i).ok())
        && let Some(byte) = out.get_mut(index)
    {
        *byte ^= 0xff;
    }
}
