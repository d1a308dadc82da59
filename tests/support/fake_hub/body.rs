//! What a file of the fake hub holds. Large bodies are computed where they are sent and never lie in memory.

use std::sync::Arc;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The bytes of a file.
#[derive(Clone, Debug)]
pub enum Body {
    Bytes(Arc<[u8]>),
    /// Byte i is `((i * 2654435761 + seed * 97) mod 2^32) >> 13 & 255`, as the shared cases have it.
    Formula {
        size: u64,
        seed: u64,
    },
    Zeros {
        size: u64,
    },
    /// A block over and over, for bodies that must be sent as fast as the machine can.
    Repeated {
        block: Arc<[u8]>,
        size: u64,
    },
}

impl Body {
    pub fn text(text: &str) -> Self {
        Body::Bytes(text.as_bytes().into())
    }

    pub fn formula(size: u64, seed: u64) -> Self {
        Body::Formula { size, seed }
    }

    /// A mebibyte of the formula again and again.
    pub fn repeated(size: u64, seed: u64) -> Self {
        let mut block = vec![0; 1 << 20];
        Body::formula(1 << 20, seed).fill(0, &mut block);
        Body::Repeated {
            block: block.into(),
            size,
        }
    }

    pub fn size(&self) -> u64 {
        match self {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Formula { size, .. } | Body::Zeros { size } | Body::Repeated { size, .. } => *size,
        }
    }

    /// The bytes from `at` on, as many as `out` takes.
    pub fn fill(&self, at: u64, out: &mut [u8]) {
        match self {
            Body::Bytes(bytes) => {
                let at = usize::try_from(at).unwrap();
                out.copy_from_slice(&bytes[at..at + out.len()]);
            }
            Body::Formula { seed, .. } => {
                // Modulo 2^32 the product of the low halves is all that counts.
                #[expect(clippy::cast_possible_truncation, reason = "the formula is one of 32 bits")]
                let (mut i, seed) = (at as u32, (*seed as u32).wrapping_mul(97));
                for byte in out {
                    *byte = (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13 & 255) as u8;
                    i = i.wrapping_add(1);
                }
            }
            Body::Zeros { .. } => out.fill(0),
            Body::Repeated { block, .. } => {
                let mut from = usize::try_from(at % block.len() as u64).unwrap();
                let mut done = 0;
                while done < out.len() {
                    let n = (block.len() - from).min(out.len() - done);
                    out[done..done + n].copy_from_slice(&block[from..from + n]);
                    (done, from) = (done + n, 0);
                }
            }
        }
    }

    /// All of it; for bodies that fit memory.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; usize::try_from(self.size()).unwrap()];
        self.fill(0, &mut out);
        out
    }

    fn feed(&self, mut take: impl FnMut(&[u8])) {
        let (mut at, size) = (0, self.size());
        let mut buffer = vec![0; 1 << 20];
        while at < size {
            let n = usize::try_from((size - at).min(buffer.len() as u64)).unwrap();
            self.fill(at, &mut buffer[..n]);
            take(&buffer[..n]);
            at += n as u64;
        }
    }

    /// The hash of a large file's pointer, in hex.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        self.feed(|bytes| hash.update(bytes));
        hex(&hash.finalize())
    }

    /// The hash that git gives the file, in hex.
    pub fn git_oid(&self) -> String {
        let mut hash = Sha1::new();
        hash.update(format!("blob {}\0", self.size()));
        self.feed(|bytes| hash.update(bytes));
        hex(&hash.finalize())
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A gzip stream of uncompressed blocks: what a client must undo or, better, not have asked for.
pub(super) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = data.chunks(0xffff).peekable();
    if data.is_empty() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap();
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(crc32(data).to_le_bytes());
    out.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
    out
}

fn crc32(data: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|byte| (0..8).fold(byte, |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1))))
        .collect();
    !data.iter().fold(!0, |crc: u32, byte| {
        let index = usize::from(crc.to_le_bytes()[0] ^ byte);
        (crc >> 8) ^ table[index]
    })
}
