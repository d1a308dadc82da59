//! The history on real SQLite files.

use std::path::Path;

use app::ipc::{
    AppError, ExactnessChoice, KvChoice, MessageStatus, Provenance, Role, Run, Settings, SpeculationChoice,
};
use app::store::{Ending, Error, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

async fn open(dir: &TempDir) -> Store {
    Store::open(dir.path()).await.unwrap()
}

async fn raw(dir: &Path) -> SqlitePool {
    SqlitePool::connect_with(SqliteConnectOptions::new().filename(dir.join("history.db")))
        .await
        .unwrap()
}

async fn number(pool: &SqlitePool, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

fn run() -> Run {
    Run {
        model: "tiny".to_owned(),
        speculating: true,
        state: "fixed".to_owned(),
        sentence: "on: 2 drafts a round, as asked".to_owned(),
        reason: None,
        exactness: ExactnessChoice::Fast,
        exactness_sentence: "fast: here it is as exact as exact mode".to_owned(),
        plain_rounds: 2,
        drafted_per_round: vec![2, 2, 2],
        block_size: 3,
        wiring: Some("sglang".to_owned()),
        prompt_tokens: 20,
        tokens: 7,
        prefill_ms: 1.5,
        ttft_ms: 2.5,
        decode_ms: 30.25,
        tokens_per_second: 198.3,
        rounds: 3,
        drafted: 6,
        accepted: 4,
        acceptance_rate: 4.0 / 6.0,
        tokens_per_round: 7.0 / 3.0,
        acceptance_by_position: vec![1.0, 1.0 / 3.0],
        accepted_per_round: vec![2, 1, 1],
        seed: 9_007_199_254_740_991.0,
    }
}

fn ending(content: &str, status: MessageStatus) -> Ending {
    Ending {
        content: content.to_owned(),
        reasoning: String::new(),
        status,
        run: None,
        error: None,
        resume: None,
        origin: Provenance::default(),
    }
}

#[tokio::test]
async fn a_turn_is_kept_with_its_figures() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let begun = store.begin_turn(None, "A title", "hello").await.unwrap();
    assert_eq!(begun.chat.title, "A title");
    assert_eq!(
        (begun.user.role, begun.user.status),
        (Role::User, MessageStatus::Complete)
    );
    assert_eq!(
        (begun.assistant.role, begun.assistant.status),
        (Role::Assistant, MessageStatus::Streaming)
    );
    assert_eq!(begun.history, std::slice::from_ref(&begun.user));

    let end = Ending {
        content: "hi — there".to_owned(),
        reasoning: "hm".to_owned(),
        status: MessageStatus::Length,
        run: Some(run()),
        error: None,
        resume: None,
        origin: Provenance::default(),
    };
    let (message, chat) = store.finish_turn(begun.assistant.id, &end).await.unwrap();
    assert!(chat.updated_at >= begun.chat.updated_at);
    store.close().await;
    drop(store);

    let chat = open(&dir).await.open_chat(chat.id).await.unwrap();
    assert_eq!(chat.messages, [begun.user, message.clone()]);
    assert_eq!(message.content, "hi — there");
    assert_eq!(message.reasoning.as_deref(), Some("hm"));
    assert_eq!(message.status, MessageStatus::Length);
    assert_eq!(
        message.run,
        Some(run()),
        "figures come back to the last bit, the seed too"
    );
}

#[tokio::test]
async fn the_message_is_on_disk_before_anything_runs() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.begin_turn(None, "t", "do not lose this").await.unwrap();
    // A second look at the files, as after a crash: nothing of the first connection helps it.
    let copy = TempDir::new().unwrap();
    for name in ["history.db", "history.db-wal"] {
        std::fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    let pool = raw(copy.path()).await;
    let content: String = sqlx::query_scalar("SELECT content FROM messages WHERE role = 'user'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(content, "do not lose this");
    assert_eq!(
        sqlx::query_scalar::<_, String>("PRAGMA journal_mode")
            .fetch_one(&pool)
            .await
            .unwrap(),
        "wal"
    );
}

#[tokio::test]
async fn failures_keep_the_partial_reply_and_the_error() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let begun = store.begin_turn(None, "t", "x").await.unwrap();
    store
        .save_partial(begun.assistant.id, "half an ans", "", &[])
        .await
        .unwrap();
    let seen = store.open_chat(begun.chat.id).await.unwrap().messages.pop().unwrap();
    assert_eq!(
        (seen.content.as_str(), seen.status),
        ("half an ans", MessageStatus::Streaming)
    );

    let error = AppError {
        kind: "backend".to_owned(),
        message: "it broke".to_owned(),
        hint: Some("h".to_owned()),
    };
    let end = Ending {
        error: Some(error.clone()),
        ..ending("half an answ", MessageStatus::Failed)
    };
    store.finish_turn(begun.assistant.id, &end).await.unwrap();
    let kept = store.open_chat(begun.chat.id).await.unwrap().messages.pop().unwrap();
    assert_eq!(
        (kept.content.as_str(), kept.status),
        ("half an answ", MessageStatus::Failed)
    );
    assert_eq!(kept.error, Some(error));
    // An ended reply takes nothing more.
    store.save_partial(begun.assistant.id, "other", "", &[]).await.unwrap();
    assert!(matches!(
        store.finish_turn(begun.assistant.id, &end).await,
        Err(Error::NoMessage(_))
    ));
    assert_eq!(
        store.open_chat(begun.chat.id).await.unwrap().messages.pop().unwrap(),
        kept
    );
}

#[tokio::test]
async fn a_reply_of_a_dead_owner_becomes_interrupted_a_living_ones_does_not() {
    let dir = TempDir::new().unwrap();
    let first = open(&dir).await;
    let begun = first.begin_turn(None, "t", "x").await.unwrap();
    first
        .save_partial(begun.assistant.id, "some text", "", &[])
        .await
        .unwrap();

    let second = open(&dir).await;
    let status = |chat: app::ipc::Chat| chat.messages.last().unwrap().status;
    assert_eq!(
        status(second.open_chat(begun.chat.id).await.unwrap()),
        MessageStatus::Streaming
    );
    assert!(matches!(
        second.begin_turn(Some(begun.chat.id), "", "y").await,
        Err(Error::ChatBusy)
    ));
    assert!(matches!(
        second.begin_again(begun.assistant.id).await,
        Err(Error::ChatBusy)
    ));
    // Another chat is free, and the first process goes on undisturbed.
    second.begin_turn(None, "other", "y").await.unwrap();
    first
        .save_partial(begun.assistant.id, "some more text", "", &[])
        .await
        .unwrap();

    first.close().await;
    drop(first);
    let chat = second.open_chat(begun.chat.id).await.unwrap();
    assert_eq!(chat.messages.last().unwrap().content, "some more text");
    assert_eq!(status(chat), MessageStatus::Interrupted);
    second.begin_turn(Some(begun.chat.id), "", "again").await.unwrap();
}

#[tokio::test]
async fn chats_are_listed_by_last_use_and_renamed() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let mut chats = Vec::new();
    for title in ["a", "b", "c"] {
        let begun = store.begin_turn(None, title, "x").await.unwrap();
        store
            .finish_turn(begun.assistant.id, &ending("y", MessageStatus::Complete))
            .await
            .unwrap();
        chats.push(begun.chat.id);
    }
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    store.begin_turn(Some(chats[0]), "", "again").await.unwrap();
    assert_eq!(store.rename_chat(chats[1], "new name").await.unwrap().title, "new name");
    let titles: Vec<_> = store
        .list_chats()
        .await
        .unwrap()
        .into_iter()
        .map(|chat| chat.title)
        .collect();
    assert_eq!(titles, ["a", "c", "new name"], "renaming is not using");
    assert!(matches!(store.rename_chat(99, "x").await, Err(Error::NoChat(99))));
}

#[tokio::test]
async fn a_newer_database_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.begin_turn(None, "t", "precious").await.unwrap();
    store.close().await;
    let pool = raw(dir.path()).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'later', 1, x'00', 0)",
    )
    .execute(&pool)
    .await
    .unwrap();
    let error = Store::open(dir.path()).await.err().unwrap();
    assert!(matches!(error, Error::Newer { found: 9999, .. }), "{error}");
    let shown = AppError::from(error);
    assert_eq!(shown.kind, "newer_database");
    assert!(shown.hint.unwrap().contains("update"));
    assert_eq!(
        number(&pool, "SELECT count(*) FROM messages WHERE content = 'precious'").await,
        1
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    std::fs::write(
        dir.path().join("history.db"),
        "not a database, but somebody's file ".repeat(50),
    )
    .unwrap();
    let shown = AppError::from(Store::open(dir.path()).await.err().unwrap());
    assert_eq!(shown.kind, "database");
    assert!(
        std::fs::read_to_string(dir.path().join("history.db"))
            .unwrap()
            .starts_with("not a database")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_open_a_new_history_at_once_and_write_to_it() {
    let dir = TempDir::new().unwrap();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let path = dir.path().to_owned();
            tokio::spawn(async move {
                let store = Store::open(&path).await.unwrap();
                for turn in 0..20 {
                    let begun = store.begin_turn(None, &format!("{writer}.{turn}"), "x").await.unwrap();
                    store.save_partial(begun.assistant.id, "y", "", &[]).await.unwrap();
                    store
                        .finish_turn(begun.assistant.id, &ending("yy", MessageStatus::Complete))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let pool = raw(dir.path()).await;
    assert_eq!(
        number(
            &pool,
            "SELECT count(*) FROM messages WHERE content = 'yy' AND status = 'complete'"
        )
        .await,
        80
    );
}

#[tokio::test]
async fn settings_are_kept_and_the_model_is_the_loads_alone() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    assert_eq!(store.settings().await.unwrap(), Settings::default());
    let mut settings = Settings {
        theme: "dark".to_owned(),
        welcomed: true,
        sidebar: false,
        language: "de".to_owned(),
        kv: KvChoice::Four,
        memory_limit_gb: Some(24.5),
        ..Settings::default()
    };
    settings.options.speculation = SpeculationChoice::Block { size: 5 };
    settings.options.temperature = Some(0.7);
    settings.options.seed = Some(9_007_199_254_740_991.0);
    assert_eq!(store.update_settings(&settings).await.unwrap(), settings);

    store.choose_model("/models/a", None).await.unwrap();
    store.choose_model("/models/b", Some("/models/b-mtp")).await.unwrap();
    store.choose_model("/models/a", None).await.unwrap();
    // A window with an older copy writes it back.
    let kept = store.update_settings(&settings).await.unwrap();
    assert_eq!(
        kept,
        Settings {
            model: "/models/a".to_owned(),
            ..settings.clone()
        }
    );
    let remembered = store.remembered_models().await.unwrap();
    let pairs: Vec<_> = remembered
        .iter()
        .map(|known| (known.path.as_str(), known.drafter.as_deref()))
        .collect();
    assert_eq!(pairs, [("/models/a", None), ("/models/b", Some("/models/b-mtp"))]);

    // A value of another version costs that value alone.
    let pool = raw(dir.path()).await;
    sqlx::query("UPDATE settings SET value = '{\"new\": \"form\"}' WHERE key = 'theme'")
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("INSERT INTO settings VALUES ('unknown', '[1]'), ('broken', '{')")
        .execute(&pool)
        .await
        .unwrap();
    let read = store.settings().await.unwrap();
    assert_eq!(
        read,
        Settings {
            theme: "system".to_owned(),
            model: "/models/a".to_owned(),
            ..settings
        }
    );
}

#[tokio::test]
async fn measured_wirings_add_up_and_are_kept_by_pair() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let run = run();
    for _ in 0..2 {
        store.add_wiring("/a", None, &run).await.unwrap();
    }
    store.add_wiring("/a", Some("/head"), &run).await.unwrap();
    let without = app::ipc::Run {
        wiring: None,
        ..run.clone()
    };
    store.add_wiring("/a", None, &without).await.unwrap();
    store.close().await;
    let store = Store::open(dir.path()).await.unwrap();
    let own = store.wirings("/a", None).await.unwrap();
    let (rounds, drafted, accepted) = (run.rounds as usize, run.drafted as usize, run.accepted as usize);
    assert_eq!(own.len(), 1);
    assert_eq!(
        (own[0].name.as_str(), own[0].rounds, own[0].drafted, own[0].accepted),
        ("sglang", 2 * rounds, 2 * drafted, 2 * accepted)
    );
    assert_eq!(store.wirings("/a", Some("/head")).await.unwrap()[0].rounds, rounds);
    assert!(store.wirings("/b", None).await.unwrap().is_empty());
}
