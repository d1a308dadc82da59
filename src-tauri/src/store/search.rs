//! Full-text search over all branches of all chats.

use sqlx::{Row, sqlite::SqliteRow};

use super::{Result, Store, chats, messages::parse};
use crate::ipc::{SearchHit, SnippetPiece};

/// The index knows text by three letters in a row; shorter words are looked for in what it found, or everywhere.
const INDEXED: usize = 3;
const MOST_HITS: i64 = 60;
/// Characters shown before and after the first word found.
const BEFORE: usize = 32;
const AFTER: usize = 80;

impl Store {
    /// The messages that have every word of the query, the newest first.
    pub async fn search(&self, query: &str) -> Result<Vec<SearchHit>> {
        let words: Vec<&str> = query.split_whitespace().collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let (long, short): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.chars().count() >= INDEXED);
        let mut sql = "SELECT m.id, m.chat_id, m.role, m.content, m.created_at, c.title FROM messages m \
                       JOIN chats c ON c.id = m.chat_id WHERE c.deleted_at IS NULL"
            .to_owned();
        if !long.is_empty() {
            sql.push_str(" AND m.id IN (SELECT rowid FROM message_search WHERE message_search MATCH ?)");
        }
        sql.push_str(&" AND m.content LIKE ? ESCAPE '\\'".repeat(short.len()));
        sql.push_str(" ORDER BY m.created_at DESC, m.id DESC LIMIT ?");
        let mut search = sqlx::query(sqlx::AssertSqlSafe(sql));
        if !long.is_empty() {
            // Each word as a string of its own: nothing in it is an operator.
            let quoted: Vec<String> = long
                .iter()
                .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
                .collect();
            search = search.bind(quoted.join(" AND "));
        }
        for word in short {
            let escaped = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            search = search.bind(format!("%{escaped}%"));
        }
        search
            .bind(MOST_HITS)
            .fetch_all(&self.pool)
            .await?
            .iter()
            .map(|row| hit(row, &words))
            .collect()
    }
}

fn hit(row: &SqliteRow, words: &[&str]) -> Result<SearchHit> {
    let content: String = row.try_get("content")?;
    Ok(SearchHit {
        chat_id: row.try_get("chat_id")?,
        title: row.try_get("title")?,
        message_id: row.try_get("id")?,
        role: parse(row.try_get("role")?)?,
        created_at: chats::millis(row.try_get("created_at")?),
        pieces: pieces(&content, words),
    })
}

/// The text around the first word found, on one line.
fn pieces(content: &str, words: &[&str]) -> Vec<SnippetPiece> {
    let text: Vec<char> = content
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .collect();
    let words: Vec<Vec<char>> = words.iter().map(|word| word.chars().map(folded).collect()).collect();
    let found = |at: usize| {
        let matches = |word: &&Vec<char>| {
            word.iter()
                .enumerate()
                .all(|(i, c)| text.get(at + i).is_some_and(|other| folded(*other) == *c))
        };
        words.iter().filter(matches).map(Vec::len).max()
    };
    let first = (0..text.len()).find(|&at| found(at).is_some()).unwrap_or(0);
    let from = first.saturating_sub(BEFORE);
    let end = text.len().min(first + AFTER);
    let mut pieces = Pieces::default();
    if from > 0 {
        pieces.push('…', false);
    }
    let mut hit_until = 0;
    for (at, &c) in text.iter().enumerate().take(end).skip(from) {
        if let Some(len) = found(at) {
            hit_until = hit_until.max(at + len);
        }
        pieces.push(c, at < hit_until);
    }
    if end < text.len() {
        pieces.push('…', false);
    }
    pieces.0
}

#[derive(Default)]
struct Pieces(Vec<SnippetPiece>);

impl Pieces {
    fn push(&mut self, c: char, hit: bool) {
        match self.0.last_mut() {
            Some(last) if last.hit == hit => last.text.push(c),
            _ => self.0.push(SnippetPiece {
                text: c.to_string(),
                hit,
            }),
        }
    }
}

/// Without regard to case, one character for one.
fn folded(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}
