//! Deleted chats: out of sight at once, gone after a month or when the person says so.

use super::{Error, Result, Store, chats, now};
use crate::ipc::ChatSummary;

/// How long a deleted chat can be taken back: a slip may be noticed days later.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

impl Store {
    /// Deletes a chat; until it is purged it can be restored.
    pub async fn delete_chat(&self, chat_id: i32) -> Result<()> {
        let deleted = sqlx::query("UPDATE chats SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL")
            .bind(now())
            .bind(chat_id)
            .execute(&self.pool)
            .await?;
        if deleted.rows_affected() == 0 {
            return Err(Error::NoChat(chat_id));
        }
        Ok(())
    }

    /// Takes a deletion back.
    pub async fn restore_chat(&self, chat_id: i32) -> Result<ChatSummary> {
        let mut write = self.write().await?;
        sqlx::query("UPDATE chats SET deleted_at = NULL WHERE id = ?")
            .bind(chat_id)
            .execute(&mut *write)
            .await?;
        let summary = chats::get(&mut write, chat_id).await?;
        write.commit().await?;
        Ok(summary)
    }

    /// Chats that were deleted and can still be restored.
    pub async fn deleted_chats(&self) -> Result<u32> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM chats WHERE deleted_at IS NOT NULL")
            .fetch_one(&self.pool)
            .await?;
        Ok(count.try_into().unwrap_or(u32::MAX))
    }

    /// Deletes all chats; until they are purged each can be restored.
    pub async fn delete_all_chats(&self) -> Result<u64> {
        let deleted = sqlx::query("UPDATE chats SET deleted_at = ? WHERE deleted_at IS NULL")
            .bind(now())
            .execute(&self.pool)
            .await?;
        Ok(deleted.rows_affected())
    }

    /// The deleted chats that can still be restored, the one deleted last first.
    pub async fn list_deleted(&self) -> Result<Vec<ChatSummary>> {
        chats::list(&self.pool, "deleted_at IS NOT NULL ORDER BY deleted_at DESC, id DESC").await
    }

    /// Removes one deleted chat.
    pub async fn purge_chat(&self, chat_id: i32) -> Result<()> {
        let purged = sqlx::query("DELETE FROM chats WHERE id = ? AND deleted_at IS NOT NULL")
            .bind(chat_id)
            .execute(&self.pool)
            .await?;
        if purged.rows_affected() == 0 {
            return Err(Error::NoChat(chat_id));
        }
        self.shrink_log().await
    }

    /// Removes all deleted chats with their messages and figures.
    pub async fn purge(&self) -> Result<()> {
        self.purge_before(i64::MAX).await
    }

    /// Removes those that were deleted long ago.
    pub(super) async fn purge_old(&self) -> Result<()> {
        self.purge_before(now() - KEPT_MS).await
    }

    async fn purge_before(&self, time: i64) -> Result<()> {
        sqlx::query("DELETE FROM chats WHERE deleted_at < ?")
            .bind(time)
            .execute(&self.pool)
            .await?;
        self.shrink_log().await
    }

    /// What was removed must not be read in the log of the last writes either.
    pub(super) async fn shrink_log(&self) -> Result<()> {
        // Another process that reads may stand in the way; its own end does it then.
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
