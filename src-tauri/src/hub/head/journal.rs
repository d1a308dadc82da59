//! A file that is written piece by piece and must be good after any end of the program.
//!
//! A journal beside it notes the hash of every stretch. What the journal does not vouch for is fetched again: the disk
//! may have kept the file's new length and lost its bytes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::hub::verify::{Hasher, hex};

/// Bytes between two notes; so many at most are fetched twice.
const STRETCH: u64 = 256 << 10;
/// More than a stretch and the bytes that came with its end.
const LONGEST: u64 = 64 << 20;

pub(super) struct Part {
    file: File,
    journal: File,
    at: u64,
    noted: u64,
    stretch: Sha256,
    whole: Sha256,
    /// As the hub counts, where the whole is a file of its own.
    hub: Option<Hasher>,
}

impl Part {
    /// Opens what is there as far as the journal vouches for it, or begins.
    pub(super) fn open(path: &Path, journal: &Path, hub: Option<Hasher>) -> Result<Self> {
        let open = |path: &Path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
        };
        let mut part = Part {
            file: open(path)?,
            journal: open(journal)?,
            at: 0,
            noted: 0,
            stretch: Sha256::new(),
            whole: Sha256::new(),
            hub,
        };
        let mut text = String::new();
        // A journal that is no text vouches for nothing.
        let _ = part.journal.read_to_string(&mut text);
        let mut good = 0;
        for line in text.split_inclusive('\n') {
            let Some(bytes) = part.vouched(line)? else { break };
            part.take(&bytes);
            part.noted = part.at;
            part.stretch = Sha256::new();
            good += line.len() as u64;
        }
        for (file, length) in [(&mut part.file, part.at), (&mut part.journal, good)] {
            file.set_len(length)?;
            file.seek(SeekFrom::Start(length))?;
        }
        Ok(part)
    }

    /// The bytes of a line's stretch, if they are what it says.
    fn vouched(&mut self, line: &str) -> Result<Option<Vec<u8>>> {
        let said = line.strip_suffix('\n').and_then(|line| line.split_once(' '));
        let Some((end, hash)) = said.and_then(|(end, hash)| Some((end.parse::<u64>().ok()?, hash))) else {
            return Ok(None);
        };
        let length = end.saturating_sub(self.at);
        if length == 0 || length > LONGEST {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.at))?;
        (&self.file).take(length).read_to_end(&mut bytes)?;
        let is_good = bytes.len() as u64 == length && hex(Sha256::digest(&bytes)) == hash;
        Ok(is_good.then_some(bytes))
    }

    /// Bytes that are there.
    pub(super) fn len(&self) -> u64 {
        self.at
    }

    /// More bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes)?;
        self.take(bytes);
        if self.at - self.noted >= STRETCH {
            self.note()
        } else {
            Ok(())
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        self.stretch.update(bytes);
        self.whole.update(bytes);
        if let Some(hub) = &mut self.hub {
            hub.update(bytes);
        }
    }

    /// Vouches for all that was written.
    pub(super) fn note(&mut self) -> Result<()> {
        if self.at > self.noted {
            let hash = hex(std::mem::take(&mut self.stretch).finalize());
            self.journal.write_all(format!("{} {hash}\n", self.at).as_bytes())?;
            self.noted = self.at;
        }
        Ok(())
    }

    /// Puts all on the disk. Gives SHA-256, and the hub's kind of hash where that was asked for.
    pub(super) fn finish(mut self) -> Result<(String, Option<String>)> {
        self.note()?;
        self.file.sync_all()?;
        Ok((hex(self.whole.finalize()), self.hub.map(Hasher::finish)))
    }
}

/// Bytes that a journal vouches for, by its last line.
pub(super) fn noted(journal: &Path) -> u64 {
    let text = std::fs::read_to_string(journal).unwrap_or_default();
    let line = text.rsplit_once('\n').and_then(|(lines, _)| lines.lines().last());
    let end = line
        .and_then(|line| line.split_once(' '))
        .and_then(|(end, _)| end.parse().ok());
    end.unwrap_or(0)
}
