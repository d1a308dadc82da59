//! How a reply came, on real SQLite files and in files of chats.

use app::ipc::{ExportFormat, MessageStatus, PaceBin, Provenance, RoundText};
use app::store::{Ending, Error, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

#[tokio::test]
async fn how_a_reply_came_is_kept_copied_and_in_the_file() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let begun = store.begin_turn(None, "t", "x").await.unwrap();
    let origin = Provenance {
        rounds: vec![
            RoundText {
                tokens: 1,
                length: 2,
                pieces: vec![2],
                ..RoundText::default()
            },
            RoundText {
                length: 7,
                tokens: 3,
                drafted: 4,
                accepted: 2,
                pieces: vec![0, 4, 3],
                thinking: vec![1, 0, 0],
                rejected: Some(" \u{1f98a}\"\n".to_owned()),
                said: false,
            },
        ],
        pace: vec![PaceBin {
            rounds: 1,
            tokens: 3,
            ms: 8.1,
        }],
    };
    let ended = Ending {
        origin: origin.clone(),
        content: "two more.".to_owned(),
        reasoning: "H".to_owned(),
        status: MessageStatus::Complete,
        run: None,
        error: None,
        resume: None,
    };
    let (message, _) = store.finish_turn(begun.assistant.id, &ended).await.unwrap();
    store.close().await;
    let store = Store::open(dir.path()).await.unwrap();
    assert_eq!(store.message_origin(message.id).await.unwrap(), origin);
    assert_eq!(
        store.message_origin(begun.user.id).await.unwrap(),
        Provenance::default()
    );
    assert!(matches!(store.message_origin(99).await, Err(Error::NoMessage(99))));

    let reply_of = async |chat_id| store.open_chat(chat_id).await.unwrap().messages.pop().unwrap().id;
    let copy = store.duplicate_chat(begun.chat.id, "u").await.unwrap();
    assert_eq!(store.message_origin(reply_of(copy.id).await).await.unwrap(), origin);

    let file = app::transfer::export(&[store.export_chat(begun.chat.id).await.unwrap()], ExportFormat::Json);
    let mut found = app::transfer::import(&file).unwrap().chats;
    let back = store.import_chat(&found[0]).await.unwrap();
    assert_eq!(store.message_origin(reply_of(back.id).await).await.unwrap(), origin);
    // What another program wrote there costs the chat nothing else.
    found[0].messages[1].origin = Some("[1]".to_owned());
    let back = store.import_chat(&found[0]).await.unwrap();
    assert_eq!(
        store.message_origin(reply_of(back.id).await).await.unwrap(),
        Provenance::default()
    );

    // Of an earlier version: by round.
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(dir.path().join("history.db")))
        .await
        .unwrap();
    sqlx::query("UPDATE messages SET origin = NULL, rounds = '[[9,3,2,2]]' WHERE id = ?")
        .bind(message.id)
        .execute(&pool)
        .await
        .unwrap();
    let old = RoundText {
        length: 9,
        tokens: 3,
        drafted: 2,
        accepted: 2,
        ..RoundText::default()
    };
    assert_eq!(store.message_origin(message.id).await.unwrap().rounds, [old.clone()]);
    let copy = store.duplicate_chat(begun.chat.id, "v").await.unwrap();
    assert_eq!(
        store.message_origin(reply_of(copy.id).await).await.unwrap().rounds,
        [old]
    );
}
