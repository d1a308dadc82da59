use unicode_segmentation::UnicodeSegmentation;

/// Most characters of a title made from a message.
const LONGEST: usize = 48;

/// A new chat's title: its first message on one line, cut at a word.
#[must_use]
pub fn title_of(text: &str) -> String {
    let words = without_code(text);
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let letters: Vec<&str> = line.graphemes(true).take(LONGEST + 1).collect();
    if letters.len() <= LONGEST {
        return line;
    }
    // Room for the ellipsis; one character more shows whether the cut falls between two words.
    let window = letters[..LONGEST].concat();
    let cut = match window.rsplit_once(' ') {
        // A long last word is cut rather than leave only half a title.
        Some((words, _)) if words.chars().count() >= LONGEST / 2 => words.to_owned(),
        _ => letters[..LONGEST - 1].concat(),
    };
    format!("{}…", cut.trim_end_matches([' ', ',', '.', ';', ':', '-']))
}

/// Fewer letters than this say little; what stands for a word by itself counts as three.
const LITTLE: usize = 8;
/// How a message with nothing but a file begins.
const FILE: &str = "File: ";

/// The title of a chat once its first reply is there: as before, unless the message says little or was cut where the reply
/// has a heading of its own.
#[must_use]
pub fn title_of_exchange(question: &str, answer: &str) -> String {
    let asked = title_of(question);
    let heading = heading(answer);
    let file = asked
        .strip_prefix(FILE)
        .filter(|_| without_code(question).lines().count() == 1);
    if file.is_some() || says_little(&asked) {
        let subject = file.unwrap_or(&asked);
        let said = heading.or_else(|| first_sentence(answer));
        said.map_or(asked.clone(), |said| title_of(&format!("{subject}: {said}")))
    } else if asked.ends_with('…') {
        heading.map_or(asked, |heading| title_of(&heading))
    } else {
        asked
    }
}

fn says_little(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    let weight: usize = letters.map(|c| if c >= '\u{2e80}' { 3 } else { 1 }).sum();
    weight < LITTLE && text.split_whitespace().count() < 3
}

/// The heading that an answer begins with.
fn heading(answer: &str) -> Option<String> {
    let line = answer.trim_start().lines().next()?;
    let text = line.trim_start_matches('#');
    let marks = line.len() - text.len();
    let is_heading = (1..=6).contains(&marks) && text.starts_with(' ');
    is_heading.then(|| plain(text)).filter(|text| !text.is_empty())
}

fn first_sentence(answer: &str) -> Option<String> {
    let words = without_code(answer);
    let line = words.lines().find(|line| !line.trim().is_empty())?;
    let end = line.find(['.', '!', '?', '。', '！', '？']).unwrap_or(line.len());
    let text = plain(line.get(..end)?);
    (!text.is_empty()).then_some(text)
}

/// Without the marks of emphasis and code.
fn plain(text: &str) -> String {
    text.replace(['*', '`', '#'], "").trim().to_owned()
}

/// What is said around fenced code, such as attached files; all of it if nothing is.
fn without_code(text: &str) -> String {
    let mut words = String::new();
    let mut fence = None;
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            None => {
                words.push_str(line);
                words.push('\n');
            }
            Some(open) if ticks >= open && line.len() == ticks => fence = None,
            Some(_) => {}
        }
    }
    if words.trim().is_empty() {
        text.to_owned()
    } else {
        words
    }
}
