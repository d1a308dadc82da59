//! What is set for memory, and the data folder.

use app::ipc::{KvChoice, ModelStatus, Settings, TurnOptions, Verdict};
use app::library::BUILTIN;
use app::state::AppState;

use super::{App, Heard, QUESTION, greedy};

async fn set(state: &AppState, change: impl FnOnce(&mut Settings)) {
    let mut settings = state.store.settings().await.unwrap();
    change(&mut settings);
    assert_eq!(state.store.update_settings(&settings).await.unwrap(), settings);
}

/// How keys and values are held is settled at the load, and told.
#[tokio::test(flavor = "multi_thread")]
async fn keys_and_values_are_held_as_the_settings_say() {
    let app = App::with_builtin().await;
    assert_eq!(app.state.library.ready().await.unwrap().kv, KvChoice::Plain);
    for (kv, words) in [(KvChoice::Eight, "in 8 bits"), (KvChoice::Four, "in 4 bits")] {
        set(&app.state, |settings| {
            settings.kv = kv;
            settings.memory_limit_gb = Some(64.0);
        })
        .await;
        let still = app.state.library.ready().await.unwrap();
        assert_ne!(still.kv, kv, "it waits for a load");
        let status = app.state.load_model(BUILTIN, None).await.unwrap();
        assert!(
            matches!(status, ModelStatus::Ready { kv: held, .. } if held == kv),
            "{status:?}"
        );
        let ready = app.state.library.ready().await.unwrap();
        assert!(ready.loaded.check_key.contains(words), "{}", ready.loaded.check_key);
    }
    let cut = TurnOptions {
        max_tokens: Some(4),
        ..greedy()
    };
    let listener = Heard::default().listener();
    let reply = app.state.turns.send(None, QUESTION, &cut, listener).await.unwrap();
    assert!(reply.can_continue && !reply.content.is_empty());
    // What was begun so goes on so, or not at all.
    set(&app.state, |settings| settings.kv = KvChoice::Plain).await;
    app.state.load_model(BUILTIN, None).await.unwrap();
    let listener = Heard::default().listener();
    let refused = app.state.turns.go_on(reply.id, &greedy(), listener).await.unwrap_err();
    assert_eq!(refused.kind, "other_kv");
    assert!(refused.message.ends_with("in 4 bits"), "{}", refused.message);
}

/// Rows of 16 numbers cannot be packed: the model is loaded all the same, and says that it holds them as they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_pack_is_loaded_without() {
    let app = App::empty().await;
    set(&app.state, |settings| settings.kv = KvChoice::Eight).await;
    let model = tests::golden("inkling").join("hf");
    app.state.load_model(&model.to_string_lossy(), None).await.unwrap();
    let ready = app.state.library.ready().await.unwrap();
    assert_eq!(ready.kv, KvChoice::Plain);
    let mut warnings = ready.loaded.warnings.iter();
    assert!(
        warnings.any(|warning| warning.contains("held as they are")),
        "{:?}",
        ready.loaded.warnings
    );
}

/// The shelf and the catalogue judge by the limit that is set now.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_the_limit_is_too_large() {
    let app = App::empty().await;
    let builtin = async || app.state.models().await.unwrap().shelf.models.remove(0).memory;
    let before = builtin().await;
    assert_eq!((before.verdict, before.limit), (Verdict::Fits, None));
    set(&app.state, |settings| settings.memory_limit_gb = Some(0.001)).await;
    let limited = builtin().await;
    assert_eq!((limited.verdict, limited.limit), (Verdict::TooLarge, Some(1e6)));
    let catalog = app.state.models().await.unwrap().catalog.unwrap();
    assert!(catalog.pairs.iter().all(|pair| !pair.recommended));
    for nonsense in [0.0, -1.0] {
        set(&app.state, |settings| settings.memory_limit_gb = Some(nonsense)).await;
        assert_eq!(builtin().await.verdict, Verdict::Fits, "{nonsense} is no limit");
    }
}

#[tokio::test]
async fn the_data_folder_is_told_and_deleted_chats_are_removed_for_good() {
    let app = App::empty().await;
    let folder = app.state.data_folder().await.unwrap();
    assert_eq!(folder.path, app.dir.path().display().to_string());
    assert!(!folder.chosen && folder.variable == "SLIPSTREAM_DATA_DIR");
    let turn = app.state.store.begin_turn(None, "t", QUESTION).await.unwrap();
    app.state.delete_chat(turn.chat.id).await.unwrap();
    assert_eq!(app.state.data_folder().await.unwrap().deleted_chats, 1);
    app.state.store.purge().await.unwrap();
    assert_eq!(app.state.data_folder().await.unwrap().deleted_chats, 0);
    assert!(app.state.store.restore_chat(turn.chat.id).await.is_err());
}
