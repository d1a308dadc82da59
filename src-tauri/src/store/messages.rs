use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

use super::{Error, Result, Store, chats, id, now, runs};
use crate::ipc::{AppError, ChatSummary, Message, MessageStatus, Role, Run};

/// A turn that has begun: both messages are on disk.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The chat, new or not.
    pub chat: ChatSummary,
    /// The person's message.
    pub user: Message,
    /// The reply, empty as yet.
    pub assistant: Message,
    /// All messages before the reply, the person's new one last.
    pub history: Vec<Message>,
}

/// How a reply ended.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The whole answer.
    pub content: String,
    /// The whole thinking block; empty if there was none.
    pub reasoning: String,
    /// How it stands.
    pub status: MessageStatus,
    /// What the engine did, if it did anything.
    pub run: Option<Run>,
    /// Why it failed, if it did.
    pub error: Option<AppError>,
}

const COLUMNS: &str = "SELECT m.id, m.chat_id, m.role, m.content, m.reasoning, m.status, m.error, m.created_at, r.* \
                       FROM messages m LEFT JOIN runs r ON r.message_id = m.id";

impl Store {
    /// Stores the person's message and an empty reply. Without a chat it makes one with `title`.
    pub async fn begin_turn(&self, chat_id: Option<i32>, title: &str, text: &str) -> Result<Begun> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let chat_id = match chat_id {
            Some(chat_id) => {
                chats::get(&mut write, chat_id).await?;
                refuse_busy(&mut write, chat_id).await?;
                chats::touch(&mut write, chat_id).await?;
                chat_id
            }
            None => chats::insert(&mut write, title).await?,
        };
        insert(&mut write, chat_id, Role::User, text, MessageStatus::Complete, None).await?;
        let reply = insert(
            &mut write,
            chat_id,
            Role::Assistant,
            "",
            MessageStatus::Streaming,
            Some(self.owner.id()),
        )
        .await?;
        let begun = begun(&mut write, chat_id, reply).await?;
        write.commit().await?;
        Ok(begun)
    }

    /// Empties the last reply of a chat, to be generated anew. It keeps its id and its place.
    pub async fn begin_again(&self, message_id: i32) -> Result<Begun> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let message = get(&mut write, message_id).await?;
        refuse_busy(&mut write, message.chat_id).await?;
        let newest: i64 = sqlx::query_scalar("SELECT max(id) FROM messages WHERE chat_id = ?")
            .bind(message.chat_id)
            .fetch_one(&mut *write)
            .await?;
        if message.role != Role::Assistant || id(newest)? != message_id {
            return Err(Error::NotLastReply(message_id));
        }
        sqlx::query("DELETE FROM runs WHERE message_id = ?")
            .bind(message_id)
            .execute(&mut *write)
            .await?;
        sqlx::query(
            "UPDATE messages SET content = '', reasoning = NULL, error = NULL, status = 'streaming', owner = ?, \
             created_at = ? WHERE id = ?",
        )
        .bind(self.owner.id())
        .bind(now())
        .bind(message_id)
        .execute(&mut *write)
        .await?;
        chats::touch(&mut write, message.chat_id).await?;
        let begun = begun(&mut write, message.chat_id, message_id).await?;
        write.commit().await?;
        Ok(begun)
    }

    /// Stores what there is of a reply that is still being generated.
    pub async fn save_partial(&self, message_id: i32, content: &str, reasoning: &str) -> Result<()> {
        sqlx::query("UPDATE messages SET content = ?, reasoning = ? WHERE id = ? AND owner = ?")
            .bind(content)
            .bind(some(reasoning))
            .bind(message_id)
            .bind(self.owner.id())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Stores a reply that has ended.
    pub async fn finish_turn(&self, message_id: i32, ending: &Ending) -> Result<(Message, ChatSummary)> {
        let mut write = self.write().await?;
        let updated = sqlx::query(
            "UPDATE messages SET content = ?, reasoning = ?, status = ?, error = ?, owner = NULL \
             WHERE id = ? AND owner = ?",
        )
        .bind(&ending.content)
        .bind(some(&ending.reasoning))
        .bind(name(ending.status))
        .bind(ending.error.as_ref().map(|error| serde_json::json!(error).to_string()))
        .bind(message_id)
        .bind(self.owner.id())
        .execute(&mut *write)
        .await?;
        if updated.rows_affected() == 0 {
            return Err(Error::NoMessage(message_id));
        }
        if let Some(run) = &ending.run {
            runs::insert(&mut write, message_id, run).await?;
        }
        let message = get(&mut write, message_id).await?;
        chats::touch(&mut write, message.chat_id).await?;
        let chat = chats::get(&mut write, message.chat_id).await?;
        write.commit().await?;
        Ok((message, chat))
    }

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

pub(super) async fn of_chat(db: &mut SqliteConnection, chat_id: i32) -> Result<Vec<Message>> {
    let query = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE m.chat_id = ? ORDER BY m.id"));
    sqlx::query(query)
        .bind(chat_id)
        .fetch_all(db)
        .await?
        .iter()
        .map(message)
        .collect()
}

async fn get(db: &mut SqliteConnection, message_id: i32) -> Result<Message> {
    let query = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE m.id = ?"));
    let row = sqlx::query(query).bind(message_id).fetch_optional(db).await?;
    row.as_ref().map_or(Err(Error::NoMessage(message_id)), message)
}

async fn insert(
    db: &mut SqliteConnection,
    chat_id: i32,
    role: Role,
    content: &str,
    status: MessageStatus,
    owner: Option<&str>,
) -> Result<i32> {
    let done = sqlx::query(
        "INSERT INTO messages (chat_id, role, content, status, owner, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(chat_id)
    .bind(name(role))
    .bind(content)
    .bind(name(status))
    .bind(owner)
    .bind(now())
    .execute(db)
    .await?;
    id(done.last_insert_rowid())
}

async fn begun(db: &mut SqliteConnection, chat_id: i32, reply: i32) -> Result<Begun> {
    let chat = chats::get(db, chat_id).await?;
    let mut history = of_chat(db, chat_id).await?;
    let assistant = history
        .pop()
        .filter(|message| message.id == reply)
        .ok_or(Error::NoMessage(reply))?;
    let user = history
        .last()
        .filter(|message| message.role == Role::User)
        .ok_or(Error::NotLastReply(reply))?
        .clone();
    Ok(Begun {
        chat,
        user,
        assistant,
        history,
    })
}

async fn refuse_busy(db: &mut SqliteConnection, chat_id: i32) -> Result<()> {
    let streaming: i64 = sqlx::query_scalar("SELECT count(*) FROM messages WHERE chat_id = ? AND owner IS NOT NULL")
        .bind(chat_id)
        .fetch_one(db)
        .await?;
    if streaming > 0 { Err(Error::ChatBusy) } else { Ok(()) }
}

fn message(row: &SqliteRow) -> Result<Message> {
    let run: Option<i64> = row.try_get("message_id")?;
    let error: Option<String> = row.try_get("error")?;
    Ok(Message {
        id: row.try_get("id")?,
        chat_id: row.try_get("chat_id")?,
        role: parse(row.try_get("role")?)?,
        content: row.try_get("content")?,
        reasoning: row.try_get("reasoning")?,
        status: parse(row.try_get("status")?)?,
        created_at: chats::millis(row.try_get("created_at")?),
        run: run.map(|_| runs::read(row)).transpose()?,
        error: error.as_deref().map(json).transpose()?,
    })
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The stored name of a role or status is the one that crosses to the window.
fn name(value: impl serde::Serialize) -> String {
    serde_json::json!(value).as_str().unwrap_or_default().to_owned()
}

fn parse<T: serde::de::DeserializeOwned>(name: String) -> Result<T> {
    serde_json::from_value(serde_json::Value::String(name)).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })
}

pub(super) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })
}
