//! How a reply comes, written down while it does: which token showed what, which draft was rejected, at what pace.

use models::{Piece, RoundStats};
use tokio::time::{Duration, Instant};

use super::count;
use crate::ipc::{PaceBin, Provenance, ProvenanceNews, RoundText};
use crate::store::Begun;

/// Most stretches of a reply whose pace is kept apart.
const MOST_BINS: usize = 200;
/// Most UTF-16 units of a rejected draft that are kept: a token may be a long run of spaces.
const LONGEST_DRAFT: usize = 48;
/// Least time between two tellings.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Writes down how a reply comes.
#[derive(Default)]
pub(super) struct Recorder {
    rounds: Vec<RoundText>,
    /// Tokens of the reply before it went on, where it is not known which token showed what. They are in `unknown` rounds.
    before: usize,
    unknown: usize,
    /// The reply's token with which the last round begins.
    last: usize,
    pace: Pace,
    /// The first round of which the listener has not heard all.
    untold: usize,
    told_at: Option<Instant>,
}

impl Recorder {
    /// Goes on with what is known of how the reply came before it broke off. What its tokens have not shown yet, as it may
    /// still become a stop string, is theirs when it is shown.
    pub(super) fn new(begun: &Begun) -> Self {
        let Some(continued) = &begun.continued else {
            return Recorder::default();
        };
        let (answer, thinking) = (
            utf16(&begun.assistant.content),
            utf16(begun.assistant.reasoning.as_deref().unwrap_or_default()),
        );
        let pace = Pace {
            bins: continued.origin.pace.clone(),
        };
        let mut rounds = continued.origin.rounds.clone();
        let tokens: usize = rounds.iter().map(|round| round.pieces.len()).sum();
        if tokens == continued.tokens.len() && shorten(&mut rounds, answer, thinking) {
            return Recorder {
                last: tokens - rounds.last().map_or(0, |round| round.pieces.len()),
                untold: 0,
                rounds,
                pace,
                ..Recorder::default()
            };
        }
        let told: u32 = rounds.iter().map(|round| round.length).sum();
        if told != answer || rounds.is_empty() {
            rounds = vec![RoundText {
                length: answer,
                ..RoundText::default()
            }];
        }
        Recorder {
            unknown: rounds.len(),
            before: continued.tokens.len(),
            last: continued.tokens.len(),
            rounds,
            pace,
            ..Recorder::default()
        }
    }

    /// Takes a round and the texts that became visible with it.
    pub(super) fn add(&mut self, round: &RoundStats, reasoning: &str, answer: &str) {
        if round.kept > 0 {
            self.last += self
                .rounds
                .get(self.unknown..)
                .and_then(<[_]>::last)
                .map_or(0, |r| r.pieces.len());
            // Drafts behind the end were neither right nor wrong: nobody looked.
            let drafted = if round.accepted >= round.kept {
                round.kept
            } else {
                round.drafted
            };
            self.rounds.push(RoundText {
                length: 0,
                tokens: count(round.kept),
                drafted: if round.drafted == 0 { 0 } else { count(drafted) },
                accepted: count(round.accepted),
                pieces: vec![0; round.kept],
                thinking: Vec::new(),
                rejected: round.rejected.as_deref().map(clipped),
                said: round.said,
            });
            self.pace.add(round.kept, round.ms);
        }
        self.show(&round.pieces, reasoning, answer);
    }

    /// Takes texts that became visible, cut by token.
    pub(super) fn show(&mut self, pieces: &[Piece], reasoning: &str, answer: &str) {
        let (mut reasoning, mut answer) = (reasoning, answer);
        for piece in pieces {
            let text = if piece.thinking { reasoning } else { answer };
            // Lengths of the engine are those of its texts; what did not fit would belong to nobody.
            let (shown, rest) = text.split_at_checked(piece.bytes).unwrap_or((text, ""));
            *(if piece.thinking { &mut reasoning } else { &mut answer }) = rest;
            self.give(piece, utf16(shown));
        }
    }

    fn give(&mut self, piece: &Piece, length: u32) {
        if piece.token < self.before {
            if let Some(round) = self.unknown.checked_sub(1).and_then(|at| self.rounds.get_mut(at)) {
                round.length += if piece.thinking { 0 } else { length };
                self.untold = self.untold.min(self.unknown - 1);
            }
            return;
        }
        // Nearly always it is the last round: text is held back for a few tokens at most.
        let (mut at, mut first) = (self.rounds.len(), self.last);
        while let Some(before) = at.checked_sub(1).filter(|before| *before >= self.unknown) {
            at = before;
            if piece.token >= first {
                break;
            }
            let earlier = at.checked_sub(1).and_then(|at| self.rounds.get(at));
            first = first.saturating_sub(earlier.map_or(0, |round| round.pieces.len()));
        }
        let Some(round) = self.rounds.get_mut(at) else { return };
        let place = piece.token.saturating_sub(first);
        if piece.thinking {
            round.thinking.resize(round.pieces.len(), 0);
        } else {
            round.length += length;
        }
        let shown = if piece.thinking {
            &mut round.thinking
        } else {
            &mut round.pieces
        };
        if let Some(shown) = shown.get_mut(place) {
            *shown += length;
        }
        self.untold = self.untold.min(at);
    }

    /// What is new since the last telling, if that was long enough ago or this is the last one.
    pub(super) fn news(&mut self, is_last: bool) -> Option<ProvenanceNews> {
        let is_due = is_last || self.told_at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
        if !is_due || self.untold >= self.rounds.len() {
            return None;
        }
        let news = ProvenanceNews {
            from: count(self.untold),
            rounds: self.rounds.get(self.untold..).unwrap_or_default().to_vec(),
            pace: self.pace.bins.clone(),
        };
        (self.untold, self.told_at) = (self.rounds.len(), Some(Instant::now()));
        Some(news)
    }

    /// All of it.
    pub(super) fn origin(&self) -> Provenance {
        Provenance {
            rounds: self.rounds.clone(),
            pace: self.pace.bins.clone(),
        }
    }
}

/// Times of rounds, in few stretches however many there are.
#[derive(Default)]
struct Pace {
    bins: Vec<PaceBin>,
}

impl Pace {
    /// The first round has no time of its own: the prompt was read in it.
    fn add(&mut self, tokens: usize, ms: Option<f64>) {
        let Some(ms) = ms.filter(|ms| ms.is_finite()) else {
            return;
        };
        let one = PaceBin {
            rounds: 1,
            tokens: count(tokens),
            ms,
        };
        let most = self.bins.iter().map(|bin| bin.rounds).max().unwrap_or(1);
        match self.bins.last_mut().filter(|last| last.rounds < most) {
            Some(last) => *last = both(last, &one),
            None => self.bins.push(one),
        }
        while self.bins.len() > MOST_BINS {
            let pairs = self.bins.chunks(2);
            self.bins = pairs
                .map(|pair| pair.iter().skip(1).fold(pair[0], |a, b| both(&a, b)))
                .collect();
        }
    }
}

fn both(a: &PaceBin, b: &PaceBin) -> PaceBin {
    PaceBin {
        rounds: a.rounds + b.rounds,
        tokens: a.tokens + b.tokens,
        ms: a.ms + b.ms,
    }
}

/// Cuts what rounds showed down to these lengths; whether they had shown as much.
fn shorten(rounds: &mut [RoundText], mut answer: u32, mut thinking: u32) -> bool {
    for round in rounds {
        for shown in &mut round.pieces {
            *shown = (*shown).min(answer);
            answer -= *shown;
        }
        for shown in &mut round.thinking {
            *shown = (*shown).min(thinking);
            thinking -= *shown;
        }
        round.length = round.pieces.iter().sum();
    }
    answer == 0 && thinking == 0
}

fn utf16(text: &str) -> u32 {
    count(text.encode_utf16().count())
}

fn clipped(draft: &str) -> String {
    let mut units = 0;
    let kept = draft.chars().take_while(|c| {
        units += c.len_utf16();
        units <= LONGEST_DRAFT
    });
    let kept: String = kept.collect();
    if kept.len() < draft.len() { kept + "…" } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(kept: usize, drafted: usize, rejected: Option<&str>, pieces: &[(usize, bool, usize)]) -> RoundStats {
        RoundStats {
            drafted,
            accepted: kept - usize::from(rejected.is_some() || drafted < kept),
            tokens: vec![0; kept],
            kept,
            rejected: rejected.map(str::to_owned),
            pieces: cut(pieces),
            ms: Some(1.0),
            said: false,
        }
    }

    fn cut(pieces: &[(usize, bool, usize)]) -> Vec<Piece> {
        let piece = |&(token, thinking, bytes)| Piece { token, thinking, bytes };
        pieces.iter().map(piece).collect()
    }

    #[test]
    fn text_goes_to_its_token_however_late_it_comes() {
        let mut recorder = Recorder::default();
        recorder.add(&round(1, 0, None, &[(0, true, 2)]), "é", "");
        recorder.add(&round(3, 2, None, &[]), "", "");
        recorder.add(
            &round(
                2,
                3,
                Some("no"),
                &[(1, true, 1), (1, false, 4), (3, false, 1), (4, false, 2)],
            ),
            "x",
            "\u{1f98a}abc",
        );
        recorder.show(&cut(&[(5, false, 3)]), "", "end");
        let told = recorder.origin().rounds;
        let shown: Vec<_> = told
            .iter()
            .map(|r| (r.pieces.clone(), r.thinking.clone(), r.length))
            .collect();
        assert_eq!(
            shown,
            [
                (vec![0], vec![1], 0),
                (vec![2, 0, 1], vec![1, 0, 0], 3),
                (vec![2, 3], vec![], 5),
            ]
        );
        assert_eq!(
            (told[2].drafted, told[2].accepted, told[2].rejected.as_deref()),
            (3, 1, Some("no"))
        );
    }

    #[test]
    fn news_are_what_changed_and_come_seldom() {
        let mut recorder = Recorder::default();
        recorder.add(&round(1, 0, None, &[]), "", "");
        recorder.add(&round(1, 0, None, &[(0, false, 1)]), "", "a");
        let first = recorder.news(false).unwrap();
        assert_eq!((first.from, first.rounds.len()), (0, 2));
        recorder.add(&round(2, 1, None, &[(1, false, 1)]), "", "b");
        assert_eq!(recorder.news(false), None, "too soon");
        let last = recorder.news(true).unwrap();
        assert_eq!(
            (last.from, last.rounds.len()),
            (1, 2),
            "more of the second round was shown"
        );
        assert_eq!(last.rounds[..], recorder.origin().rounds[1..]);
        assert_eq!(recorder.news(true), None);
    }

    #[test]
    fn the_pace_of_any_number_of_rounds_fits() {
        let mut pace = Pace::default();
        pace.add(1, None);
        for n in 1..=5000_u32 {
            pace.add(2, Some(3.0));
            assert!(pace.bins.len() <= MOST_BINS);
            let all = pace
                .bins
                .iter()
                .fold((0, 0, 0.0), |a, b| (a.0 + b.rounds, a.1 + b.tokens, a.2 + b.ms));
            assert_eq!(all, (n, 2 * n, 3.0 * f64::from(n)));
        }
        assert!(pace.bins.len() > MOST_BINS / 2);
    }

    #[test]
    fn what_had_been_shown_is_cut_to_what_goes_on() {
        let mut rounds = vec![RoundText {
            length: 7,
            pieces: vec![3, 4],
            thinking: vec![2, 0],
            ..RoundText::default()
        }];
        assert!(shorten(&mut rounds, 5, 2));
        assert_eq!((rounds[0].length, rounds[0].pieces.as_slice()), (5, [3, 2].as_slice()));
        assert!(!shorten(&mut rounds, 6, 2), "they had not shown as much");
        assert_eq!(clipped(&"🦊".repeat(50)), "🦊".repeat(24) + "…");
    }
}
