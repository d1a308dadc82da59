//! One of the two texts that are shown.

/// Collects text and hands out what is new. Line breaks before the text and white space after it are left out unless the
/// channel is exact.
#[derive(Debug)]
pub(super) struct Channel {
    text: String,
    /// White space that is shown only if more text follows.
    trailing: String,
    taken: usize,
    is_exact: bool,
}

impl Channel {
    pub(super) fn exact() -> Channel {
        Channel {
            text: String::new(),
            trailing: String::new(),
            taken: 0,
            is_exact: true,
        }
    }

    pub(super) fn trimmed() -> Channel {
        Channel {
            is_exact: false,
            ..Channel::exact()
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        if self.is_exact {
            self.text.push_str(text);
            return;
        }
        let solid = text.trim_end().len();
        if solid > 0 {
            self.trailing.push_str(&text[..solid]);
            let run = std::mem::take(&mut self.trailing);
            self.text.push_str(if self.text.is_empty() {
                run.trim_start_matches(['\n', '\r'])
            } else {
                &run
            });
        }
        self.trailing.push_str(&text[solid..]);
    }

    /// What has become visible since the last call.
    pub(super) fn take(&mut self) -> String {
        let new = self.text[self.taken..].to_owned();
        self.taken = self.text.len();
        new
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
