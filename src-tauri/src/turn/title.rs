use unicode_segmentation::UnicodeSegmentation;

/// Most characters of a title made from a message.
const LONGEST: usize = 48;

/// A new chat's title: its first message on one line, without files and code, cut at a word.
#[must_use]
pub fn title_of(text: &str) -> String {
    let (words, files) = parts(text);
    let subject = match (words.is_empty(), files.is_empty()) {
        (false, _) => words,
        (true, false) => files.join(", "),
        (true, true) => text.to_owned(),
    };
    let line = subject.split_whitespace().collect::<Vec<_>>().join(" ");
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
/// What stands before the name of a file that goes with a message.
const FILE: &str = "File: ";

/// The title of a chat once its first reply is there: as before, unless the message says little or was cut where the reply
/// has a heading of its own.
#[must_use]
pub fn title_of_exchange(question: &str, answer: &str) -> String {
    let asked = title_of(question);
    let heading = heading(answer);
    let (words, files) = parts(question);
    if says_little(&asked) || (words.is_empty() && !files.is_empty()) {
        let said = heading.or_else(|| first_sentence(answer));
        said.map_or(asked.clone(), |said| title_of(&format!("{asked}: {said}")))
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
    let (words, _) = parts(answer);
    let line = words.lines().find(|line| !line.trim().is_empty())?;
    let end = line.find(['.', '!', '?', '。', '！', '？']).unwrap_or(line.len());
    let text = plain(line.get(..end)?);
    (!text.is_empty()).then_some(text)
}

/// Without the marks of emphasis and code.
fn plain(text: &str) -> String {
    text.replace(['*', '`', '#'], "").trim().to_owned()
}

/// What is said around fenced code, and the names of the files among that.
fn parts(text: &str) -> (String, Vec<&str>) {
    let mut words: Vec<&str> = Vec::new();
    let mut files = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => {
                fence = Some(ticks);
                if let Some(name) = words.last().and_then(|line| line.strip_prefix(FILE)) {
                    files.push(name);
                    words.pop();
                }
            }
            None => words.push(line),
            Some(open) if ticks >= open && line.len() == ticks => fence = None,
            Some(_) => {}
        }
    }
    (words.join("\n").trim().to_owned(), files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_made_of_the_exchange_where_the_message_says_little() {
        for (question, answer, title) in [
            ("What is MTP?", "# Drafts\n\nIt is", "What is MTP?"),
            ("hi", "Hello! How can I help?", "hi: Hello"),
            ("hi", "", "hi"),
            ("天気は?", "晴れです。明日も", "天気は?"),
            (
                "File: a.txt\n```txt\nx\n```",
                "**A list** of x. More",
                "a.txt: A list of x",
            ),
            (
                "File: a.txt\n```txt\nx\n```\n\nSum it up please",
                "A list.",
                "Sum it up please",
            ),
        ] {
            assert_eq!(title_of_exchange(question, answer), title);
        }
        let long = "Please tell me everything that you know about the history of the sea and its ships";
        assert_eq!(title_of_exchange(long, "## The *sea*\n\nOnce"), "The sea");
        assert_eq!(title_of_exchange(long, "Once"), title_of(long));
        let family = "👩‍👩‍👧".repeat(60);
        let cut = title_of(&family);
        assert!(cut.trim_end_matches('…').replace("👩‍👩‍👧", "").is_empty(), "{cut}");
    }
}
