//! The library of chats on real SQLite files: branches, search, what is deleted and taken back.

mod words;

use std::path::Path;

use app::ipc::{Chat, ChatConfig, KvChoice, MessageStatus, Provenance, TurnOptions};
use app::store::{Begun, Ending, Error, Made, Resume, Store};
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

fn ending(content: &str) -> Ending {
    Ending {
        content: content.to_owned(),
        reasoning: String::new(),
        status: MessageStatus::Complete,
        run: None,
        error: None,
        resume: None,
        origin: Provenance::default(),
    }
}

async fn finish(store: &Store, begun: &Begun, content: &str) -> i32 {
    let (message, _) = store.finish_turn(begun.assistant.id, &ending(content)).await.unwrap();
    message.id
}

/// A chat of two questions, each with its answer.
async fn two_turns(store: &Store) -> (Begun, Begun) {
    let one = store.begin_turn(None, "t", "one").await.unwrap();
    finish(store, &one, "first").await;
    let two = store.begin_turn(Some(one.chat.id), "", "two").await.unwrap();
    finish(store, &two, "second").await;
    (one, two)
}

fn contents(chat: &Chat) -> Vec<&str> {
    chat.messages.iter().map(|message| message.content.as_str()).collect()
}

async fn pool(dir: &Path) -> SqlitePool {
    SqlitePool::connect_with(
        SqliteConnectOptions::new()
            .filename(dir.join("history.db"))
            .create_if_missing(true),
    )
    .await
    .unwrap()
}

/// Fails if the index does not say what the messages say.
async fn check_index(dir: &Path) {
    sqlx::query("INSERT INTO message_search (message_search, rank) VALUES ('integrity-check', 1)")
        .execute(&pool(dir).await)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_history_of_before_becomes_one_branch_and_can_be_searched() {
    let dir = TempDir::new().unwrap();
    let old = pool(dir.path()).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src-tauri/migrations");
    let mut migrations = Migrator::new(folder).await.unwrap();
    migrations.migrations = migrations
        .migrations
        .iter()
        .filter(|m| m.version < 5)
        .cloned()
        .collect::<Vec<_>>()
        .into();
    migrations.run(&old).await.unwrap();
    for chat in [1, 2] {
        sqlx::query("INSERT INTO chats VALUES (?, 'old', 1, 1)")
            .bind(chat)
            .execute(&old)
            .await
            .unwrap();
    }
    for (chat, role, content) in [
        (1, "user", "eins"),
        (2, "user", "uno"),
        (1, "assistant", "zwei"),
        (1, "user", "drei"),
    ] {
        sqlx::query(
            "INSERT INTO messages (chat_id, role, content, status, created_at) VALUES (?, ?, ?, 'complete', 1)",
        )
        .bind(chat)
        .bind(role)
        .bind(content)
        .execute(&old)
        .await
        .unwrap();
    }
    old.close().await;

    let store = Store::open(dir.path()).await.unwrap();
    let chat = store.open_chat(1).await.unwrap();
    assert_eq!(contents(&chat), ["eins", "zwei", "drei"]);
    assert!(chat.messages.iter().all(|m| m.versions == [m.id] && !m.can_continue));
    assert_eq!(contents(&store.open_chat(2).await.unwrap()), ["uno"]);
    assert_eq!(store.search("zwei").await.unwrap()[0].chat_id, 1);
    check_index(dir.path()).await;
}

#[tokio::test]
async fn versions_of_messages_are_kept_and_shown_in_turn() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let (one, two) = two_turns(&store).await;
    let chat_id = one.chat.id;

    let again = store.begin_again(one.assistant.id).await.unwrap();
    assert_eq!((again.user.id, again.history.len()), (one.user.id, 1));
    assert_eq!(again.assistant.versions, [one.assistant.id, again.assistant.id]);
    finish(&store, &again, "first again").await;
    let chat = store.open_chat(chat_id).await.unwrap();
    assert_eq!(
        contents(&chat),
        ["one", "first again"],
        "what followed the old reply is on its branch"
    );

    let chat = store.show_message(one.assistant.id).await.unwrap();
    assert_eq!(contents(&chat), ["one", "first", "two", "second"]);
    assert_eq!(chat.messages[1].versions, again.assistant.versions);

    let edited = store.begin_edited(two.user.id, "two, edited").await.unwrap();
    assert_eq!(edited.user.versions, [two.user.id, edited.user.id]);
    let before: Vec<_> = edited.history.iter().map(|m| m.content.as_str()).collect();
    assert_eq!(before, ["one", "first", "two, edited"]);
    finish(&store, &edited, "third").await;
    // The first message too: it has no parent.
    let first = store.begin_edited(one.user.id, "ONE").await.unwrap();
    assert_eq!(first.history.len(), 1);
    finish(&store, &first, "x").await;
    assert_eq!(
        contents(&store.show_message(edited.user.id).await.unwrap())[2..],
        ["two, edited", "third"]
    );
    // Going on goes on from what is shown.
    let next = store.begin_turn(Some(chat_id), "", "next").await.unwrap();
    assert_eq!(next.history.len(), 5);
    assert!(matches!(store.show_message(one.user.id).await, Err(Error::ChatBusy)));
    finish(&store, &next, "y").await;

    assert!(matches!(store.begin_again(two.user.id).await, Err(Error::NotAReply(_))));
    assert!(matches!(
        store.begin_edited(one.assistant.id, "x").await,
        Err(Error::NotAMessage(_))
    ));
    assert!(matches!(store.begin_again(999).await, Err(Error::NoMessage(999))));
}

#[tokio::test]
async fn a_deleted_message_takes_what_follows_and_leaves_other_versions() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let (one, two) = two_turns(&store).await;
    let again = store.begin_again(two.assistant.id).await.unwrap();
    finish(&store, &again, "second again").await;

    let chat = store.delete_message(again.assistant.id).await.unwrap();
    assert_eq!(contents(&chat), ["one", "first", "two", "second"]);
    let chat = store.delete_message(two.assistant.id).await.unwrap();
    assert_eq!(contents(&chat), ["one", "first", "two"]);
    let edited = store.begin_edited(one.user.id, "uno").await.unwrap();
    finish(&store, &edited, "primo").await;
    // On a branch that is not shown: what is shown stays.
    let chat = store.delete_message(two.user.id).await.unwrap();
    assert_eq!(contents(&chat), ["uno", "primo"]);
    let chat = store.delete_message(edited.user.id).await.unwrap();
    assert_eq!(contents(&chat), ["one", "first"]);
    let chat = store.delete_message(one.user.id).await.unwrap();
    assert!(chat.messages.is_empty());
    let begun = store.begin_turn(Some(chat.summary.id), "", "anew").await.unwrap();
    assert_eq!(begun.history.len(), 1);
    finish(&store, &begun, "z").await;
    check_index(dir.path()).await;
}

#[tokio::test]
async fn a_reply_that_failed_without_a_word_makes_room() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let begun = store.begin_turn(None, "t", "x").await.unwrap();
    let failed = Ending {
        status: MessageStatus::Failed,
        ..ending("")
    };
    store.finish_turn(begun.assistant.id, &failed).await.unwrap();
    let again = store.begin_again(begun.assistant.id).await.unwrap();
    assert_eq!(again.assistant.versions, [again.assistant.id]);
    let half = Ending {
        status: MessageStatus::Failed,
        ..ending("half")
    };
    store.finish_turn(again.assistant.id, &half).await.unwrap();
    let third = store.begin_again(again.assistant.id).await.unwrap();
    assert_eq!(third.assistant.versions, [again.assistant.id, third.assistant.id]);
}

#[tokio::test]
async fn a_deleted_chat_can_be_taken_back_until_it_is_purged() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let (one, two) = two_turns(&store).await;
    let id = one.chat.id;
    store.delete_chat(id).await.unwrap();
    assert!(store.list_chats().await.unwrap().is_empty());
    assert!(matches!(store.open_chat(id).await, Err(Error::NoChat(_))));
    assert!(matches!(
        store.begin_turn(Some(id), "", "x").await,
        Err(Error::NoChat(_))
    ));
    assert!(matches!(store.show_message(two.user.id).await, Err(Error::NoChat(_))));
    // The app's next start leaves it alone.
    Store::open(dir.path()).await.unwrap().close().await;
    assert_eq!(store.restore_chat(id).await.unwrap().id, id);
    assert_eq!(store.open_chat(id).await.unwrap().messages.len(), 4);

    store.delete_chat(id).await.unwrap();
    store.close().await;
    let raw = pool(dir.path()).await;
    let age = async |days: i64| {
        sqlx::query("UPDATE chats SET deleted_at = deleted_at - ?")
            .bind(days * 24 * 60 * 60 * 1000)
            .execute(&raw)
            .await
            .unwrap();
    };
    age(29).await;
    let store = Store::open(dir.path()).await.unwrap();
    assert_eq!(store.list_deleted().await.unwrap().len(), 1, "not a month old");
    store.close().await;
    age(2).await;
    let store = Store::open(dir.path()).await.unwrap();
    assert!(
        matches!(store.restore_chat(id).await, Err(Error::NoChat(_))),
        "after a month it is gone"
    );
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM messages")
        .fetch_one(&raw)
        .await
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn what_belongs_to_a_chat_outlives_a_restart() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let config = ChatConfig {
        system_prompt: "Be brief.".to_owned(),
        options: Some(TurnOptions {
            temperature: Some(0.3),
            seed: Some(9_007_199_254_740_991.0),
            ..TurnOptions::default()
        }),
    };
    let begun = store.begin_turn_with(None, "t", "x", Some(&config)).await.unwrap();
    assert_eq!(begun.system_prompt, "Be brief.");
    finish(&store, &begun, "y").await;
    let id = begun.chat.id;
    assert!(store.pin_chat(id, true).await.unwrap().pinned);
    let tags = ["a b ", "A  b", "", "c"].map(str::to_owned);
    store.tag_chat(id, &tags).await.unwrap();
    store.set_draft(Some(id), "not yet").await.unwrap();
    store.set_draft(None, "nor this").await.unwrap();
    store.close().await;

    let store = Store::open(dir.path()).await.unwrap();
    let chat = store.open_chat(id).await.unwrap();
    assert_eq!((&chat.config, chat.draft.as_str()), (&config, "not yet"));
    assert_eq!(
        (chat.summary.pinned, chat.summary.tags),
        (true, vec!["a b".to_owned(), "c".to_owned()])
    );
    assert_eq!(store.new_draft().await.unwrap(), "nor this");
    let other = ChatConfig::default();
    store.configure_chat(id, &other).await.unwrap();
    assert_eq!(store.open_chat(id).await.unwrap().config, other);
    assert!(matches!(store.configure_chat(99, &other).await, Err(Error::NoChat(99))));
}

#[tokio::test]
async fn a_duplicate_has_all_branches_and_a_life_of_its_own() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let (one, _) = two_turns(&store).await;
    let again = store.begin_again(one.assistant.id).await.unwrap();
    let made = Made {
        model: "builtin".to_owned(),
        options: TurnOptions::default(),
        system_prompt: Some("Be brief.".to_owned()),
        thought: None,
        kv: KvChoice::Plain,
    };
    store.describe_turn(again.assistant.id, &made).await.unwrap();
    finish(&store, &again, "first again").await;
    store.pin_chat(one.chat.id, true).await.unwrap();

    let copy = store.duplicate_chat(one.chat.id, "t, again").await.unwrap();
    assert_eq!((copy.title.as_str(), copy.pinned), ("t, again", false));
    let chat = store.open_chat(copy.id).await.unwrap();
    assert_eq!(contents(&chat), ["one", "first again"]);
    assert_eq!(store.made_of(chat.messages[1].id).await.unwrap(), Some(made));
    let other = store.show_message(chat.messages[1].versions[0]).await.unwrap();
    assert_eq!(contents(&other), ["one", "first", "two", "second"]);
    assert!(other.messages.iter().all(|message| message.chat_id == copy.id));
    store.delete_chat(one.chat.id).await.unwrap();
    store.purge().await.unwrap();
    assert_eq!(store.open_chat(copy.id).await.unwrap().messages.len(), 4);
    check_index(dir.path()).await;
}

#[tokio::test]
async fn only_a_last_reply_that_broke_off_goes_on_and_from_what_its_ids_had_shown() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let begun = store.begin_turn(None, "t", "x").await.unwrap();
    let made = Made {
        model: "builtin".to_owned(),
        options: TurnOptions {
            seed: Some(9_007_199_254_740_991.0),
            ..TurnOptions::default()
        },
        system_prompt: Some("Be brief.".to_owned()),
        thought: None,
        kv: KvChoice::Plain,
    };
    store.describe_turn(begun.assistant.id, &made).await.unwrap();
    let stopped = Ending {
        status: MessageStatus::Stopped,
        resume: Some(Resume {
            tokens: vec![1, 70_000, u32::MAX],
            answer: 4,
            reasoning: 0,
        }),
        ..ending("half\u{fffd}")
    };
    let (message, _) = store.finish_turn(begun.assistant.id, &stopped).await.unwrap();
    assert!(message.can_continue);
    let on = store.begin_continued(message.id).await.unwrap();
    assert_eq!((on.assistant.id, on.assistant.content.as_str()), (message.id, "half"));
    assert_eq!(on.assistant.status, MessageStatus::Streaming);
    let continued = on.continued.unwrap();
    assert_eq!((continued.tokens, continued.made), (vec![1, 70_000, u32::MAX], made));

    // The app ends in mid-reply: what was saved last can go on.
    store
        .save_partial(message.id, "half of", "hm", &[1, 2, 3, 4])
        .await
        .unwrap();
    store.close().await;
    drop(store);
    let store = Store::open(dir.path()).await.unwrap();
    let seen = store.open_chat(begun.chat.id).await.unwrap().messages.pop().unwrap();
    assert_eq!((seen.status, seen.can_continue), (MessageStatus::Interrupted, true));
    let on = store.begin_continued(message.id).await.unwrap();
    assert_eq!(
        (on.assistant.content.as_str(), on.continued.unwrap().tokens.len()),
        ("half of", 4)
    );
    let (done, _) = store.finish_turn(message.id, &ending("half of it")).await.unwrap();
    assert!(!done.can_continue);
    assert!(matches!(
        store.begin_continued(message.id).await,
        Err(Error::CannotContinue(_))
    ));
    assert!(matches!(
        store.begin_continued(begun.user.id).await,
        Err(Error::CannotContinue(_))
    ));
}
