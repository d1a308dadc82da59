//! Whole chats out of the database and into it.

use std::collections::HashSet;

use sqlx::{Row, SqliteConnection};

use super::{Error, Result, Store, branches, chats, id, messages, now, runs};
use crate::ipc::ChatSummary;
use crate::json::stored;
use crate::transfer::{Conversation, Entry, Making};

impl Store {
    /// A chat with all its branches.
    pub async fn export_chat(&self, chat_id: i32) -> Result<Conversation> {
        self.mark_interrupted().await?;
        let mut read = self.pool.begin().await?;
        whole(&mut read, chat_id).await
    }

    /// Stores a chat as a new one.
    pub async fn import_chat(&self, chat: &Conversation) -> Result<ChatSummary> {
        let mut write = self.write().await?;
        let summary = insert(&mut write, chat).await?;
        write.commit().await?;
        Ok(summary)
    }

    /// Stores chats as new ones, all of them or none. Those that are here already, with all their messages, are only counted.
    pub async fn import_chats(&self, found: &[Conversation]) -> Result<(Vec<ChatSummary>, u32)> {
        let mut write = self.write().await?;
        let (mut stored, mut already) = (Vec::new(), 0);
        for chat in found {
            if is_here(&mut write, chat).await? {
                already += 1;
            } else {
                stored.push(insert(&mut write, chat).await?);
            }
        }
        write.commit().await?;
        Ok((stored, already))
    }

    /// Makes a second chat of one, with all its branches, under a title of its own.
    pub async fn duplicate_chat(&self, chat_id: i32, title: &str) -> Result<ChatSummary> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        super::turns::refuse_busy(&mut write, chat_id).await?;
        let time = chats::millis(now());
        let copy = Conversation {
            title: title.to_owned(),
            pinned: false,
            updated_at: time,
            ..whole(&mut write, chat_id).await?
        };
        let summary = insert(&mut write, &copy).await?;
        write.commit().await?;
        Ok(summary)
    }
}

/// Whether a chat of that moment has all these messages. It may have gone on since, under another title.
async fn is_here(db: &mut SqliteConnection, chat: &Conversation) -> Result<bool> {
    let candidates: Vec<i32> = sqlx::query_scalar("SELECT id FROM chats WHERE created_at = ? AND deleted_at IS NULL")
        .bind(chat.created_at as i64)
        .fetch_all(&mut *db)
        .await?;
    for chat_id in candidates {
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT role, content FROM messages WHERE chat_id = ?")
            .bind(chat_id)
            .fetch_all(&mut *db)
            .await?;
        let known: HashSet<(&str, &str)> = rows.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect();
        let is_known = |entry: &Entry| known.contains(&(messages::name(entry.role).as_str(), entry.content.as_str()));
        if chat.messages.len() <= rows.len() && chat.messages.iter().all(is_known) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn whole(db: &mut SqliteConnection, chat_id: i32) -> Result<Conversation> {
    let summary = chats::get(db, chat_id).await?;
    let query = format!("{} WHERE m.chat_id = ? ORDER BY m.id", messages::COLUMNS);
    let all = messages::all(db, query, chat_id).await?;
    let place = |id: i32| all.binary_search_by_key(&id, |message| message.id).ok();
    let rows = sqlx::query(
        "SELECT parent_id, token_ids, made, shown, rounds, origin FROM messages WHERE chat_id = ? ORDER BY id",
    )
    .bind(chat_id)
    .fetch_all(&mut *db)
    .await?;
    let mut entries = Vec::with_capacity(all.len());
    for (message, row) in all.iter().zip(rows) {
        let parent: Option<i32> = row.try_get("parent_id")?;
        entries.push(Entry {
            parent: parent.and_then(place),
            role: message.role,
            content: message.content.clone(),
            reasoning: message.reasoning.clone(),
            status: message.status,
            created_at: message.created_at,
            run: message.run.clone(),
            error: message.error.clone(),
            making: Making {
                token_ids: row.try_get("token_ids")?,
                made: row.try_get("made")?,
                shown: row.try_get("shown")?,
            },
            origin: match row.try_get("origin")? {
                Some(origin) => Some(origin),
                // Damaged, it costs the copy no more than this.
                None => super::origin::read(None, row.try_get("rounds")?)
                    .ok()
                    .and_then(|o| super::origin::text(&o)),
            },
        });
    }
    Ok(Conversation {
        messages: entries,
        shown: branches::leaf(db, chat_id).await?.and_then(place),
        config: chats::config(db, chat_id).await?,
        title: summary.title,
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        pinned: summary.pinned,
        tags: summary.tags,
    })
}

async fn insert(db: &mut SqliteConnection, chat: &Conversation) -> Result<ChatSummary> {
    let done = sqlx::query(
        "INSERT INTO chats (title, created_at, updated_at, pinned, tags, config) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(&chat.title)
    .bind(chat.created_at as i64)
    .bind(chat.updated_at as i64)
    .bind(chat.pinned)
    .bind(serde_json::json!(chat.tags).to_string())
    .bind(stored(&chat.config))
    .execute(&mut *db)
    .await?;
    let chat_id = id(done.last_insert_rowid())?;
    let mut ids: Vec<i32> = Vec::with_capacity(chat.messages.len());
    for entry in &chat.messages {
        let parent = match entry.parent {
            Some(at) => Some(*ids.get(at).ok_or_else(|| Error::Damaged {
                what: format!("message {at} comes after one that follows it"),
            })?),
            None => None,
        };
        let message_id = insert_entry(db, chat_id, parent, entry).await?;
        ids.push(message_id);
    }
    let leaf = chat.shown.and_then(|at| ids.get(at).copied());
    branches::set_leaf(db, chat_id, leaf.or(ids.last().copied())).await?;
    chats::get(db, chat_id).await
}

async fn insert_entry(db: &mut SqliteConnection, chat_id: i32, parent: Option<i32>, entry: &Entry) -> Result<i32> {
    let making = &entry.making;
    let row = sqlx::query(
        "INSERT INTO messages (chat_id, parent_id, role, content, reasoning, status, error, created_at, token_ids, made, \
         shown, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
    )
    .bind(chat_id)
    .bind(parent)
    .bind(messages::name(entry.role))
    .bind(&entry.content)
    .bind(entry.reasoning.as_deref())
    .bind(messages::name(entry.status))
    .bind(entry.error.as_ref().map(|error| serde_json::json!(error).to_string()))
    .bind(entry.created_at as i64)
    .bind(making.token_ids.as_deref())
    .bind(making.made.as_deref())
    .bind(making.shown.as_deref())
    .bind(entry.origin.as_deref().filter(|text| super::origin::read(Some(text), None).is_ok()))
    .fetch_one(&mut *db)
    .await?;
    let message_id = row.try_get("id")?;
    if let Some(run) = &entry.run {
        runs::insert(db, message_id, run).await?;
    }
    Ok(message_id)
}
