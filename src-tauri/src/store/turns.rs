//! How a turn begins, goes on and ends on disk.

use sqlx::{Row, SqliteConnection};

use super::reply::{blob, ids};
use super::{
    Begun, Continued, Ending, Error, Made, Result, Store, branches, chats, messages, messages::json, origin, runs,
};
use crate::ipc::{ChatConfig, ChatSummary, Message, MessageStatus, Provenance, Role};
use crate::json::stored;

impl Store {
    /// Stores the person's message and an empty reply. Without a chat it makes one with `title`.
    pub async fn begin_turn(&self, chat_id: Option<i32>, title: &str, text: &str) -> Result<Begun> {
        self.begin_turn_with(chat_id, title, text, None).await
    }

    /// The same, with what is to hold for a chat that is made.
    pub async fn begin_turn_with(
        &self,
        chat_id: Option<i32>,
        title: &str,
        text: &str,
        config: Option<&ChatConfig>,
    ) -> Result<Begun> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let chat_id = match chat_id {
            Some(chat_id) => {
                chats::get(&mut write, chat_id).await?;
                refuse_busy(&mut write, chat_id).await?;
                chat_id
            }
            None => {
                let chat_id = chats::insert(&mut write, title).await?;
                if let Some(config) = config {
                    chats::configure(&mut write, chat_id, config).await?;
                }
                chat_id
            }
        };
        let parent = branches::leaf(&mut write, chat_id).await?;
        let begun = self.ask(&mut write, chat_id, parent, text).await?;
        write.commit().await?;
        Ok(begun)
    }

    /// Stores another version of one of the person's messages, and an empty reply to it.
    pub async fn begin_edited(&self, message_id: i32, text: &str) -> Result<Begun> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let message = free(&mut write, message_id, Some(Role::User)).await?;
        let parent = branches::parent(&mut write, message_id).await?;
        let begun = self.ask(&mut write, message.chat_id, parent, text).await?;
        write.commit().await?;
        Ok(begun)
    }

    /// Stores an empty reply to one of the person's messages that the shown branch ends with.
    pub async fn begin_answer(&self, message_id: i32) -> Result<Begun> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let message = free(&mut write, message_id, Some(Role::User)).await?;
        if branches::leaf(&mut write, message.chat_id).await? != Some(message_id) {
            return Err(Error::NotTheLast(message_id));
        }
        let begun = self.answer(&mut write, message.chat_id, Some(message_id)).await?;
        write.commit().await?;
        Ok(begun)
    }

    /// Stores another, empty version of a reply. One that failed without a word makes room for it.
    pub async fn begin_again(&self, message_id: i32) -> Result<Begun> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let message = free(&mut write, message_id, Some(Role::Assistant)).await?;
        let parent = branches::parent(&mut write, message_id).await?;
        let wordless = message.content.is_empty() && message.reasoning.is_none();
        if message.status == MessageStatus::Failed && wordless {
            // One that was answered all the same stays.
            sqlx::query(
                "DELETE FROM messages WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM messages WHERE parent_id = ?1)",
            )
            .bind(message_id)
            .execute(&mut *write)
            .await?;
        }
        let begun = self.answer(&mut write, message.chat_id, parent).await?;
        write.commit().await?;
        Ok(begun)
    }

    /// Opens a reply that broke off, to go on in its place.
    pub async fn begin_continued(&self, message_id: i32) -> Result<Begun> {
        self.mark_interrupted().await?;
        let mut write = self.write().await?;
        let message = free(&mut write, message_id, None).await?;
        let last = branches::leaf(&mut write, message.chat_id).await? == Some(message_id);
        if !message.can_continue || !last {
            return Err(Error::CannotContinue(message_id));
        }
        let row = sqlx::query("SELECT token_ids, made, shown, rounds, origin FROM messages WHERE id = ?")
            .bind(message_id)
            .fetch_one(&mut *write)
            .await?;
        let token_ids: Vec<u8> = row.try_get("token_ids")?;
        let shown: Option<String> = row.try_get("shown")?;
        let (answer, reasoning) = match shown {
            Some(shown) => json(&shown)?,
            None => (usize::MAX, usize::MAX),
        };
        let continued = Continued {
            tokens: ids(&token_ids),
            made: json(row.try_get("made")?)?,
            run: message.run.clone(),
            origin: origin::read(row.try_get("origin")?, row.try_get("rounds")?)?,
        };
        let thinking = message.reasoning.unwrap_or_default();
        sqlx::query(
            "UPDATE messages SET status = 'streaming', owner = ?, error = NULL, content = ?, reasoning = ?, shown = NULL, \
             origin = NULL WHERE id = ?",
        )
        .bind(self.owner.id())
        .bind(message.content.get(..answer).unwrap_or(&message.content))
        .bind(messages::some(thinking.get(..reasoning).unwrap_or(&thinking)))
        .bind(message_id)
        .execute(&mut *write)
        .await?;
        chats::touch(&mut write, message.chat_id).await?;
        let mut begun = begun(&mut write, message.chat_id, message_id).await?;
        if let Some(instructions) = &continued.made.system_prompt {
            begun.system_prompt.clone_from(instructions);
        }
        begun.continued = Some(continued);
        write.commit().await?;
        Ok(begun)
    }

    /// What a reply was made with; `None` where that was not kept.
    pub async fn made_of(&self, message_id: i32) -> Result<Option<Made>> {
        let made: Option<String> = sqlx::query_scalar("SELECT made FROM messages WHERE id = ?")
            .bind(message_id)
            .fetch_optional(&self.pool)
            .await?
            .flatten();
        made.as_deref().map(json).transpose()
    }

    /// Stores what a reply is made with, before anything runs: it can go on from what is saved then.
    pub async fn describe_turn(&self, message_id: i32, made: &Made) -> Result<()> {
        sqlx::query("UPDATE messages SET made = ? WHERE id = ? AND owner = ?")
            .bind(stored(made))
            .bind(message_id)
            .bind(self.owner.id())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Stores what there is of a reply that is still being generated, and the ids that showed it.
    pub async fn save_partial(&self, message_id: i32, content: &str, reasoning: &str, tokens: &[u32]) -> Result<()> {
        sqlx::query("UPDATE messages SET content = ?, reasoning = ?, token_ids = ? WHERE id = ? AND owner = ?")
            .bind(content)
            .bind(messages::some(reasoning))
            .bind(blob(tokens))
            .bind(message_id)
            .bind(self.owner.id())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Stores a reply that has ended.
    pub async fn finish_turn(&self, message_id: i32, ending: &Ending) -> Result<(Message, ChatSummary)> {
        let mut write = self.write().await?;
        let resume = ending.resume.as_ref();
        let updated = sqlx::query(
            "UPDATE messages SET content = ?, reasoning = ?, status = ?, error = ?, token_ids = ?, shown = ?, \
             origin = ?, owner = NULL WHERE id = ? AND owner = ?",
        )
        .bind(&ending.content)
        .bind(messages::some(&ending.reasoning))
        .bind(messages::name(ending.status))
        .bind(ending.error.as_ref().map(|error| serde_json::json!(error).to_string()))
        .bind(resume.and_then(|resume| blob(&resume.tokens)))
        .bind(resume.map(|resume| serde_json::json!((resume.answer, resume.reasoning)).to_string()))
        .bind(origin::text(&ending.origin))
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
        let chat_id = messages::get(&mut write, message_id).await?.chat_id;
        chats::touch(&mut write, chat_id).await?;
        // Deleted meanwhile, it may still be taken back.
        let chat = chats::get_any(&mut write, chat_id).await?;
        let message = branches::with_versions(&mut write, message_id).await?;
        write.commit().await?;
        Ok((message, chat))
    }

    /// How a reply came, as far as that is known.
    pub async fn message_origin(&self, message_id: i32) -> Result<Provenance> {
        let row: Option<(Option<String>, Option<String>)> =
            sqlx::query_as("SELECT origin, rounds FROM messages WHERE id = ?")
                .bind(message_id)
                .fetch_optional(&self.pool)
                .await?;
        let (text, rounds) = row.ok_or(Error::NoMessage(message_id))?;
        origin::read(text.as_deref(), rounds.as_deref())
    }

    async fn ask(&self, db: &mut SqliteConnection, chat_id: i32, parent: Option<i32>, text: &str) -> Result<Begun> {
        let user = messages::insert(db, chat_id, parent, Role::User, text, None).await?;
        self.answer(db, chat_id, Some(user)).await
    }

    async fn answer(&self, db: &mut SqliteConnection, chat_id: i32, parent: Option<i32>) -> Result<Begun> {
        let reply = messages::insert(db, chat_id, parent, Role::Assistant, "", Some(self.owner.id())).await?;
        branches::set_leaf(db, chat_id, reply).await?;
        chats::touch(db, chat_id).await?;
        begun(db, chat_id, reply).await
    }
}

async fn begun(db: &mut SqliteConnection, chat_id: i32, reply: i32) -> Result<Begun> {
    let chat = chats::get(db, chat_id).await?;
    let mut history = branches::shown(db, chat_id).await?;
    let assistant = history
        .pop()
        .filter(|message| message.id == reply)
        .ok_or(Error::NoMessage(reply))?;
    let user = history
        .last()
        .filter(|message| message.role == Role::User)
        .ok_or(Error::NotAReply(reply))?
        .clone();
    Ok(Begun {
        chat,
        user,
        assistant,
        history,
        system_prompt: chats::config(db, chat_id).await?.system_prompt,
        continued: None,
    })
}

/// A message, of this role where one is asked for, in a chat that is there and in which nothing is being written.
async fn free(db: &mut SqliteConnection, message_id: i32, role: Option<Role>) -> Result<Message> {
    let message = messages::get(db, message_id).await?;
    match role {
        Some(Role::User) if message.role != Role::User => return Err(Error::NotAMessage(message_id)),
        Some(role) if message.role != role => return Err(Error::NotAReply(message_id)),
        _ => {}
    }
    chats::get(db, message.chat_id).await?;
    refuse_busy(db, message.chat_id).await?;
    Ok(message)
}

pub(super) async fn refuse_busy(db: &mut SqliteConnection, chat_id: i32) -> Result<()> {
    let streaming: i64 = sqlx::query_scalar("SELECT count(*) FROM messages WHERE chat_id = ? AND owner IS NOT NULL")
        .bind(chat_id)
        .fetch_one(db)
        .await?;
    if streaming > 0 { Err(Error::ChatBusy) } else { Ok(()) }
}
