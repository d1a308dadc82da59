//! Files that go with a message: what they are, and the text of those that are text. PDFs are read by the window.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::ipc::PickedPdf;

/// More than fits any context, and less than the window can show.
const LONGEST_TEXT: u64 = 4 << 20;
/// Pictures make most of a PDF; more than this is held up by reading alone.
const LONGEST_PDF: u64 = 64 << 20;
/// How far from the start of a file its readers look for `%PDF-`.
const PDF_WITHIN: usize = 1024;

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, as the model reads it.
    Text(String),
    /// A PDF.
    Pdf,
}

/// The PDFs that the person picked and the window has not read yet: it reads no other file.
#[derive(Clone, Default)]
pub(crate) struct PickedPdfs(Arc<Mutex<(u32, HashMap<u32, PathBuf>)>>);

impl PickedPdfs {
    /// Remembers one.
    pub(crate) fn add(&self, path: &Path) -> PickedPdf {
        let mut picked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        picked.0 = picked.0.wrapping_add(1);
        let id = picked.0;
        picked.1.insert(id, path.to_owned());
        PickedPdf { id, name: name(path) }
    }

    /// Its bytes, once.
    pub(crate) fn take(&self, id: u32) -> Result<Vec<u8>, Error> {
        let path = self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&id);
        let path = path.ok_or(Error::NotPicked)?;
        bytes_of(&path)
    }
}

/// What the person dropped on the window and the window has not asked for yet: it gets to see no other path.
#[derive(Clone, Default)]
pub(crate) struct DroppedPaths(Arc<Mutex<Vec<PathBuf>>>);

impl DroppedPaths {
    /// Remembers the last drop.
    pub(crate) fn note(&self, paths: &[PathBuf]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = paths.to_vec();
    }

    /// Those of `wanted` that were dropped, once.
    pub(crate) fn take(&self, wanted: &[PathBuf]) -> Vec<PathBuf> {
        let dropped = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        dropped.into_iter().filter(|path| wanted.contains(path)).collect()
    }
}

/// A file's name without its folder.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Finds out what a file is, and reads it if it is text.
pub(crate) fn read(path: &Path) -> Result<Kind, Error> {
    let bytes = bytes_of(path)?;
    if is_pdf(&bytes) {
        return Ok(Kind::Pdf);
    }
    let refused = |(message, instead)| refused(path, message, instead);
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(refused(("it is larger than 4 MB", "attach the part that matters")));
    }
    // The window counts line ends as one character.
    Ok(Kind::Text(decoded(bytes).map_err(refused)?.replace("\r\n", "\n")))
}

/// A file that is no longer than anything that can be attached.
fn bytes_of(path: &Path) -> Result<Vec<u8>, Error> {
    let unread = |source| Error::File {
        path: path.display().to_string(),
        source,
    };
    if std::fs::metadata(path).map_err(unread)?.len() > LONGEST_PDF {
        return Err(refused(path, "it is larger than 64 MB", "attach the part that matters"));
    }
    std::fs::read(path).map_err(unread)
}

fn refused(path: &Path, message: &'static str, instead: &'static str) -> Error {
    Error::Attach {
        path: path.display().to_string(),
        message,
        instead,
    }
}

fn is_pdf(bytes: &[u8]) -> bool {
    bytes.iter().take(PDF_WITHIN).copied().collect::<Vec<_>>().windows(5).any(|five| five == b"%PDF-")
        // A text that speaks of PDFs is none.
        && (bytes.starts_with(b"%PDF-") || bytes.contains(&0) || std::str::from_utf8(bytes).is_err())
}

/// The text of bytes in UTF-8, or in UTF-16 with its mark; else what is wrong and what to do.
fn decoded(bytes: Vec<u8>) -> Result<String, (&'static str, &'static str)> {
    match bytes.as_slice() {
        // UTF-32 begins like UTF-16.
        [0xff, 0xfe, 0, 0, ..] => Err(("it is text in UTF-32", SAVE)),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => {
            if let Some(reason) = known(&bytes) {
                return Err(reason);
            }
            let text = String::from_utf8(bytes).map_err(|error| {
                if error.as_bytes().contains(&0) {
                    BINARY
                } else {
                    ("it is not text in UTF-8 or UTF-16", SAVE)
                }
            })?;
            if text.contains('\0') {
                return Err(BINARY);
            }
            // A mark that says it is UTF-8 is no text.
            Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
        }
    }
}

const SAVE: &str = "open it in the program that made it and save it as UTF-8";
const BINARY: (&str, &str) = ("it is not text", "attach a text file, or a PDF with text");

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, (&'static str, &'static str)> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match text {
        Ok(text) if odd.is_empty() => Ok(text),
        _ => Err(("it begins as text in UTF-16 and is damaged", SAVE)),
    }
}

/// Kinds of files that people take for text.
fn known(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let picture = (
        "it is a picture, and these models read text alone",
        "attach a text file, or a PDF with text",
    );
    match bytes {
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some((
            "it is an archive, or a document of an office program",
            "save the document as PDF or as plain text",
        )),
        [0xd0, 0xcf, 0x11, 0xe0, ..] => Some((
            "it is a document of an old office program",
            "save the document as PDF or as plain text",
        )),
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] | [b'G', b'I', b'F', b'8', ..] => Some(picture),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(picture),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Result<Kind, Error> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a file.txt");
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    }

    fn text(bytes: &[u8]) -> String {
        match of(bytes).unwrap() {
            Kind::Text(text) => text,
            Kind::Pdf => panic!("taken for a PDF"),
        }
    }

    fn units(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn text_is_read_whatever_its_marks() {
        assert_eq!(text("\u{feff}a;b\r\n1;2\r\n".as_bytes()), "a;b\n1;2\n");
        assert_eq!(text("天気 👩‍👩‍👧 é".as_bytes()), "天気 👩‍👩‍👧 é");
        assert_eq!(
            text(&units("\u{feff}Größe, 天気 👋\r\n", u16::to_le_bytes)),
            "Größe, 天気 👋\n"
        );
        assert_eq!(
            text(&units("\u{feff}Größe, 天気 👋", u16::to_be_bytes)),
            "Größe, 天気 👋"
        );
        assert_eq!(text(b""), "");
        assert_eq!(text(b"A PDF begins with %PDF-1.7.\n"), "A PDF begins with %PDF-1.7.\n");
    }

    #[test]
    fn what_is_no_text_is_refused_by_its_name_and_kind() {
        let damaged_wide = [0xff, 0xfe, 0x00, 0xd8, 0x41, 0x00];
        let odd_wide = [0xfe, 0xff, 0x00, 0x41, 0x00];
        let cases: [(&[u8], &str); 9] = [
            (b"a\0b", "not text"),
            (&[0x7f, b'E', b'L', b'F', 0, 0xff], "not text"),
            (b"Gr\xf6\xdfe", "UTF-8 or UTF-16"),
            (&damaged_wide, "damaged"),
            (&odd_wide, "damaged"),
            (&[0xff, 0xfe, 0, 0, 0x41, 0, 0, 0], "UTF-32"),
            (b"PK\x03\x04\x14\0", "office"),
            (b"\x89PNG\r\n\x1a\n", "picture"),
            (&vec![b'a'; (LONGEST_TEXT + 1) as usize], "4 MB"),
        ];
        for (bytes, reason) in cases {
            let error = of(bytes).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("a file.txt") && said.contains(reason), "{said}");
            assert!(crate::ipc::AppError::from(error).hint.is_some(), "{said}");
        }
    }

    #[test]
    fn a_pdf_is_known_by_what_it_holds_and_given_out_once() {
        assert_eq!(of(b"%PDF-1.7\n").unwrap(), Kind::Pdf);
        assert_eq!(of(b"\0junk before it\n%PDF-1.4\n").unwrap(), Kind::Pdf);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.pdf");
        std::fs::write(&path, b"%PDF-1.7\n").unwrap();
        let picked = PickedPdfs::default();
        let pdf = picked.add(&path);
        assert_eq!(pdf.name, "b.pdf");
        assert_eq!(picked.take(pdf.id).unwrap(), b"%PDF-1.7\n");
        assert!(matches!(picked.take(pdf.id), Err(Error::NotPicked)));
    }

    #[test]
    fn a_pdf_that_is_too_large_is_refused_unread() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.pdf");
        std::fs::File::create(&path).unwrap().set_len(LONGEST_PDF + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("64 MB"));
    }
}
