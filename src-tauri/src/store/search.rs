//! Full-text search over all branches of all chats.

use std::ops::Range;

use futures_util::TryStreamExt;
use sqlx::{Row, sqlite::SqliteRow};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use super::{Result, Store, chats, messages::parse};
use crate::ipc::{SearchHit, SnippetPiece};

/// The index knows text by three letters in a row; shorter words are looked for in what it found, or everywhere.
const INDEXED: usize = 3;
const MOST_HITS: i64 = 60;
/// A text that was pasted in place of words: what it begins with tells it apart, and SQLite bounds what it can be asked.
const MOST_WORDS: usize = 50;
/// Characters, as a person counts them, shown before and after the first word found.
const BEFORE: usize = 32;
const AFTER: usize = 80;
/// A character may be as long as its writer likes, a snippet may not.
const LONGEST_SIDE: usize = 2048;

impl Store {
    /// The messages that have every word of the query, the newest first.
    pub async fn search(&self, query: &str) -> Result<Vec<SearchHit>> {
        let mut words: Vec<&str> = Vec::new();
        // Nobody types a control character, and SQLite's own query language ends at one of them.
        let all = query.split(|c: char| c.is_whitespace() || c.is_control());
        for word in all.filter(|word| !word.is_empty()) {
            if !words.contains(&word) && words.len() < MOST_WORDS {
                words.push(word);
            }
        }
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let spelled: Vec<Vec<String>> = words.iter().map(|word| spellings(word)).collect();
        let is_long = |spelled: &&Vec<String>| spelled.iter().all(|word| word.chars().count() >= INDEXED);
        let (long, short): (Vec<_>, Vec<_>) = spelled.iter().partition(is_long);
        let mut sql = "SELECT m.id, m.chat_id, m.role, m.content, m.created_at, c.title FROM messages m \
                       JOIN chats c ON c.id = m.chat_id WHERE c.deleted_at IS NULL"
            .to_owned();
        if !long.is_empty() {
            sql.push_str(" AND m.id IN (SELECT rowid FROM message_search WHERE message_search MATCH ?)");
        }
        for spelled in &short {
            let any = vec!["m.content LIKE ? ESCAPE '\\'"; cases(spelled).len()];
            sql.push_str(&format!(" AND ({})", any.join(" OR ")));
        }
        sql.push_str(" ORDER BY m.created_at DESC, m.id DESC LIMIT ?");
        let mut search = sqlx::query(sqlx::AssertSqlSafe(sql));
        if !long.is_empty() {
            // Each word as a string of its own: nothing in it is an operator.
            let quoted: Vec<String> = long
                .iter()
                .map(|spelled| {
                    let any: Vec<_> = spelled
                        .iter()
                        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
                        .collect();
                    format!("({})", any.join(" OR "))
                })
                .collect();
            search = search.bind(quoted.join(" AND "));
        }
        for word in short.into_iter().flat_map(|spelled| cases(spelled)) {
            let escaped = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            search = search.bind(format!("%{escaped}%"));
        }
        let sought: Vec<&str> = spelled.iter().flatten().map(String::as_str).collect();
        // One message at a time: they may be long, and of each only a line is kept.
        let rows = search.bind(MOST_HITS).fetch(&self.pool);
        rows.err_into()
            .and_then(|row| std::future::ready(hit(&row, &sought)))
            .try_collect()
            .await
    }
}

/// A word in the ways that it may be written, which the index tells apart: with accents that are part of their letter or
/// follow it, and with the Turkish i, dotted as a capital and without its dot as a small letter.
fn spellings(word: &str) -> Vec<String> {
    let mut all = vec![word.to_owned()];
    let others = [
        word.nfc().collect(),
        word.nfd().collect(),
        word.replace(['İ', 'ı'], "i"),
        word.strip_prefix(['i', 'I'])
            .map_or_else(|| word.to_owned(), |rest| format!("İ{rest}")),
    ];
    for other in others {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// The same in upper and lower case: LIKE knows that of ASCII alone.
fn cases(spelled: &[String]) -> Vec<String> {
    let mut all = spelled.to_vec();
    for word in spelled.iter().filter(|word| !word.is_ascii()) {
        for other in [word.to_lowercase(), word.to_uppercase()] {
            if !all.contains(&other) {
                all.push(other);
            }
        }
    }
    all
}

fn hit(row: &SqliteRow, words: &[&str]) -> Result<SearchHit> {
    let content: &str = row.try_get("content")?;
    Ok(SearchHit {
        chat_id: row.try_get("chat_id")?,
        title: row.try_get("title")?,
        message_id: row.try_get("id")?,
        role: parse(row.try_get("role")?)?,
        created_at: chats::millis(row.try_get("created_at")?),
        pieces: pieces(content, words),
    })
}

/// The text around the first word found, on one line. Nothing but this window is ever copied.
fn pieces(content: &str, words: &[&str]) -> Vec<SnippetPiece> {
    let words: Vec<Vec<char>> = words.iter().map(|word| word.chars().map(folded).collect()).collect();
    let first = content
        .char_indices()
        .map(|(at, _)| at)
        .find(|&at| found(&content[at..], &words).is_some())
        .unwrap_or(0);
    let window = around(content, first);
    let hits = hits(content, &window, &words);
    let text = &content[window.clone()];
    let mut pieces = Pieces::default();
    if window.start > 0 && !content[..window.start].trim().is_empty() {
        pieces.push("…", false);
    }
    let mut blank = true;
    for (offset, character) in text.grapheme_indices(true) {
        let at = window.start + offset;
        if character.chars().all(char::is_whitespace) {
            if !blank {
                pieces.push(" ", false);
            }
            blank = true;
            continue;
        }
        blank = false;
        // Whole characters alone are marked: a mark must not part a letter from its accent, nor a family.
        let is_hit = hits.iter().any(|hit| hit.start < at + character.len() && at < hit.end);
        pieces.push(character, is_hit);
    }
    if !content[window.end..].trim().is_empty() {
        pieces.push("…", false);
    }
    pieces.0
}

/// The bytes of the longest word that the text begins with.
fn found(text: &str, words: &[Vec<char>]) -> Option<usize> {
    let begins = |word: &Vec<char>| {
        let mut letters = text.chars();
        let mut bytes = 0;
        for wanted in word {
            let letter = letters.next().filter(|letter| folded(*letter) == *wanted)?;
            bytes += letter.len_utf8();
        }
        Some(bytes)
    };
    words.iter().filter_map(begins).max()
}

/// So many whole characters before a place and after it.
fn around(content: &str, place: usize) -> Range<usize> {
    let before = &content[content.floor_char_boundary(place.saturating_sub(LONGEST_SIDE))..place];
    let after = &content[place..content.floor_char_boundary((place + LONGEST_SIDE).min(content.len()))];
    let start: usize = before.graphemes(true).rev().take(BEFORE).map(str::len).sum();
    let end: usize = after.graphemes(true).take(AFTER).map(str::len).sum();
    place - start..place + end
}

fn hits(content: &str, window: &Range<usize>, words: &[Vec<char>]) -> Vec<Range<usize>> {
    content[window.clone()]
        .char_indices()
        .map(|(offset, _)| window.start + offset)
        .filter_map(|at| found(&content[at..], words).map(|length| at..at + length))
        .collect()
}

#[derive(Default)]
struct Pieces(Vec<SnippetPiece>);

impl Pieces {
    fn push(&mut self, text: &str, hit: bool) {
        match self.0.last_mut() {
            Some(last) if last.hit == hit => last.text.push_str(text),
            _ => self.0.push(SnippetPiece {
                text: text.to_owned(),
                hit,
            }),
        }
    }
}

/// Without regard to case, one character for one, as the index has it.
fn folded(c: char) -> char {
    match c {
        'ς' => 'σ',
        // Its lower case is two characters, of which the second is a dot.
        c => c.to_lowercase().next().unwrap_or(c),
    }
}
