//! Streaming, the switch, stop, regenerate.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use app::ipc::{MessageStatus, SpeculationChoice, TurnEvent, TurnOptions};
use app::library::BUILTIN;
use app::store::Store;

use super::{App, Heard, QUESTION, STORY, endless, greedy, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_says_little_gets_a_title_from_its_exchange() {
    let app = App::with_builtin().await;
    let heard = Heard::default();
    let reply = app
        .state
        .turns
        .send(None, "Hello", &greedy(), heard.listener())
        .await
        .unwrap();
    let title = app::turn::title_of_exchange("Hello", &reply.content);
    assert_ne!(title, "Hello", "{}", reply.content);
    let chats = app.state.store.list_chats().await.unwrap();
    assert_eq!(chats[0].title, title);
    let Some(TurnEvent::Done { chat, .. }) = heard.events().pop() else {
        panic!("no end")
    };
    assert_eq!(chat, chats[0]);
    // A name that the person gave stays.
    app.state.store.rename_chat(chat.id, "Mine").await.unwrap();
    app.state
        .turns
        .regenerate(reply.id, &greedy(), Heard::default().listener())
        .await
        .unwrap();
    assert_eq!(app.state.store.list_chats().await.unwrap()[0].title, "Mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_streams_and_is_stored() {
    let app = App::with_builtin().await;
    let heard = Heard::default();
    let stored_at_start = Arc::new(Mutex::new(Vec::new()));
    let (seen, path) = (stored_at_start.clone(), app.dir.path().to_owned());
    let listener = heard.listener_with(move |event| {
        if let TurnEvent::Started { chat, .. } = event {
            let (path, id) = (path.clone(), chat.id);
            // As another process would see it.
            let look = async move { Store::open(&path).await.unwrap().open_chat(id).await.unwrap() };
            *seen.lock().unwrap() =
                tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(look)).messages;
        }
    });
    let message = app.state.turns.send(None, QUESTION, &greedy(), listener).await.unwrap();

    heard.assert_order();
    let before = std::mem::take(&mut *stored_at_start.lock().unwrap());
    assert_eq!(before.len(), 2, "both messages are on disk before anything runs");
    assert_eq!(
        (before[0].content.as_str(), before[1].status),
        (QUESTION, MessageStatus::Streaming)
    );
    assert!(message.content.contains("Paris"), "{}", message.content);
    assert_eq!(message.status, MessageStatus::Complete);
    assert_eq!(
        heard.texts(),
        (message.reasoning.clone().unwrap_or_default(), message.content.clone())
    );
    assert_eq!(heard.chat().title, QUESTION);
    let run = message.run.clone().unwrap();
    // Whether drafts pay is the machine's affair; what is said of it fits what was done.
    assert!(run.speculating && run.reason.is_none(), "{run:?}");
    assert!(["on", "parked", "probing"].contains(&run.state.as_str()), "{run:?}");
    assert!(
        run.sentence.starts_with(&run.state) && run.exactness_sentence.starts_with("exact"),
        "{run:?}"
    );
    assert!(
        run.tokens > 0 && run.rounds + run.plain_rounds > 0 && run.drafted >= run.accepted && run.prompt_tokens > 5,
        "{run:?}"
    );
    assert_eq!(run.drafted_per_round.iter().sum::<u32>(), run.drafted);
    assert_eq!(run.drafted_per_round.len(), run.accepted_per_round.len());
    assert_eq!(run.accepted_per_round.iter().sum::<u32>(), run.accepted);
    assert_eq!(app.messages(heard.chat().id).await.last(), Some(&message));
    assert!(matches!(heard.events().last(), Some(TurnEvent::Done { message: told, .. }) if *told == message));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_changes_the_figures_and_not_the_text() {
    let app = App::with_builtin().await;
    let mut texts = Vec::new();
    for speculation in [
        SpeculationChoice::Auto,
        SpeculationChoice::Off,
        SpeculationChoice::Block { size: 5 },
    ] {
        let options = TurnOptions {
            speculation,
            temperature: Some(0.8),
            seed: Some(3.0),
            max_tokens: Some(60),
            ..TurnOptions::default()
        };
        let message = app
            .state
            .turns
            .send(None, STORY, &options, Heard::default().listener())
            .await
            .unwrap();
        let run = message.run.unwrap();
        assert_eq!(run.seed, 3.0);
        match speculation {
            SpeculationChoice::Off => {
                assert!(!run.speculating && run.drafted == 0, "{run:?}");
                assert_eq!(run.block_size, 1);
                assert!(run.reason.is_some());
            }
            SpeculationChoice::Auto => assert!(run.speculating),
            SpeculationChoice::Block { size } => assert_eq!((run.speculating, run.block_size), (true, size)),
        }
        texts.push(message.content);
    }
    assert!(
        texts.iter().all(|text| *text == texts[0] && text.len() > 40),
        "{texts:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_keeps_what_there_is_and_the_next_message_works() {
    let app = App::with_builtin().await;
    let heard = Heard::default();
    let turns = app.state.turns.clone();
    let listener = heard.listener_with(move |event| {
        if matches!(event, TurnEvent::Delta { .. }) {
            turns.stop();
        }
    });
    let message = app.state.turns.send(None, STORY, &endless(), listener).await.unwrap();
    heard.assert_order();
    assert_eq!(message.status, MessageStatus::Stopped);
    assert!(!message.content.is_empty());
    assert_eq!(heard.texts().1, message.content);
    let tokens = message.run.unwrap().tokens;
    assert!(tokens < 1000, "stopped after {tokens} tokens");
    let next = app
        .state
        .turns
        .send(Some(message.chat_id), QUESTION, &greedy(), Heard::default().listener())
        .await;
    assert_eq!(next.unwrap().status, MessageStatus::Complete);
    assert_eq!(app.messages(message.chat_id).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_before_the_first_token_works_too() {
    let app = App::with_builtin().await;
    let turns = app.state.turns.clone();
    let heard = Heard::default();
    let listener = heard.listener_with(move |event| {
        if matches!(event, TurnEvent::Started { .. }) {
            turns.stop();
        }
    });
    let message = app.state.turns.send(None, STORY, &endless(), listener).await.unwrap();
    assert_eq!(message.status, MessageStatus::Stopped);
    assert!(!app.state.turns.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_at_most_thirty_times_a_second_and_lose_no_text() {
    let app = App::with_builtin().await;
    app.state.library.ready().await.unwrap();
    let heard = Heard::default();
    let options = TurnOptions {
        max_tokens: Some(80),
        ..endless()
    };
    let message = app
        .state
        .turns
        .send(None, STORY, &options, heard.listener())
        .await
        .unwrap();
    assert_eq!(message.status, MessageStatus::Length);
    assert_eq!(heard.texts().1, message.content);
    let times: Vec<_> = heard
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|(_, event)| matches!(event, TurnEvent::Delta { .. }))
        .map(|(time, _)| *time)
        .collect();
    assert!(times.len() > 3, "only {} deltas", times.len());
    // The last one comes with the end, whenever that is.
    let close = times[..times.len() - 1]
        .windows(2)
        .filter(|pair| pair[1] - pair[0] < Duration::from_millis(30))
        .count();
    assert_eq!(close, 0, "{close} of {} deltas came too early", times.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_goes_away_does_not_end_the_turn() {
    let app = App::with_builtin().await;
    let mut events = 0;
    let listener = Box::new(move |_| {
        events += 1;
        assert!(events <= 2, "nothing is sent to a window that is gone");
        events < 2
    });
    let message = app.state.turns.send(None, QUESTION, &greedy(), listener).await.unwrap();
    assert_eq!(message.status, MessageStatus::Complete);
    assert_eq!(app.messages(message.chat_id).await.last(), Some(&message));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_turn_runs_at_a_time() {
    let app = App::with_builtin().await;
    let heard = Heard::default();
    let (state, listener) = (app.state.clone(), heard.listener());
    let first = tokio::spawn(async move { state.turns.send(None, STORY, &endless(), listener).await });
    until(|| app.state.turns.is_running()).await;
    let second = Heard::default();
    let error = app
        .state
        .turns
        .send(None, QUESTION, &greedy(), second.listener())
        .await
        .unwrap_err();
    assert_eq!(error.kind, "busy");
    assert!(error.hint.is_some());
    assert!(matches!(&second.events()[..], [TurnEvent::Failed { error, message: None }] if error.kind == "busy"));
    assert_eq!(app.state.load_model(BUILTIN, None).await.unwrap_err().kind, "busy");
    assert_eq!(app.state.unload_model().await.unwrap_err().kind, "busy");
    until(|| !heard.texts().1.is_empty()).await;
    let chat = heard.chat().id;
    // Deleting the chat ends its turn first.
    app.state.delete_chat(chat).await.unwrap();
    let _ = first.await.unwrap();
    assert!(
        app.state.store.list_chats().await.unwrap().is_empty(),
        "the refused message left nothing behind"
    );
    app.state
        .turns
        .send(None, QUESTION, &greedy(), Heard::default().listener())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_regenerated_in_its_place() {
    let app = App::with_builtin().await;
    let first = app
        .state
        .turns
        .send(None, QUESTION, &greedy(), Heard::default().listener())
        .await
        .unwrap();
    let heard = Heard::default();
    let options = TurnOptions {
        speculation: SpeculationChoice::Off,
        ..greedy()
    };
    let again = app
        .state
        .turns
        .regenerate(first.id, &options, heard.listener())
        .await
        .unwrap();
    heard.assert_order();
    assert_eq!(again.content, first.content, "the same question, the same answer");
    assert_eq!(again.versions, [first.id, again.id], "the first is kept");
    assert!(!again.run.unwrap().speculating);
    assert_eq!(app.messages(first.chat_id).await.len(), 2);
    let error = app
        .state
        .turns
        .regenerate(first.id - 1, &options, Heard::default().listener())
        .await
        .unwrap_err();
    assert_eq!(error.kind, "not_a_reply");
}
