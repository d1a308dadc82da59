//! How a reply came, on disk: numbers in rows, since names would be most of what is stored.

use serde::{Deserialize, Serialize};

use super::{Result, messages::json};
use crate::ipc::{PaceBin, Provenance, RoundText};

#[derive(Serialize, Deserialize)]
struct Stored {
    rounds: Vec<Row>,
    pace: Vec<(u32, u32, f64)>,
}

/// Drafts, accepted drafts, what each token showed of answer and thinking, the rejected draft. Rounds without drafts that
/// follow each other share a row.
type Known = (u32, u32, Vec<u32>, Vec<u32>, Option<String>);
/// As earlier versions had it, and where it is not known which token showed what: length, tokens, drafts, accepted drafts.
type Whole = (u32, u32, u32, u32);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Row {
    Known(Known),
    Whole(Whole),
    /// What each token showed of those that were said in the model's place, in the answer and in the thinking.
    Said {
        said: (Vec<u32>, Vec<u32>),
    },
}

/// Nothing for nothing.
pub(super) fn text(origin: &Provenance) -> Option<String> {
    let mut rounds: Vec<Row> = Vec::new();
    for round in &origin.rounds {
        match (rounds.last_mut(), row(round)) {
            (Some(Row::Known((0, 0, answer, thinking, None))), Row::Known((0, 0, more, thought, None))) => {
                if !thinking.is_empty() || !thought.is_empty() {
                    thinking.resize(answer.len(), 0);
                    thinking.extend(&thought);
                    thinking.resize(answer.len() + more.len(), 0);
                }
                answer.extend(more);
            }
            (_, row) => rounds.push(row),
        }
    }
    let pace = origin.pace.iter().map(|bin| (bin.rounds, bin.tokens, tenths(bin.ms)));
    let stored = Stored {
        rounds,
        pace: pace.collect(),
    };
    (!stored.rounds.is_empty()).then(|| serde_json::json!(stored).to_string())
}

/// What [`text`] made; what an earlier version did of the rounds if there is none.
pub(super) fn read(text: Option<&str>, rounds: Option<&str>) -> Result<Provenance> {
    let Some(text) = text else {
        let rounds: Vec<Whole> = rounds.map(json).transpose()?.unwrap_or_default();
        return Ok(Provenance {
            rounds: rounds.into_iter().map(whole).collect(),
            pace: Vec::new(),
        });
    };
    let stored: Stored = json(text)?;
    let mut origin = Provenance::default();
    for row in stored.rounds {
        match row {
            Row::Whole(numbers) => origin.rounds.push(whole(numbers)),
            Row::Known((0, 0, answer, thinking, None)) => {
                let thought = |at: usize| thinking.get(at).copied().filter(|&n| n > 0);
                let single = answer.iter().enumerate().map(|(at, &length)| RoundText {
                    length,
                    tokens: 1,
                    pieces: vec![length],
                    thinking: thought(at).map(|n| vec![n]).unwrap_or_default(),
                    ..RoundText::default()
                });
                origin.rounds.extend(single);
            }
            Row::Known((drafted, accepted, pieces, thinking, rejected)) => origin.rounds.push(RoundText {
                length: pieces.iter().fold(0, |sum, &n| sum.saturating_add(n)),
                tokens: u32::try_from(pieces.len()).unwrap_or(u32::MAX),
                drafted,
                accepted,
                pieces,
                thinking,
                rejected,
                said: false,
            }),
            Row::Said {
                said: (pieces, thinking),
            } => origin.rounds.push(RoundText {
                length: pieces.iter().fold(0, |sum, &n| sum.saturating_add(n)),
                tokens: crate::turn::count(pieces.len()),
                pieces,
                thinking,
                said: true,
                ..RoundText::default()
            }),
        }
    }
    let bins = stored.pace.into_iter();
    origin.pace = bins
        .map(|(rounds, tokens, ms)| PaceBin { rounds, tokens, ms })
        .collect();
    Ok(origin)
}

fn row(round: &RoundText) -> Row {
    if round.pieces.is_empty() {
        return Row::Whole((round.length, round.tokens, round.drafted, round.accepted));
    }
    if round.said {
        return Row::Said {
            said: (round.pieces.clone(), round.thinking.clone()),
        };
    }
    Row::Known((
        round.drafted,
        round.accepted,
        round.pieces.clone(),
        round.thinking.clone(),
        round.rejected.clone(),
    ))
}

fn whole((length, tokens, drafted, accepted): Whole) -> RoundText {
    RoundText {
        length,
        tokens,
        drafted,
        accepted,
        ..RoundText::default()
    }
}

fn tenths(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(drafted: u32, accepted: u32, pieces: &[u32], thinking: &[u32], rejected: Option<&str>) -> RoundText {
        RoundText {
            length: pieces.iter().sum(),
            tokens: pieces.len() as u32,
            drafted,
            accepted,
            pieces: pieces.to_vec(),
            thinking: thinking.to_vec(),
            rejected: rejected.map(str::to_owned),
            said: false,
        }
    }

    #[test]
    fn what_is_written_is_read_and_plain_rounds_share_a_row() {
        let origin = Provenance {
            rounds: vec![
                round(0, 0, &[0], &[2], None),
                round(0, 0, &[3], &[], None),
                round(2, 2, &[1, 4, 0], &[], None),
                round(2, 0, &[5], &[], Some(" \"fö\u{1f98a}")),
                whole((7, 0, 0, 0)),
                round(0, 0, &[3], &[], None),
                round(0, 0, &[0], &[], None),
                round(0, 0, &[0], &[6], None),
                round(1, 0, &[1], &[], None),
                RoundText {
                    said: true,
                    ..round(0, 0, &[0, 2], &[4, 0], None)
                },
            ],
            pace: vec![PaceBin {
                rounds: 9,
                tokens: 11,
                ms: 12.3,
            }],
        };
        let stored = text(&origin).unwrap();
        assert_eq!(read(Some(&stored), None).unwrap(), origin);
        assert!(stored.contains("[0,0,[3,0,0],[0,0,6],null]"), "{stored}");
        assert_eq!(text(&Provenance::default()), None);
        assert!(read(Some("[]"), None).is_err());
    }

    #[test]
    fn rounds_of_earlier_versions_are_read() {
        let origin = read(None, Some("[[4,2,2,1],[7,0,0,0]]")).unwrap();
        assert_eq!(origin.rounds, [whole((4, 2, 2, 1)), whole((7, 0, 0, 0))]);
        assert_eq!(read(None, None).unwrap(), Provenance::default());
    }
}
