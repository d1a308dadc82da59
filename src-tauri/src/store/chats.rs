use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

use super::{Error, Result, Store, branches, id, messages::json, now};
use crate::ipc::{Chat, ChatConfig, ChatSummary};
use crate::json::stored;

const COLUMNS: &str = "SELECT id, title, created_at, updated_at, pinned, tags FROM chats";
/// Where a text for a chat that is not begun yet is kept.
const NEW_DRAFT: &str = "new_draft";

impl Store {
    /// All chats, the one last written to first.
    pub async fn list_chats(&self) -> Result<Vec<ChatSummary>> {
        list(&self.pool, "deleted_at IS NULL ORDER BY updated_at DESC, id DESC").await
    }

    /// A chat with the messages of the branch that is shown.
    pub async fn open_chat(&self, chat_id: i32) -> Result<Chat> {
        self.mark_interrupted().await?;
        let mut read = self.pool.begin().await?;
        open(&mut read, chat_id).await
    }

    /// Gives a chat another title if it still has this one.
    pub async fn retitle_chat(&self, chat_id: i32, from: &str, title: &str) -> Result<ChatSummary> {
        let mut write = self.write().await?;
        sqlx::query("UPDATE chats SET title = ? WHERE id = ? AND title = ?")
            .bind(title)
            .bind(chat_id)
            .bind(from)
            .execute(&mut *write)
            .await?;
        let summary = get_any(&mut write, chat_id).await?;
        write.commit().await?;
        Ok(summary)
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

    /// Keeps a chat at the top of the list, or no longer.
    pub async fn pin_chat(&self, chat_id: i32, pinned: bool) -> Result<ChatSummary> {
        let mut write = self.write().await?;
        sqlx::query("UPDATE chats SET pinned = ? WHERE id = ?")
            .bind(pinned)
            .bind(chat_id)
            .execute(&mut *write)
            .await?;
        let summary = get(&mut write, chat_id).await?;
        write.commit().await?;
        Ok(summary)
    }

    /// Gives a chat these tags in place of those it had. Blank ones and repetitions are left out.
    pub async fn tag_chat(&self, chat_id: i32, tags: &[String]) -> Result<ChatSummary> {
        let mut kept: Vec<String> = Vec::new();
        for tag in tags {
            let tag = tag.split_whitespace().collect::<Vec<_>>().join(" ");
            if !tag.is_empty() && !kept.iter().any(|other| other.to_lowercase() == tag.to_lowercase()) {
                kept.push(tag);
            }
        }
        let mut write = self.write().await?;
        sqlx::query("UPDATE chats SET tags = ? WHERE id = ?")
            .bind(serde_json::json!(kept).to_string())
            .bind(chat_id)
            .execute(&mut *write)
            .await?;
        let summary = get(&mut write, chat_id).await?;
        write.commit().await?;
        Ok(summary)
    }

    /// Sets what holds for one chat alone.
    pub async fn configure_chat(&self, chat_id: i32, config: &ChatConfig) -> Result<()> {
        let mut write = self.write().await?;
        get(&mut write, chat_id).await?;
        configure(&mut write, chat_id, config).await?;
        write.commit().await?;
        Ok(())
    }

    /// Keeps a text that is not sent yet, of a chat or of one that is not begun yet. A chat that is gone has none.
    pub async fn set_draft(&self, chat_id: Option<i32>, text: &str) -> Result<()> {
        match chat_id {
            None => self.set(NEW_DRAFT, &serde_json::json!(text)).await,
            Some(chat_id) => {
                sqlx::query("UPDATE chats SET draft = ? WHERE id = ?")
                    .bind(text)
                    .bind(chat_id)
                    .execute(&self.pool)
                    .await?;
                Ok(())
            }
        }
    }

    /// The text for a chat that is not begun yet.
    pub async fn new_draft(&self) -> Result<String> {
        Ok(self.value(NEW_DRAFT).await?.unwrap_or_default())
    }
}

pub(super) async fn list(pool: &sqlx::SqlitePool, which: &str) -> Result<Vec<ChatSummary>> {
    let query = sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE {which}"));
    sqlx::query(query).fetch_all(pool).await?.iter().map(summary).collect()
}

pub(super) async fn open(db: &mut SqliteConnection, chat_id: i32) -> Result<Chat> {
    let summary = get(db, chat_id).await?;
    let messages = branches::shown(db, chat_id).await?;
    let draft = sqlx::query_scalar("SELECT draft FROM chats WHERE id = ?")
        .bind(chat_id)
        .fetch_one(&mut *db)
        .await?;
    Ok(Chat {
        summary,
        messages,
        config: config(db, chat_id).await?,
        draft,
    })
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
    find(db, chat_id, "AND deleted_at IS NULL").await
}

/// The same, also of a deleted one.
pub(super) async fn get_any(db: &mut SqliteConnection, chat_id: i32) -> Result<ChatSummary> {
    find(db, chat_id, "").await
}

async fn find(db: &mut SqliteConnection, chat_id: i32, also: &str) -> Result<ChatSummary> {
    let row = sqlx::query(sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE id = ? {also}")))
        .bind(chat_id)
        .fetch_optional(db)
        .await?;
    row.as_ref().map_or(Err(Error::NoChat(chat_id)), summary)
}

pub(super) async fn config(db: &mut SqliteConnection, chat_id: i32) -> Result<ChatConfig> {
    let text: Option<String> = sqlx::query_scalar("SELECT config FROM chats WHERE id = ?")
        .bind(chat_id)
        .fetch_one(db)
        .await?;
    // What another version wrote costs the chat its settings, not its messages.
    Ok(text
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default())
}

pub(super) async fn configure(db: &mut SqliteConnection, chat_id: i32, config: &ChatConfig) -> Result<()> {
    sqlx::query("UPDATE chats SET config = ? WHERE id = ?")
        .bind(stored(config))
        .bind(chat_id)
        .execute(db)
        .await?;
    Ok(())
}

fn summary(row: &SqliteRow) -> Result<ChatSummary> {
    Ok(ChatSummary {
        id: row.try_get("id")?,
        title: row.try_get("title")?,
        created_at: millis(row.try_get("created_at")?),
        updated_at: millis(row.try_get("updated_at")?),
        pinned: row.try_get("pinned")?,
        tags: json(row.try_get("tags")?)?,
    })
}

/// Exact until the year 287396.
pub(super) fn millis(value: i64) -> f64 {
    value as f64
}
