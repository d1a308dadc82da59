//! Which token each piece of the text came from.

use super::Piece;
use crate::text::{Sources, Stretch};

/// Follows where in the output each token's text ends. A character belongs to the token that completed it, however long
/// it is held back afterwards.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// For each token, the bytes of the output up to its end.
    ends: Vec<usize>,
}

impl Ledger {
    /// Notes a token after which the output has `end` bytes, those that are held back among them.
    pub(super) fn token(&mut self, end: usize) {
        // A stop string takes back text of the tokens before its last one; none of it is ever shown.
        let end = self.ends.last().map_or(end, |&before| end.max(before));
        self.ends.push(end);
    }

    /// What was shown, cut by token: reasoning first.
    pub(super) fn pieces(&self, sources: &Sources) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (thinking, stretches) in [(true, &sources.reasoning), (false, &sources.answer)] {
            for &Stretch { mut at, bytes } in stretches {
                let end = at + bytes;
                let mut token = self.ends.partition_point(|&end| end <= at);
                while at < end {
                    let to = self.ends.get(token).map_or(end, |&to| to.min(end));
                    let bytes = to - at;
                    match pieces.last_mut().filter(|p| (p.token, p.thinking) == (token, thinking)) {
                        Some(last) => last.bytes += bytes,
                        None if bytes > 0 => pieces.push(Piece { token, thinking, bytes }),
                        None => {}
                    }
                    (at, token) = (to, token + 1);
                }
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(ends: &[usize], reasoning: &[(usize, usize)], answer: &[(usize, usize)]) -> Vec<(usize, bool, usize)> {
        let mut ledger = Ledger::default();
        for end in ends {
            ledger.token(*end);
        }
        let stretches = |list: &[(usize, usize)]| list.iter().map(|&(at, bytes)| Stretch { at, bytes }).collect();
        let sources = Sources {
            reasoning: stretches(reasoning),
            answer: stretches(answer),
        };
        let told = ledger.pieces(&sources).into_iter();
        told.map(|p| (p.token, p.thinking, p.bytes)).collect()
    }

    #[test]
    fn text_belongs_to_the_token_that_completed_it() {
        // The second token brought the first bytes of a character, the third its last one.
        assert_eq!(pieces(&[2, 2, 6], &[], &[(0, 6)]), [(0, false, 2), (2, false, 4)]);
        assert_eq!(
            pieces(&[2, 5, 9], &[(1, 2)], &[(6, 3)]),
            [(0, true, 1), (1, true, 1), (2, false, 3)]
        );
        assert_eq!(
            pieces(&[4], &[], &[(0, 1), (3, 1)]),
            [(0, false, 2)],
            "a tag within a token"
        );
    }

    #[test]
    fn a_stop_string_that_spans_tokens_takes_nothing_from_those_before() {
        assert_eq!(pieces(&[3, 6, 2], &[], &[(0, 2)]), [(0, false, 2)]);
    }
}
