/// Most characters of a title made from a message.
const LONGEST: usize = 48;

/// A new chat's title: its first message on one line, cut at a word.
#[must_use]
pub fn title_of(text: &str) -> String {
    let words = without_code(text);
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    // Room for the ellipsis; one character more shows whether the cut falls between two words.
    let window: String = line.chars().take(LONGEST).collect();
    let cut = match window.rsplit_once(' ') {
        // A long last word is cut rather than leave only half a title.
        Some((words, _)) if words.chars().count() >= LONGEST / 2 => words.to_owned(),
        _ => line.chars().take(LONGEST - 1).collect(),
    };
    format!("{}…", cut.trim_end_matches([' ', ',', '.', ';', ':', '-']))
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
