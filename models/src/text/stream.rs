//! Tokens to text that may be shown at once.

use std::ops::ControlFlow;

use super::stops::StopMatcher;

/// Turns the bytes of tokens into text, without ever showing part of a character or of a stop string.
///
/// Bytes become text as lossy UTF-8: one U+FFFD for each maximal ill-formed run, nothing normalised, nothing dropped. The
/// first stop string to complete ends the text and is no part of it; of two that complete together the longer counts. It
/// makes no difference how the tokens were grouped when they were made: push them one by one.
#[derive(Debug)]
pub struct TextStream {
    matcher: StopMatcher,
    /// Up to three bytes of a character that is not complete.
    open: Vec<u8>,
    /// Text that may become a stop string.
    held: String,
    stop: Option<String>,
    used_tokens: usize,
}

impl TextStream {
    /// A stream that ends at one of `stops`; empty ones are ignored.
    #[must_use]
    pub fn new(stops: &[String]) -> TextStream {
        TextStream {
            matcher: StopMatcher::new(stops),
            open: Vec::new(),
            held: String::new(),
            stop: None,
            used_tokens: 0,
        }
    }

    /// Takes the bytes of the next token, which is not an end token, and appends to `shown` what may be shown now.
    ///
    /// `Break` says that this token completed a stop string: it is the last one to keep, and what was generated after it
    /// must be dropped. Pushing more has no effect.
    pub fn push(&mut self, piece: &[u8], shown: &mut String) -> ControlFlow<()> {
        if self.stop.is_some() {
            return ControlFlow::Break(());
        }
        self.used_tokens += 1;
        let before = self.held.len();
        self.decode(piece);
        for at in before..self.held.len() {
            if let Some(len) = self.matcher.step(self.held.as_bytes()[at]) {
                let start = at + 1 - len;
                shown.push_str(&self.held[..start]);
                self.stop = Some(self.held[start..=at].to_owned());
                self.held.clear();
                self.open.clear();
                return ControlFlow::Break(());
            }
        }
        let free = self.held.len() - self.matcher.held();
        shown.extend(self.held.drain(..free));
        ControlFlow::Continue(())
    }

    /// Ends the text otherwise than by a stop string: what was held back is text, an incomplete character is dropped.
    pub fn finish(&mut self, shown: &mut String) {
        shown.push_str(&std::mem::take(&mut self.held));
        self.open.clear();
    }

    /// Whether no character is incomplete.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.open.is_empty()
    }

    /// The stop string that ended the text.
    #[must_use]
    pub fn stop(&self) -> Option<&str> {
        self.stop.as_deref()
    }

    /// Tokens that belong to the text, the one that completed a stop string included.
    #[must_use]
    pub fn used_tokens(&self) -> usize {
        self.used_tokens
    }

    /// Bytes of text that are held back as they may become a stop string.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// How the bytes of a token would read if it came next, alone: what is open before it is completed.
    #[must_use]
    pub fn reading(&self, piece: &[u8]) -> String {
        String::from_utf8_lossy(&[self.open.as_slice(), piece].concat()).into_owned()
    }

    fn decode(&mut self, piece: &[u8]) {
        self.open.extend_from_slice(piece);
        let mut bytes = self.open.as_slice();
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => {
                    self.held.push_str(text);
                    bytes = &[];
                    break;
                }
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            self.held.push_str(&String::from_utf8_lossy(valid));
            bytes = rest;
            let Some(bad) = error.error_len() else { break };
            self.held.push(char::REPLACEMENT_CHARACTER);
            bytes = &bytes[bad..];
        }
        let done = self.open.len() - bytes.len();
        self.open.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::TextStream;

    /// What the rules say, the slow way.
    fn reference(text: &str, stops: &[&str]) -> (String, Option<String>) {
        let mut seen = String::new();
        for c in text.chars() {
            seen.push(c);
            let done = stops
                .iter()
                .filter(|stop| !stop.is_empty() && seen.ends_with(**stop))
                .max_by_key(|stop| stop.len());
            if let Some(stop) = done {
                seen.truncate(seen.len() - stop.len());
                return (seen, Some((*stop).to_owned()));
            }
        }
        (seen, None)
    }

    fn stream(pieces: &[&[u8]], stops: &[&str]) -> (Vec<String>, Option<String>, usize) {
        let stops: Vec<_> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut stream = TextStream::new(&stops);
        let mut deltas = Vec::new();
        for piece in pieces {
            let mut shown = String::new();
            let flow = stream.push(piece, &mut shown);
            deltas.push(shown);
            if flow == ControlFlow::Break(()) {
                break;
            }
        }
        let mut shown = String::new();
        stream.finish(&mut shown);
        deltas.push(shown);
        (deltas, stream.stop().map(str::to_owned), stream.used_tokens())
    }

    #[test]
    fn stops_are_found_as_if_text_came_one_character_at_a_time() {
        let sets: [&[&str]; 10] = [
            &["aab"],
            &["ab", "b"],
            &["aba", "bab"],
            &["abcd", "bc"],
            &["abcab", "cab", "b"],
            &["", "ba"],
            &["éa", "aé"],
            &["bbba", "bbc"],
            &["aaaa", "aa"],
            &["cabca", "abca", "bcab"],
        ];
        let mut seed = 7u32;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push(['a', 'b', 'a', 'b', 'c', 'é'][(seed >> 16) as usize % 6]);
            }
            for stops in sets {
                let (want, stop) = reference(&text, stops);
                let bytes: Vec<&[u8]> = text.as_bytes().chunks(1 + (seed >> 8) as usize % 5).collect();
                let (deltas, found, _) = stream(&bytes, stops);
                assert_eq!((deltas.concat(), found), (want, stop), "{text} {stops:?}");
            }
        }
    }

    #[test]
    fn what_is_held_back_is_released() {
        let (deltas, stop, used) = stream(&[b"a", b"a", b"a", b"c"], &["aab"]);
        assert_eq!((deltas.join("|").as_str(), stop, used), ("||a|aac|", None, 4));
        let (deltas, ..) = stream(&[b"x\nUs"], &["\nUser:"]);
        assert_eq!(deltas, ["x", "\nUs"]);
    }

    #[test]
    fn invalid_bytes_become_replacement_marks_like_the_lossy_decoder() {
        let bytes = b"a\xff\xc3\xa9\xed\xa0\x80\xf0\x9f\x98\xf0\x9f\x98\x80\xe2\x82\x41\xc0\x80\xf5";
        for size in 1..=bytes.len() {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(stream(&pieces, &[]).0.concat(), String::from_utf8_lossy(bytes));
        }
        assert_eq!(stream(&[b"a\xf0\x9f"], &[]).0.concat(), "a");
    }

    #[test]
    fn time_is_linear() {
        let stop = "a".repeat(50_000) + "b";
        let text = "a".repeat(400_000);
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(3).collect();
        let (deltas, stop, _) = stream(&pieces, &[&stop]);
        assert_eq!((deltas.concat().len(), stop), (text.len(), None));
    }
}
