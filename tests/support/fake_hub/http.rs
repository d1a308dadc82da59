//! As much of HTTP/1.1 as a hub needs, by hand: every fault is a matter of single bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request as it came.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: String,
    /// Path and query; a proxy's absolute form is cut down to them.
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Head {
    /// The next request; `None` when the client has hung up.
    pub(super) fn read(reader: &mut BufReader<TcpStream>) -> Option<Head> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let target = match target.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => target,
        }
        .to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut head = Head {
            method,
            target,
            headers,
            body: Vec::new(),
        };
        let length = head.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
        head.body = vec![0; length];
        reader.read_exact(&mut head.body).ok()?;
        Some(head)
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub(super) fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(n, _)| *n == name)
            .map(|(_, v)| decode(&v.replace('+', " ")))
    }

    /// First and last byte asked for.
    pub(super) fn range(&self) -> Option<(u64, Option<u64>)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()))
    }
}

/// Undoes `%xx`.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut i) = (Vec::new(), 0);
    while i < bytes.len() {
        let code = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(code.unwrap_or(bytes[i]));
        i += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What goes before a body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
}

impl Answer {
    pub(super) fn new(status: u16) -> Self {
        Answer {
            status,
            headers: Vec::new(),
        }
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The header's lines, each with its end.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status))];
        lines.extend(self.headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")));
        lines.push("\r\n".into());
        lines
    }

    pub(super) fn write(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.write_all(self.lines().concat().as_bytes())
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Other",
    }
}
