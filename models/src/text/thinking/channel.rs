//! One of the two texts that are shown.

use std::collections::VecDeque;

use super::Stretch;

/// Collects text and hands out what is new. Line breaks before the text and white space after it are left out unless the
/// channel is exact.
#[derive(Debug)]
pub(super) struct Channel {
    text: String,
    /// White space that is shown only if more text follows.
    trailing: String,
    taken: usize,
    /// Where `text` from `taken` on, and then `trailing`, stand in the output.
    sources: VecDeque<Stretch>,
    /// Where what was taken stands, until that is asked for.
    taken_sources: Vec<Stretch>,
    is_exact: bool,
}

impl Channel {
    pub(super) fn exact() -> Channel {
        Channel {
            text: String::new(),
            trailing: String::new(),
            taken: 0,
            sources: VecDeque::new(),
            taken_sources: Vec::new(),
            is_exact: true,
        }
    }

    pub(super) fn trimmed() -> Channel {
        Channel {
            is_exact: false,
            ..Channel::exact()
        }
    }

    /// Takes more text, which stands at `source` in the output.
    pub(super) fn push(&mut self, text: &str, source: usize) {
        add(&mut self.sources, source, text.len());
        if self.is_exact {
            self.text.push_str(text);
            return;
        }
        let solid = text.trim_end().len();
        if solid > 0 {
            self.trailing.push_str(&text[..solid]);
            let run = std::mem::take(&mut self.trailing);
            if self.text.is_empty() {
                let shown = run.trim_start_matches(['\n', '\r']);
                drop(cut(&mut self.sources, run.len() - shown.len()));
                self.text.push_str(shown);
            } else {
                self.text.push_str(&run);
            }
        }
        self.trailing.push_str(&text[solid..]);
    }

    /// What has become visible since the last call.
    pub(super) fn take(&mut self) -> String {
        let new = self.text[self.taken..].to_owned();
        self.taken = self.text.len();
        self.taken_sources.extend(cut(&mut self.sources, new.len()));
        new
    }

    /// Where what was taken since the last call stands in the output.
    pub(super) fn take_sources(&mut self) -> Vec<Stretch> {
        std::mem::take(&mut self.taken_sources)
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

fn add(sources: &mut VecDeque<Stretch>, at: usize, bytes: usize) {
    match sources.back_mut().filter(|last| last.at + last.bytes == at) {
        Some(last) => last.bytes += bytes,
        None if bytes > 0 => sources.push_back(Stretch { at, bytes }),
        None => {}
    }
}

/// The first `bytes` of them.
fn cut(sources: &mut VecDeque<Stretch>, mut bytes: usize) -> Vec<Stretch> {
    let mut front = Vec::new();
    while bytes > 0
        && let Some(first) = sources.front_mut()
    {
        let n = bytes.min(first.bytes);
        front.push(Stretch { at: first.at, bytes: n });
        (first.at, first.bytes, bytes) = (first.at + n, first.bytes - n, bytes - n);
        if first.bytes == 0 {
            sources.pop_front();
        }
    }
    front
}
