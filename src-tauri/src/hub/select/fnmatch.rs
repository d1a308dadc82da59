//! File name patterns with the meaning of Python's `fnmatch.fnmatchcase`, which the hub's own client matches with.
//!
//! The pattern crates differ from it: globset knows `{a,b}`, `**` and `[^a]`, fnmatch-regex `{a,b}` and escapes, glob
//! refuses some patterns, wildmatch has no sets. Someone's pattern would choose other files here than there.

/// One step of a pattern.
enum Piece {
    /// `*`: any characters, slashes among them, or none.
    Any,
    /// `?`
    One,
    Char(char),
    /// `[…]`: inclusive ranges.
    Set(bool, Vec<(char, char)>),
}

/// Whether the whole path matches.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let (pieces, path) = (parse(pattern), path.chars().collect::<Vec<_>>());
    let (mut piece, mut at) = (0, 0);
    // After the last `*`: where the pattern goes on, and the first character it has not swallowed.
    let mut star = None;
    loop {
        let goes_on = match (pieces.get(piece), path.get(at)) {
            (None, None) => return true,
            (Some(Piece::Any), _) => {
                star = Some((piece + 1, at));
                piece += 1;
                continue;
            }
            (Some(Piece::One), Some(_)) => true,
            (Some(Piece::Char(want)), Some(c)) => want == c,
            (Some(Piece::Set(negated, ranges)), Some(c)) => {
                ranges.iter().any(|(first, last)| (first..=last).contains(&c)) != *negated
            }
            _ => false,
        };
        if goes_on {
            (piece, at) = (piece + 1, at + 1);
        } else if let Some((after, swallowed)) = star.filter(|(_, swallowed)| *swallowed < path.len()) {
            star = Some((after, swallowed + 1));
            (piece, at) = (after, swallowed + 1);
        } else {
            return false;
        }
    }
}

fn parse(pattern: &str) -> Vec<Piece> {
    let pattern: Vec<char> = pattern.chars().collect();
    let (mut pieces, mut at) = (Vec::new(), 0);
    while let Some(c) = pattern.get(at) {
        at += 1;
        pieces.push(match c {
            '*' => Piece::Any,
            '?' => Piece::One,
            '[' => match set_end(&pattern, at) {
                Some(end) => {
                    let set = set(&pattern[at..end]);
                    at = end + 1;
                    set
                }
                None => Piece::Char('['),
            },
            c => Piece::Char(*c),
        });
    }
    pieces
}

/// Where the set that begins at `from` is closed. A `]` in first place is one of its characters.
fn set_end(pattern: &[char], from: usize) -> Option<usize> {
    let mut first = from;
    if pattern.get(first) == Some(&'!') {
        first += 1;
    }
    if pattern.get(first) == Some(&']') {
        first += 1;
    }
    (first..pattern.len()).find(|i| pattern[*i] == ']')
}

fn set(inner: &[char]) -> Piece {
    // Hyphens that make ranges cut the text into chunks; the two characters beside a cut are the range's ends.
    let mut chunks: Vec<Vec<char>> = Vec::new();
    let mut begin = 0;
    let mut from = if inner.first() == Some(&'!') { 2 } else { 1 };
    while let Some(hyphen) = (from..inner.len()).find(|i| inner[*i] == '-') {
        chunks.push(inner[begin..hyphen].to_vec());
        begin = hyphen + 1;
        from = hyphen + 3;
    }
    match (&inner[begin..], chunks.last_mut()) {
        // A hyphen in last place is a character.
        ([], Some(last)) => last.push('-'),
        (rest, _) => chunks.push(rest.to_vec()),
    }
    // A range that runs backwards holds nothing, and its ends go with it.
    for k in (1..chunks.len()).rev() {
        if chunks[k - 1].last() > chunks[k].first() {
            let rest = chunks.remove(k);
            chunks[k - 1].pop();
            chunks[k - 1].extend(&rest[1..]);
        }
    }
    let negated = chunks[0].first() == Some(&'!');
    if negated {
        chunks[0].remove(0);
    }
    let mut ranges = Vec::new();
    for (k, chunk) in chunks.iter().enumerate() {
        match (k.checked_sub(1).and_then(|before| chunks[before].last()), chunk.first()) {
            (Some(first), Some(last)) => ranges.push((*first, *last)),
            // The range's first end was the `!` that now negates: what is left is a hyphen.
            (None, _) if k > 0 => ranges.push(('-', '-')),
            _ => {}
        }
        ranges.extend(chunk.iter().map(|c| (*c, *c)));
    }
    Piece::Set(negated, ranges)
}
