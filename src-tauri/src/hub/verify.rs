//! Hashes of content, as the hub names it.

use std::fmt::Write;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Hashes a file as it comes.
#[derive(Clone)]
pub(super) enum Hasher {
    /// A large file's content.
    Sha256(Sha256),
    /// A small file as a git blob, which starts with its length.
    Git(Sha1),
}

impl Hasher {
    /// The kind of hash that `etag` is, for a file of `size` bytes; nothing if it is none that can be checked.
    pub(super) fn for_etag(etag: &str, size: u64) -> Option<Self> {
        if !etag.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        match etag.len() {
            64 => Some(Hasher::Sha256(Sha256::new())),
            40 => {
                let mut sha = Sha1::new();
                sha.update(format!("blob {size}\0"));
                Some(Hasher::Git(sha))
            }
            _ => None,
        }
    }

    /// More bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(sha) => sha.update(bytes),
            Hasher::Git(sha) => sha.update(bytes),
        }
    }

    /// The hash, as an etag.
    pub(super) fn finish(self) -> String {
        match self {
            Hasher::Sha256(sha) => hex(sha.finalize()),
            Hasher::Git(sha) => hex(sha.finalize()),
        }
    }
}

/// As etags are written.
pub(super) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(like: &str, bytes: &[u8]) -> String {
        let mut hasher = Hasher::for_etag(like, bytes.len() as u64).unwrap();
        for chunk in bytes.chunks(3) {
            hasher.update(chunk);
        }
        hasher.finish()
    }

    #[test]
    fn the_length_of_an_etag_tells_its_kind() {
        let sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(sha256, b""), sha256);
        // What `git hash-object` says of an empty file and of "hello\n".
        assert_eq!(hash(&"0".repeat(40), b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            hash(&"0".repeat(40), b"hello\n"),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        for other in ["", "abc", &"g".repeat(40), &"A".repeat(64), "../../x"] {
            assert!(Hasher::for_etag(other, 0).is_none(), "{other}");
        }
    }
}
