//! The tree of a chat's messages, and which branch of it is shown.

use std::collections::HashMap;

use sqlx::SqliteConnection;

use super::{Error, Result, Store, chats, messages, turns::refuse_busy};
use crate::ipc::{Chat, Message};

/// From a message up to the first of its chat.
const WAY_UP: &str = "WITH RECURSIVE way (message, depth) AS (SELECT ?1, 0 UNION ALL \
                      SELECT m.parent_id, depth + 1 FROM way JOIN messages m ON m.id = way.message \
                      WHERE m.parent_id IS NOT NULL)";
/// A message and all that follow it, on all branches.
const BELOW: &str = "WITH RECURSIVE below (message) AS (SELECT ?1 UNION ALL \
                     SELECT m.id FROM below JOIN messages m ON m.parent_id = below.message)";
/// From a message down, each time to the newest that follows. Ids grow on the way.
const WAY_DOWN: &str = "WITH RECURSIVE way (message) AS (SELECT ?1 UNION ALL \
                        SELECT (SELECT max(id) FROM messages WHERE parent_id = way.message) FROM way \
                        WHERE EXISTS (SELECT 1 FROM messages WHERE parent_id = way.message)) \
                        SELECT max(message) FROM way";

impl Store {
    /// Shows the branch that a message lies on, with the newest of what follows it.
    pub async fn show_message(&self, message_id: i32) -> Result<Chat> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let chat_id = messages::get(&mut write, message_id).await?.chat_id;
        chats::get(&mut write, chat_id).await?;
        // A reply that is being written stays where it is seen.
        refuse_busy(&mut write, chat_id).await?;
        let leaf = newest_below(&mut write, message_id).await?;
        set_leaf(&mut write, chat_id, leaf).await?;
        let chat = chats::open(&mut write, chat_id).await?;
        write.commit().await?;
        Ok(chat)
    }

    /// Deletes a message with all that follow it; another version of it is shown then, if there is one.
    pub async fn delete_message(&self, message_id: i32) -> Result<Chat> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let message = messages::get(&mut write, message_id).await?;
        refuse_busy(&mut write, message.chat_id).await?;
        let versions = versions(&mut write, message.chat_id).await?;
        let parent = versions.parents.get(&message_id).copied().flatten();
        let shown = on_branch(&mut write, message.chat_id, message_id).await?;
        let delete = sqlx::AssertSqlSafe(format!(
            "{BELOW} DELETE FROM messages WHERE id IN (SELECT message FROM below)"
        ));
        sqlx::query(delete).bind(message_id).execute(&mut *write).await?;
        if shown {
            let other = versions.of(message_id).into_iter().rev().find(|&id| id != message_id);
            let leaf = match other {
                Some(other) => Some(newest_below(&mut write, other).await?),
                None => parent,
            };
            set_leaf(&mut write, message.chat_id, leaf).await?;
        }
        let chat = chats::open(&mut write, message.chat_id).await?;
        write.commit().await?;
        Ok(chat)
    }
}

/// The messages of the branch that is shown.
pub(super) async fn shown(db: &mut SqliteConnection, chat_id: i32) -> Result<Vec<Message>> {
    let Some(leaf) = leaf(db, chat_id).await? else {
        return Ok(Vec::new());
    };
    let query = format!(
        "{WAY_UP} {} JOIN way ON way.message = m.id ORDER BY way.depth DESC",
        messages::COLUMNS
    );
    let mut shown = messages::all(db, query, leaf).await?;
    let versions = versions(db, chat_id).await?;
    for message in &mut shown {
        message.versions = versions.of(message.id);
    }
    Ok(shown)
}

/// A message with its other versions.
pub(super) async fn with_versions(db: &mut SqliteConnection, message_id: i32) -> Result<Message> {
    let mut message = messages::get(db, message_id).await?;
    message.versions = versions(db, message.chat_id).await?.of(message_id);
    Ok(message)
}

pub(super) async fn leaf(db: &mut SqliteConnection, chat_id: i32) -> Result<Option<i32>> {
    let leaf = sqlx::query_scalar("SELECT leaf_id FROM chats WHERE id = ?")
        .bind(chat_id)
        .fetch_one(db)
        .await?;
    Ok(leaf)
}

pub(super) async fn set_leaf(db: &mut SqliteConnection, chat_id: i32, leaf: impl Into<Option<i32>>) -> Result<()> {
    sqlx::query("UPDATE chats SET leaf_id = ? WHERE id = ?")
        .bind(leaf.into())
        .bind(chat_id)
        .execute(db)
        .await?;
    Ok(())
}

pub(super) async fn parent(db: &mut SqliteConnection, message_id: i32) -> Result<Option<i32>> {
    let parent: Option<Option<i32>> = sqlx::query_scalar("SELECT parent_id FROM messages WHERE id = ?")
        .bind(message_id)
        .fetch_optional(db)
        .await?;
    parent.ok_or(Error::NoMessage(message_id))
}

async fn newest_below(db: &mut SqliteConnection, message_id: i32) -> Result<i32> {
    Ok(sqlx::query_scalar(WAY_DOWN).bind(message_id).fetch_one(db).await?)
}

async fn on_branch(db: &mut SqliteConnection, chat_id: i32, message_id: i32) -> Result<bool> {
    let Some(leaf) = leaf(db, chat_id).await? else {
        return Ok(false);
    };
    let query = sqlx::AssertSqlSafe(format!("{WAY_UP} SELECT count(*) FROM way WHERE message = ?2"));
    let count: i64 = sqlx::query_scalar(query)
        .bind(leaf)
        .bind(message_id)
        .fetch_one(db)
        .await?;
    Ok(count > 0)
}

/// Which messages of a chat are versions of each other.
struct Versions {
    parents: HashMap<i32, Option<i32>>,
    by_parent: HashMap<Option<i32>, Vec<i32>>,
}

impl Versions {
    fn of(&self, message_id: i32) -> Vec<i32> {
        let parent = self.parents.get(&message_id);
        parent
            .and_then(|parent| self.by_parent.get(parent))
            .cloned()
            .unwrap_or_default()
    }
}

async fn versions(db: &mut SqliteConnection, chat_id: i32) -> Result<Versions> {
    let rows: Vec<(i32, Option<i32>)> =
        sqlx::query_as("SELECT id, parent_id FROM messages WHERE chat_id = ? ORDER BY id")
            .bind(chat_id)
            .fetch_all(db)
            .await?;
    let mut by_parent: HashMap<Option<i32>, Vec<i32>> = HashMap::new();
    for (id, parent) in &rows {
        by_parent.entry(*parent).or_default().push(*id);
    }
    Ok(Versions {
        parents: rows.into_iter().collect(),
        by_parent,
    })
}
