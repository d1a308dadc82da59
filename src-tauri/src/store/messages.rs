use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

use super::{Error, Result, Store, chats, id, now, runs};
use crate::ipc::{Message, MessageStatus, Role};

/// A query's start: a row for each message `m`.
pub(super) const COLUMNS: &str = "SELECT m.id, m.chat_id, m.role, m.content, m.reasoning, m.status, m.error, m.created_at, \
                                  json_extract(m.made, '$.thought') AS thought, \
                                  m.token_ids IS NOT NULL AND m.made IS NOT NULL AND m.owner IS NULL AS can_continue, \
                                  r.* FROM messages m LEFT JOIN runs r ON r.message_id = m.id";

impl Store {
    /// The chat of a message.
    pub async fn chat_of(&self, message_id: i32) -> Result<i32> {
        let mut read = self.pool.acquire().await?;
        Ok(get(&mut read, message_id).await?.chat_id)
    }

    /// Marks replies whose process is gone; another living process's turn is left alone.
    pub(super) async fn mark_interrupted(&self) -> Result<()> {
        let owners: Vec<String> = sqlx::query_scalar("SELECT DISTINCT owner FROM messages WHERE owner IS NOT NULL")
            .fetch_all(&self.pool)
            .await?;
        for owner in owners.iter().filter(|owner| !self.owner.is_alive(owner)) {
            sqlx::query("UPDATE messages SET status = 'interrupted', owner = NULL WHERE owner = ?")
                .bind(owner)
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }
}

/// The messages of a query with one number in it.
pub(super) async fn all(db: &mut SqliteConnection, query: String, number: i32) -> Result<Vec<Message>> {
    sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(number)
        .fetch_all(db)
        .await?
        .iter()
        .map(message)
        .collect()
}

/// A message, without its other versions.
pub(super) async fn get(db: &mut SqliteConnection, message_id: i32) -> Result<Message> {
    let query = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE m.id = ?"));
    let row = sqlx::query(query).bind(message_id).fetch_optional(db).await?;
    row.as_ref().map_or(Err(Error::NoMessage(message_id)), message)
}

/// A new message; with an owner it is a reply that is being generated.
pub(super) async fn insert(
    db: &mut SqliteConnection,
    chat_id: i32,
    parent: Option<i32>,
    role: Role,
    content: &str,
    owner: Option<&str>,
) -> Result<i32> {
    let status = match owner {
        Some(_) => MessageStatus::Streaming,
        None => MessageStatus::Complete,
    };
    let done = sqlx::query(
        "INSERT INTO messages (chat_id, parent_id, role, content, status, owner, created_at) \
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(chat_id)
    .bind(parent)
    .bind(name(role))
    .bind(content)
    .bind(name(status))
    .bind(owner)
    .bind(now())
    .execute(db)
    .await?;
    id(done.last_insert_rowid())
}

fn message(row: &SqliteRow) -> Result<Message> {
    let run: Option<i64> = row.try_get("message_id")?;
    let error: Option<String> = row.try_get("error")?;
    let thought: Option<String> = row.try_get("thought")?;
    Ok(Message {
        id: row.try_get("id")?,
        chat_id: row.try_get("chat_id")?,
        role: parse(row.try_get("role")?)?,
        content: row.try_get("content")?,
        reasoning: row.try_get("reasoning")?,
        thought: thought.as_deref().map(json).transpose()?,
        status: parse(row.try_get("status")?)?,
        created_at: chats::millis(row.try_get("created_at")?),
        run: run.map(|_| runs::read(row)).transpose()?,
        error: error.as_deref().map(json).transpose()?,
        versions: vec![row.try_get("id")?],
        can_continue: row.try_get("can_continue")?,
    })
}

pub(super) fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The stored name of a role or status is the one that crosses to the window.
pub(super) fn name(value: impl serde::Serialize) -> String {
    serde_json::json!(value).as_str().unwrap_or_default().to_owned()
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(name: String) -> Result<T> {
    serde_json::from_value(serde_json::Value::String(name)).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })
}

pub(super) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })
}
