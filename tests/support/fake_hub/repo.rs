//! Repositories of the fake hub.

use std::path::{Path, PathBuf};

use super::Body;

/// A commit for repositories of which a test needs only one.
pub const COMMIT: &str = "c0ffee0000000000000000000000000000000000";

/// A file of a repository.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub body: Body,
    /// Kept as a large file: on the other host, under its SHA-256.
    pub lfs: bool,
    /// SHA-256 of a large file, git's hash of a small one.
    hash: String,
}

impl File {
    /// A checkpoint's files, its weights kept as large ones.
    pub fn all_in(folder: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let file = |path: PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let body = Body::Bytes(std::fs::read(&path).unwrap().into());
            match name.ends_with(".safetensors") {
                true => File::large(&name, body),
                false => File::git(&name, body),
            }
        };
        entries.map(|entry| file(entry.unwrap().path())).collect()
    }

    /// A small file, kept in git.
    pub fn small(path: &str, text: &str) -> Self {
        Self::git(path, Body::text(text))
    }

    pub fn git(path: &str, body: Body) -> Self {
        File {
            path: path.into(),
            hash: body.git_oid(),
            body,
            lfs: false,
        }
    }

    /// A large file.
    pub fn large(path: &str, body: Body) -> Self {
        let hash = body.sha256();
        Self::large_hashed(path, body, &hash)
    }

    /// A large file whose hash is known or, for a test, wrong.
    pub fn large_hashed(path: &str, body: Body, sha256: &str) -> Self {
        File {
            path: path.into(),
            body,
            lfs: true,
            hash: sha256.into(),
        }
    }

    /// The hash under which hub and cache keep the file.
    pub fn etag(&self) -> String {
        self.hash.clone()
    }
}

/// A repository with one branch, `main`.
#[derive(Clone, Debug)]
pub struct Repo {
    pub id: String,
    pub commit: String,
    pub files: Vec<File>,
    /// A licence must be accepted; only these tokens' owners have.
    pub gated_but_for: Option<Vec<String>>,
    /// Does not exist for others than these tokens' owners.
    pub private_but_for: Option<Vec<String>>,
}

impl Repo {
    pub fn new(id: &str, files: impl IntoIterator<Item = File>) -> Self {
        Repo {
            id: id.into(),
            commit: COMMIT.into(),
            files: files.into_iter().collect(),
            gated_but_for: None,
            private_but_for: None,
        }
    }

    pub fn commit(mut self, commit: &str) -> Self {
        self.commit = commit.into();
        self
    }

    pub fn gated_but_for(mut self, tokens: &[&str]) -> Self {
        self.gated_but_for = Some(tokens.iter().map(|&token| token.into()).collect());
        self
    }

    pub fn private_but_for(mut self, tokens: &[&str]) -> Self {
        self.private_but_for = Some(tokens.iter().map(|&token| token.into()).collect());
        self
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}
