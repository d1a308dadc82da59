use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

use super::{Error, Result, Store, id, messages, now};
use crate::ipc::{Chat, ChatSummary};

impl Store {
    /// All chats, the one last written to first.
    pub async fn list_chats(&self) -> Result<Vec<ChatSummary>> {
        sqlx::query("SELECT id, title, created_at, updated_at FROM chats ORDER BY updated_at DESC, id DESC")
            .fetch_all(&self.pool)
            .await?
            .iter()
            .map(summary)
            .collect()
    }

    /// A chat with its messages.
    pub async fn open_chat(&self, chat_id: i32) -> Result<Chat> {
        self.mark_interrupted().await?;
        let mut read = self.pool.begin().await?;
        let summary = get(&mut read, chat_id).await?;
        let messages = messages::of_chat(&mut read, chat_id).await?;
        Ok(Chat { summary, messages })
    }

    /// Gives a chat another title.
    pub async fn rename_chat(&self, chat_id: i32, title: &str) -> Result<ChatSummary> {
        let mut write = self.write().await?;
        sqlx::query("UPDATE chats SET title = ? WHERE id = ?")
            .bind(title)
            .bind(chat_id)
            .execute(&mut *write)
            .await?;
        let summary = get(&mut write, chat_id).await?;
        write.commit().await?;
        Ok(summary)
    }

    /// Deletes a chat with its messages and their figures.
    pub async fn delete_chat(&self, chat_id: i32) -> Result<()> {
        let mut write = self.write().await?;
        let deleted = sqlx::query("DELETE FROM chats WHERE id = ?")
            .bind(chat_id)
            .execute(&mut *write)
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(Error::NoChat(chat_id));
        }
        write.commit().await?;
        Ok(())
    }
}

pub(super) async fn insert(db: &mut SqliteConnection, title: &str) -> Result<i32> {
    let time = now();
    let done = sqlx::query("INSERT INTO chats (title, created_at, updated_at) VALUES (?, ?, ?)")
        .bind(title)
        .bind(time)
        .bind(time)
        .execute(db)
        .await?;
    id(done.last_insert_rowid())
}

pub(super) async fn touch(db: &mut SqliteConnection, chat_id: i32) -> Result<()> {
    sqlx::query("UPDATE chats SET updated_at = ? WHERE id = ?")
        .bind(now())
        .bind(chat_id)
        .execute(db)
        .await?;
    Ok(())
}

pub(super) async fn get(db: &mut SqliteConnection, chat_id: i32) -> Result<ChatSummary> {
    let row = sqlx::query("SELECT id, title, created_at, updated_at FROM chats WHERE id = ?")
        .bind(chat_id)
        .fetch_optional(db)
        .await?;
    row.as_ref().map_or(Err(Error::NoChat(chat_id)), summary)
}

fn summary(row: &SqliteRow) -> Result<ChatSummary> {
    Ok(ChatSummary {
        id: row.try_get("id")?,
        title: row.try_get("title")?,
        created_at: millis(row.try_get("created_at")?),
        updated_at: millis(row.try_get("updated_at")?),
    })
}

/// Exact until the year 287396.
pub(super) fn millis(value: i64) -> f64 {
    value as f64
}
