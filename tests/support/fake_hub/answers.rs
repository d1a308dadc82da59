//! What the hub answers to what.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::content::{Job, send};
use super::http::{Answer, Head, decode};
use super::{Blob, Contents, File, On, Repo, Request, Respond, State, lock};

/// What a request asks for, once rights and names are settled.
enum Found {
    Document(Value, Option<String>),
    /// A large file: where its bytes are.
    Elsewhere(Answer),
    Content(Blob, Answer),
    Refused(Answer),
}

/// Answers a request; whether the connection may go on.
pub(super) fn answer(state: &State, stream: &mut TcpStream, head: &Head, content_host: bool) -> std::io::Result<bool> {
    let authorization = head.header("authorization").map(str::to_owned);
    // Asked as a proxy, the hub stands for both hosts.
    let content_host = content_host || head.path().starts_with("/blob/");
    let on = kind(state, head, content_host);
    let request = Arc::new(Request {
        on,
        method: head.method.clone(),
        target: head.target.clone(),
        host: head.header("host").unwrap_or_default().into(),
        range: head.range(),
        authorization: authorization.clone(),
        content_host,
        at: Instant::now(),
        bytes: AtomicU64::new(0),
        held: AtomicBool::new(false),
    });
    lock(&state.log).push(Arc::clone(&request));
    let respond = state.take_rule(on, &head.target, authorization.is_some(), request.range.is_some());
    if respond.delay_ms > 0 && !state.wait(Duration::from_millis(respond.delay_ms)) {
        return Ok(false);
    }
    if respond.stands_alone() {
        let mut answer = Answer::new(respond.status.unwrap_or(200));
        for (name, value) in &respond.headers {
            answer = answer.header(name, value);
        }
        let text = respond.text.clone().unwrap_or_default();
        if on == On::Content && answer.status < 300 {
            request.bytes.store(text.len() as u64, Ordering::SeqCst);
        }
        return whole(state, stream, head, &respond, answer, text.as_bytes());
    }
    let found = {
        let contents = lock(&state.contents);
        if content_host {
            blob(&contents, head, &respond)
        } else {
            look_up(state, &contents, head, authorization.as_deref(), &respond)
        }
    };
    match found {
        Found::Document(document, link) => {
            let mut answer = Answer::new(200).header("Content-Type", "application/json; charset=utf-8");
            if let Some(link) = link {
                answer = answer.header("Link", link);
            }
            whole(state, stream, head, &respond, answer, document.to_string().as_bytes())
        }
        Found::Elsewhere(answer) | Found::Refused(answer) => whole(state, stream, head, &respond, answer, b""),
        Found::Content(blob, answer) => send(
            state,
            stream,
            Job {
                head,
                respond: &respond,
                request: &request,
                body: &blob.body,
                answer,
            },
        ),
    }
}

/// A body that is not a file's, in one piece.
fn whole(
    state: &State,
    stream: &mut TcpStream,
    head: &Head,
    respond: &Respond,
    answer: Answer,
    body: &[u8],
) -> std::io::Result<bool> {
    let answer = answer.header("Content-Length", body.len().to_string());
    write_header(state, stream, respond, &answer)?;
    if head.method != "HEAD" {
        stream.write_all(body)?;
    }
    Ok(true)
}

pub(super) fn write_header(
    state: &State,
    stream: &mut TcpStream,
    respond: &Respond,
    answer: &Answer,
) -> std::io::Result<()> {
    if respond.header_every_ms == 0 {
        return answer.write(stream);
    }
    for line in answer.lines() {
        stream.write_all(line.as_bytes())?;
        if !state.wait(Duration::from_millis(respond.header_every_ms)) {
            break;
        }
    }
    Ok(())
}

/// The parts of `/OWNER/NAME/resolve/REVISION/PATH`.
fn resolve(path: &str) -> Option<(String, String, String)> {
    let (id, rest) = path.strip_prefix('/')?.split_once("/resolve/")?;
    let (revision, file) = rest.split_once('/')?;
    Some((decode(id), decode(revision), decode(file)))
}

fn kind(state: &State, head: &Head, content_host: bool) -> On {
    let Some((id, _, file)) = resolve(head.path()).filter(|_| !content_host) else {
        return if content_host { On::Content } else { On::Api };
    };
    let contents = lock(&state.contents);
    let file = contents
        .repos
        .iter()
        .find(|repo| repo.id == id)
        .and_then(|repo| repo.file(&file));
    let carries_bytes = head.method == "GET" && file.is_some_and(|file| !file.lfs);
    if carries_bytes { On::Content } else { On::Resolve }
}

fn blob(contents: &Contents, head: &Head, respond: &Respond) -> Found {
    let blob = head
        .path()
        .strip_prefix("/blob/")
        .and_then(|etag| contents.blobs.get(etag));
    let Some(blob) = blob else {
        return Found::Refused(Answer::new(404));
    };
    let etag = respond.etag.clone().unwrap_or_else(|| format!("\"{}\"", blob.etag));
    let mut answer = Answer::new(200).header("ETag", etag).header("Accept-Ranges", "bytes");
    for (name, value) in &respond.headers {
        answer = answer.header(name, value);
    }
    Found::Content(blob.clone(), answer)
}

fn refused(status: u16, code: &str, message: &str) -> Found {
    Found::Refused(
        Answer::new(status)
            .header("X-Error-Code", code)
            .header("X-Error-Message", message),
    )
}

fn look_up(state: &State, contents: &Contents, head: &Head, authorization: Option<&str>, respond: &Respond) -> Found {
    let path = head.path();
    if path == "/api/models" {
        return Found::Document(search(contents, head), None);
    }
    let (id, rest) = match resolve(path) {
        Some((id, revision, file)) => (id, Asked::File(revision, file)),
        None => match api(path) {
            Some(asked) => asked,
            None => return Found::Refused(Answer::new(404)),
        },
    };
    let may = |tokens: &Option<Vec<String>>| {
        tokens.as_ref().is_none_or(|tokens| {
            let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
            token.is_some_and(|token| tokens.iter().any(|known| known == token))
        })
    };
    let Some(repo) = contents
        .repos
        .iter()
        .find(|repo| repo.id == id && may(&repo.private_but_for))
    else {
        // So the real hub does not tell a stranger what is there.
        return refused(
            if authorization.is_some() { 404 } else { 401 },
            "RepoNotFound",
            "Repository not found",
        );
    };
    let revision = match &rest {
        Asked::Info(revision) | Asked::Tree(revision) | Asked::Paths(revision) | Asked::File(revision, _) => revision,
    };
    if revision != "main" && *revision != repo.commit {
        return refused(404, "RevisionNotFound", &format!("Invalid rev id: {revision}"));
    }
    match rest {
        Asked::Info(_) => Found::Document(info(repo, head.query("blobs").is_some()), None),
        Asked::Tree(_) => tree(state, contents, repo, head),
        Asked::Paths(_) => Found::Document(paths(repo, head), None),
        Asked::File(_, path) => {
            if !may(&repo.gated_but_for) {
                let message = format!("Access to model {id} is restricted and you are not in the authorized list");
                return refused(if authorization.is_some() { 403 } else { 401 }, "GatedRepo", &message);
            }
            match repo.file(&path) {
                Some(file) => file_answer(state, repo, file, head, respond),
                None => refused(404, "EntryNotFound", "Entry not found"),
            }
        }
    }
}

enum Asked {
    Info(String),
    Tree(String),
    Paths(String),
    File(String, String),
}

/// What of a repository an address below `/api/models/` means.
fn api(path: &str) -> Option<(String, Asked)> {
    let rest = path.strip_prefix("/api/models/")?;
    for (word, asked) in [
        ("/revision/", Asked::Info as fn(String) -> Asked),
        ("/tree/", Asked::Tree),
        ("/paths-info/", Asked::Paths),
    ] {
        if let Some((id, revision)) = rest.split_once(word) {
            return Some((decode(id), asked(decode(revision.trim_end_matches('/')))));
        }
    }
    Some((decode(rest), Asked::Info("main".into())))
}

fn file_answer(state: &State, repo: &Repo, file: &File, head: &Head, respond: &Respond) -> Found {
    let etag = respond.etag.clone().unwrap_or_else(|| format!("\"{}\"", file.etag()));
    let mut answer = Answer::new(200)
        .header("X-Repo-Commit", &repo.commit)
        .header("ETag", &etag)
        .header("Accept-Ranges", "bytes");
    for (name, value) in &respond.headers {
        answer = answer.header(name, value);
    }
    if !file.lfs {
        let blob = Blob {
            body: file.body.clone(),
            etag: file.etag(),
        };
        return Found::Content(blob, answer);
    }
    answer.status = 302;
    let address = format!(
        "{}/blob/{}?X-Signature=signed-{}",
        state.content_url(),
        file.etag(),
        head.path().len()
    );
    Found::Elsewhere(
        answer
            .header("X-Linked-Etag", etag)
            .header("X-Linked-Size", file.body.size().to_string())
            .header("Location", address),
    )
}

/// A file as the listing has it.
fn sibling(file: &File, blobs: bool) -> Value {
    let (size, hash) = (file.body.size(), file.etag());
    let mut sibling = json!({ "rfilename": file.path });
    if blobs {
        sibling["size"] = json!(size);
        sibling["blobId"] = json!(if file.lfs {
            pointer_oid(&hash, size)
        } else {
            hash.clone()
        });
        if file.lfs {
            sibling["lfs"] = json!({ "sha256": hash, "size": size, "pointerSize": 134 });
        }
    }
    sibling
}

/// A file as the tree has it.
fn entry(file: &File) -> Value {
    let (size, hash) = (file.body.size(), file.etag());
    let mut entry = json!({
        "type": "file",
        "path": file.path,
        "size": size,
        "oid": if file.lfs { pointer_oid(&hash, size) } else { hash.clone() },
    });
    if file.lfs {
        entry["lfs"] = json!({ "oid": hash, "size": size, "pointerSize": 134 });
    }
    entry
}

/// Git's hash of the pointer that stands for a large file: a hash of something else than its bytes.
fn pointer_oid(sha256: &str, size: u64) -> String {
    super::Body::text(&format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
    ))
    .git_oid()
}

fn info(repo: &Repo, blobs: bool) -> Value {
    let gated = if repo.gated_but_for.is_some() {
        json!("manual")
    } else {
        json!(false)
    };
    json!({
        "_id": "000000000000000000000001",
        "id": repo.id,
        "modelId": repo.id,
        "author": repo.id.split('/').next(),
        "sha": repo.commit,
        "lastModified": "2026-01-01T00:00:00.000Z",
        "private": repo.private_but_for.is_some(),
        "gated": gated,
        "disabled": false,
        "tags": ["mlx", "license:apache-2.0"],
        "pipeline_tag": "text-generation",
        "library_name": "mlx",
        "downloads": 7,
        "likes": 3,
        "cardData": { "license": "apache-2.0" },
        "siblings": repo.files.iter().map(|file| sibling(file, blobs)).collect::<Vec<_>>(),
    })
}

fn tree(state: &State, contents: &Contents, repo: &Repo, head: &Head) -> Found {
    let from: usize = head.query("cursor").and_then(|n| n.parse().ok()).unwrap_or(0);
    let to = (from + contents.page).min(repo.files.len());
    let link = (to < repo.files.len()).then(|| {
        format!(
            "<{}{}?recursive=true&cursor={to}>; rel=\"next\"",
            state.url(),
            head.path()
        )
    });
    Found::Document(repo.files[from..to].iter().map(entry).collect(), link)
}

/// The chosen files, asked for in a form or in JSON.
fn paths(repo: &Repo, head: &Head) -> Value {
    let text = String::from_utf8_lossy(&head.body);
    let wanted: Vec<String> = match serde_json::from_str::<Value>(&text) {
        Ok(form) => form["paths"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|path| path.as_str().map(str::to_owned))
            .collect(),
        Err(_) => text
            .split('&')
            .filter_map(|pair| pair.strip_prefix("paths="))
            .map(|path| decode(&path.replace('+', " ")))
            .collect(),
    };
    repo.files
        .iter()
        .filter(|file| wanted.contains(&file.path))
        .map(entry)
        .collect()
}

fn search(contents: &Contents, head: &Head) -> Value {
    let wanted = head.query("search").unwrap_or_default().to_lowercase();
    let limit = head.query("limit").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    contents
        .repos
        .iter()
        .filter(|repo| repo.private_but_for.is_none() && repo.id.to_lowercase().contains(&wanted))
        .take(limit)
        .map(|repo| info(repo, false))
        .collect()
}
