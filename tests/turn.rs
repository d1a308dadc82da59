//! Chat turns with the real engine and the built-in model, on real SQLite files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use app::ipc::{ChatSummary, Message, MessageStatus, ModelStatus, SpeculationChoice, TurnEvent, TurnOptions};
use app::library::{Assets, BUILTIN};
use app::state::AppState;
use app::store::Store;
use app::turn::{Listener, title_of};
use safetensors::{SafeTensors, tensor::TensorView};
use tempfile::TempDir;

/// One engine at a time: the tests of this module share the machine's few cores.
static ONE_ENGINE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const QUESTION: &str = "What is the capital of France?";
const STORY: &str = "Tell me a story about a fox.";

struct App {
    state: AppState,
    dir: TempDir,
    _one_engine: tokio::sync::MutexGuard<'static, ()>,
}

impl App {
    async fn with_builtin() -> App {
        let app = App::empty().await;
        app.state.library.start().await.unwrap();
        app
    }

    async fn empty() -> App {
        let one_engine = ONE_ENGINE.lock().await;
        let dir = TempDir::new().unwrap();
        let state = AppState::open_in(dir.path(), Assets::in_dir(&assets())).await.unwrap();
        App {
            state,
            dir,
            _one_engine: one_engine,
        }
    }

    async fn messages(&self, chat_id: i32) -> Vec<Message> {
        self.state.store.open_chat(chat_id).await.unwrap().messages
    }
}

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets")
}

/// Keeps events with their time.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<(Instant, TurnEvent)>>>);

impl Heard {
    fn listener(&self) -> Listener {
        self.listener_with(|_| ())
    }

    fn listener_with(&self, react: impl Fn(&TurnEvent) + Send + 'static) -> Listener {
        let heard = self.0.clone();
        Box::new(move |event| {
            react(&event);
            heard.lock().unwrap().push((Instant::now(), event));
            true
        })
    }

    fn events(&self) -> Vec<TurnEvent> {
        self.0.lock().unwrap().iter().map(|(_, event)| event.clone()).collect()
    }

    fn chat(&self) -> ChatSummary {
        match self.events().first() {
            Some(TurnEvent::Started { chat, .. }) => chat.clone(),
            other => panic!("the first event is {other:?}"),
        }
    }

    /// The deltas put together: thinking and answer.
    fn texts(&self) -> (String, String) {
        let mut texts = (String::new(), String::new());
        for event in self.events() {
            if let TurnEvent::Delta { reasoning, answer, .. } = event {
                texts.0.push_str(&reasoning);
                texts.1.push_str(&answer);
            }
        }
        texts
    }

    /// `started`, `prefill`*, `delta`*, then one of the ends, and nothing after it.
    fn assert_order(&self) {
        let name = |event: &TurnEvent| match event {
            TurnEvent::Started { .. } => 's',
            TurnEvent::Prefill { .. } => 'p',
            TurnEvent::Delta { .. } => 'd',
            TurnEvent::Done { .. } | TurnEvent::Failed { .. } => 'e',
        };
        let order: String = self.events().iter().map(name).collect();
        let middle = order.strip_prefix('s').and_then(|rest| rest.strip_suffix('e'));
        let middle = middle.unwrap_or_else(|| panic!("events came as {order}"));
        assert!(
            middle.trim_start_matches('p').trim_start_matches('d').is_empty(),
            "events came as {order}"
        );
    }
}

fn greedy() -> TurnOptions {
    TurnOptions {
        temperature: Some(0.0),
        ..TurnOptions::default()
    }
}

/// Hot enough to wander on for as long as it may.
fn endless() -> TurnOptions {
    TurnOptions {
        temperature: Some(50.0),
        top_p: Some(1.0),
        top_k: Some(0),
        min_p: Some(0.0),
        seed: Some(7.0),
        ..TurnOptions::default()
    }
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
    assert!(run.speculating && run.block_size > 1 && run.reason.is_none(), "{run:?}");
    assert!(
        run.tokens > 0 && run.rounds > 0 && run.drafted >= run.accepted && run.prompt_tokens > 5,
        "{run:?}"
    );
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
    assert_eq!(
        (again.id, &again.content),
        (first.id, &first.content),
        "the same question, the same answer"
    );
    assert!(!again.run.unwrap().speculating);
    assert_eq!(app.messages(first.chat_id).await.len(), 2);
    let error = app
        .state
        .turns
        .regenerate(first.id - 1, &options, Heard::default().listener())
        .await
        .unwrap_err();
    assert_eq!(error.kind, "not_last_reply");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_a_turn_fails_with_the_reason_and_the_next_one_works() {
    let app = App::empty().await;
    let heard = Heard::default();
    let error = app
        .state
        .turns
        .send(None, QUESTION, &greedy(), heard.listener())
        .await
        .unwrap_err();
    assert_eq!(error.kind, "not_loaded");
    let chat = heard.chat().id;

    let nothing = TempDir::new().unwrap();
    let path = nothing.path().to_string_lossy().into_owned();
    let refused = app.state.load_model(&path, None).await.unwrap_err();
    assert!(matches!(app.state.library.status(), ModelStatus::Failed { error, .. } if error == refused));
    let heard = Heard::default();
    let error = app
        .state
        .turns
        .send(Some(chat), QUESTION, &greedy(), heard.listener())
        .await
        .unwrap_err();
    assert_eq!(error, refused);
    assert!(error.hint.is_some());
    heard.assert_order();
    let kept = app.messages(chat).await.pop().unwrap();
    assert_eq!((kept.status, kept.error), (MessageStatus::Failed, Some(refused)));
    assert_eq!(
        app.state.store.settings().await.unwrap().model,
        BUILTIN,
        "what cannot be loaded is not remembered"
    );

    app.state.load_model(BUILTIN, None).await.unwrap();
    let message = app
        .state
        .turns
        .send(Some(chat), QUESTION, &greedy(), Heard::default().listener())
        .await
        .unwrap();
    assert!(message.content.contains("Paris"), "{}", message.content);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_too_long_fails_and_the_chat_list_stays_usable() {
    let app = App::with_builtin().await;
    let heard = Heard::default();
    let long = "word ".repeat(20_000);
    let error = app
        .state
        .turns
        .send(None, &long, &greedy(), heard.listener())
        .await
        .unwrap_err();
    assert_eq!(error.kind, "context_full");
    heard.assert_order();
    assert!(
        matches!(heard.events().last(), Some(TurnEvent::Failed { message: Some(message), .. }) if message.status == MessageStatus::Failed)
    );
    let next = app
        .state
        .turns
        .send(None, QUESTION, &greedy(), Heard::default().listener())
        .await
        .unwrap();
    assert_eq!(next.status, MessageStatus::Complete);
}

/// The built-in target, but reading `token` makes every later logit a NaN: its embedding row is damaged, and the
/// output head, tied to it before, is a copy that is not.
fn damage(dir: &Path, token: usize) {
    let source = assets().join("builtin/target");
    for name in [
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "generation_config.json",
    ] {
        std::fs::copy(source.join(name), dir.join(name)).unwrap();
    }
    let config = std::fs::read_to_string(source.join("config.json")).unwrap();
    let untied = config.replace(r#""tie_word_embeddings": true"#, r#""tie_word_embeddings": false"#);
    assert_ne!(config, untied);
    std::fs::write(dir.join("config.json"), untied).unwrap();

    let bytes = std::fs::read(source.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut written = Vec::new();
    for (name, view) in tensors.tensors() {
        let mut data = view.data().to_vec();
        if let Some(part) = name.strip_prefix("language_model.model.embed_tokens.") {
            written.push((
                format!("language_model.lm_head.{part}"),
                view.dtype(),
                view.shape().to_vec(),
                data.clone(),
            ));
            if part == "scales" {
                let row = data.len() / view.shape()[0];
                for value in data[token * row..(token + 1) * row].chunks_exact_mut(2) {
                    value.copy_from_slice(&0x7fc0_u16.to_le_bytes());
                }
            }
        }
        written.push((name, view.dtype(), view.shape().to_vec(), data));
    }
    let views = written
        .iter()
        .map(|(name, dtype, shape, data)| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    safetensors::serialize_to_file(views, None, &dir.join("model.safetensors")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_keeps_what_there_is_and_the_next_message_works() {
    let app = App::with_builtin().await;
    let short = TurnOptions {
        max_tokens: Some(40),
        ..greedy()
    };
    let whole = app
        .state
        .turns
        .send(None, STORY, &short, Heard::default().listener())
        .await
        .unwrap()
        .content;
    // A token of the reply that comes some way into it, and neither before nor in the question.
    let token = late_token();
    let dir = TempDir::new().unwrap();
    damage(dir.path(), token);
    app.state.load_model(&dir.path().to_string_lossy(), None).await.unwrap();
    let heard = Heard::default();
    let error = app
        .state
        .turns
        .send(None, STORY, &short, heard.listener())
        .await
        .unwrap_err();
    assert_eq!(error.kind, "non_finite_logits");
    heard.assert_order();
    let kept = app.messages(heard.chat().id).await.pop().unwrap();
    assert_eq!(
        (kept.status, kept.error.as_ref()),
        (MessageStatus::Failed, Some(&error))
    );
    assert!(kept.content.len() > 10 && whole.starts_with(&kept.content), "{kept:?}");
    assert_eq!(heard.texts().1, kept.content);
    assert!(kept.run.unwrap().tokens > 5);
    app.state.load_model(BUILTIN, None).await.unwrap();
    let chat = Some(heard.chat().id);
    let next = app
        .state
        .turns
        .send(chat, QUESTION, &greedy(), Heard::default().listener())
        .await
        .unwrap();
    assert_eq!(next.status, MessageStatus::Complete);
}

/// The id of a token that the built-in model's greedy answer to [`STORY`] has some way in.
fn late_token() -> usize {
    let engine = models::Engine::start();
    let target = assets().join("builtin/target");
    engine
        .load(models::LoadRequest {
            target,
            ..models::LoadRequest::default()
        })
        .unwrap();
    let message = models::Message {
        role: models::Role::User,
        content: STORY.to_owned(),
        reasoning: None,
    };
    let request = models::GenerateRequest {
        max_tokens: Some(30),
        ..models::GenerateRequest::new(models::Prompt::Messages(vec![message]))
    };
    let tokens = engine
        .generate(request, Box::new(|_| std::ops::ControlFlow::Continue(())))
        .unwrap()
        .tokens;
    let late = (10..tokens.len())
        .find(|&index| !tokens[..index].contains(&tokens[index]))
        .unwrap();
    tokens[late] as usize
}

#[tokio::test(flavor = "multi_thread")]
async fn options_out_of_range_are_refused_before_anything_is_stored() {
    let app = App::empty().await;
    let bad = [
        TurnOptions {
            speculation: SpeculationChoice::Block { size: 1 },
            ..greedy()
        },
        TurnOptions {
            speculation: SpeculationChoice::Block { size: 17 },
            ..greedy()
        },
        TurnOptions {
            temperature: Some(-0.1),
            ..greedy()
        },
        TurnOptions {
            temperature: Some(f64::NAN),
            ..greedy()
        },
        TurnOptions {
            top_p: Some(1.5),
            ..greedy()
        },
        TurnOptions {
            min_p: Some(-1.0),
            ..greedy()
        },
        TurnOptions {
            seed: Some(0.5),
            ..greedy()
        },
        TurnOptions {
            seed: Some(9_007_199_254_740_992.0),
            ..greedy()
        },
        TurnOptions {
            max_tokens: Some(0),
            ..greedy()
        },
    ];
    for options in bad {
        let error = app
            .state
            .turns
            .send(None, QUESTION, &options, Heard::default().listener())
            .await
            .unwrap_err();
        assert_eq!(error.kind, "bad_option", "{options:?}");
    }
    let error = app
        .state
        .turns
        .send(None, " \n ", &greedy(), Heard::default().listener())
        .await
        .unwrap_err();
    assert_eq!(error.kind, "empty_message");
    assert!(app.state.store.list_chats().await.unwrap().is_empty());
    assert!(!app.state.turns.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_is_watched_from_loading_to_ready() {
    let app = App::empty().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (library, kept) = (app.state.library.clone(), seen.clone());
    let watcher = tokio::spawn(async move {
        library
            .watch(|status| {
                let settled = matches!(status, ModelStatus::Ready { .. } | ModelStatus::Failed { .. });
                kept.lock().unwrap().push(status);
                !settled
            })
            .await;
    });
    until(|| !seen.lock().unwrap().is_empty()).await;
    app.state.library.start().await.unwrap();
    watcher.await.unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(
        matches!(
            &seen[..],
            [
                ModelStatus::None,
                ModelStatus::Loading { .. },
                ModelStatus::Ready { .. }
            ]
        ),
        "{seen:?}"
    );
    let Some(ModelStatus::Ready {
        model,
        can_speculate,
        default_block_size,
        ..
    }) = seen.last()
    else {
        unreachable!()
    };
    assert_eq!(model.id, BUILTIN);
    assert!(model.note.as_ref().unwrap().contains("demonstration"));
    assert!(*can_speculate && *default_block_size > 1);
    assert!(model.bytes > 20e6);
    assert_eq!(app.state.library.list().await.unwrap(), std::slice::from_ref(model));
}

#[test]
fn titles_are_cut_at_a_word() {
    let cases = [
        ("Hello", "Hello"),
        ("  two\n\nlines\tof text ", "two lines of text"),
        (
            "exactly forty-eight characters are still a title",
            "exactly forty-eight characters are still a title",
        ),
        (
            "this one has a few more than forty-eight characters, so it is cut",
            "this one has a few more than forty-eight…",
        ),
        (
            "a sentence that ends, right before the cut point, goes on",
            "a sentence that ends, right before the cut…",
        ),
        (
            "日本語の長い文章には空白がないので、単語の境目では切れない。それでも題名は四十八文字までに収まる必要がある。",
            "",
        ),
    ];
    for (text, expected) in cases {
        let title = title_of(text);
        assert!(title.chars().count() <= 48, "{title}");
        if expected.is_empty() {
            assert_eq!(title.chars().count(), 48);
            assert!(title.ends_with('…'));
        } else {
            assert_eq!(title, expected);
        }
    }
}

async fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited for a minute");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
