//! Chat turns with the real engine and the built-in model, on real SQLite files.

mod answers;
mod branches;
mod failures;
mod memory;
mod replies;
mod settings;
mod thinking;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use app::ipc::{ChatSummary, Message, TurnEvent, TurnOptions};
use app::library::Assets;
use app::state::AppState;
use app::turn::Listener;
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

    /// What each token of a reply showed of its answer.
    async fn pieces(&self, message_id: i32) -> Vec<u32> {
        let origin = self.state.store.message_origin(message_id).await.unwrap();
        origin.rounds.into_iter().flat_map(|round| round.pieces).collect()
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

async fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited for a minute");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
