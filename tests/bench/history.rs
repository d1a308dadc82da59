//! Comparisons and benchmarks of the running app: in the place of a turn, and in the history.

use std::path::Path;

use app::bench::{markdown, regressions};
use app::ipc::{Agreement, CompareEvent, CompareRequest, Comparison, TurnEvent, TurnOptions};
use app::library::Assets;
use app::state::AppState;
use app::store::Store;
use tempfile::TempDir;

use super::{STORY, short_bench};

#[tokio::test]
async fn an_updated_model_is_held_against_its_earlier_commit_arm_by_arm() {
    let report = tokio::task::spawn_blocking(short_bench).await.unwrap();
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let at = |commit: &str, only_off: bool, by: f64| {
        let mut report = report.clone();
        report.setup.target = format!("/hub/models--a--b/snapshots/{commit}");
        for arm in &mut report.arms {
            if let Some(spread) = &mut arm.figures.tokens_per_second {
                spread.values = [100.0, 100.5, 99.5].map(|rate| rate * by).to_vec();
                spread.median = 100.0 * by;
            }
        }
        report.arms.truncate(if only_off { 1 } else { 2 });
        report
    };
    store.add_bench(&at("1111111aa", false, 1.0)).await.unwrap();
    store.add_bench(&at("1111111aa", true, 0.6)).await.unwrap();
    let updated = at("2222222bb", false, 0.6);
    let id = store.add_bench(&updated).await.unwrap();
    let found = regressions(&store.benches_before(&updated, Some(id)).await.unwrap(), &updated);
    let told: Vec<_> = found
        .iter()
        .map(|one| (one.what.as_str(), one.before, one.changes.as_slice()))
        .collect();
    let commit = ["the model's commit 1111111 → 2222222".to_owned()];
    assert_eq!(told, [("tokens/s, block 2", 100.0, &commit[..])]);
    let machine = app::bench::conditions::machine_key(&updated.setup.before, &updated.setup.device);
    let pairs = store
        .measured_pairs(&machine, Some(&updated.setup.target))
        .await
        .unwrap();
    assert_eq!(pairs.len(), 2, "both commits");
    store.close().await;
}

/// The app with the built-in model loaded.
pub(super) async fn app() -> (AppState, TempDir) {
    let dir = TempDir::new().unwrap();
    let assets = Assets::in_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets"));
    let state = AppState::open_in(dir.path(), assets).await.unwrap();
    state.library.start().await.unwrap();
    (state, dir)
}

fn asked(prompt: Option<&str>, message_id: Option<i32>, repetitions: u32) -> CompareRequest {
    CompareRequest {
        message_id,
        prompt: prompt.map(str::to_owned),
        options: TurnOptions {
            temperature: Some(0.0),
            max_tokens: Some(24),
            ..TurnOptions::default()
        },
        repetitions,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_run_again_as_it_was_and_kept_in_the_history() {
    let (state, dir) = app().await;
    let options = TurnOptions {
        temperature: Some(0.0),
        seed: Some(11.0),
        max_tokens: Some(24),
        ..TurnOptions::default()
    };
    let reply = state
        .turns
        .send(None, "What is the capital of France?", &options, Box::new(|_| true))
        .await
        .unwrap();
    let mut events = Vec::new();
    let done = state
        .benches
        .compare(&asked(None, Some(reply.id), 1), |event| {
            events.push(event);
            true
        })
        .await
        .unwrap();
    assert!(
        matches!(done.agreement, Agreement::Identical { .. }),
        "{:?}",
        done.agreement
    );
    assert_eq!((done.seed, done.message_id), (11.0, Some(reply.id)));
    assert_eq!(done.prompt, "What is the capital of France?");
    let run = reply.run.unwrap();
    assert_eq!(
        done.prompt_tokens, run.prompt_tokens,
        "the conversation up to the reply"
    );
    assert!(done.on_text.contains("Paris") && reply.content.trim() == done.on_text.trim());

    let Some(CompareEvent::Done { id: Some(id), .. }) = events.last() else {
        panic!("{:?}", events.last())
    };
    let kept: Comparison = state.store.comparison(*id).await.unwrap();
    assert_eq!((&kept.agreement, &kept.on_text), (&done.agreement, &done.on_text));
    assert_eq!(kept.runs.len(), done.runs.len());
    // With many drafts right at once so short a reply has too few rounds for a rate, and the machine chooses how many are
    // made. The last digit of a number may change on its way through JSON.
    let rate = |comparison: &Comparison| comparison.on.tokens_per_second.as_ref().map(|rate| rate.median);
    match (rate(&kept), rate(&done)) {
        (Some(kept), Some(done)) => assert!((kept - done).abs() < 1e-9 * done),
        (kept, done) => assert_eq!(kept, done),
    }
    let history = state.benches.history().await.unwrap();
    assert_eq!(history.comparisons.len(), 1);
    assert_eq!(history.comparisons[0].identical, Some(true));
    assert_eq!(history.comparisons[0].speedup, None, "one run calls no winner");
    assert!(state.store.comparison(id + 1).await.is_err());
    assert_eq!(done.matches_reply, Some(true));

    // One of the person's messages is answered as it would be now, with what was said before it.
    let question = state
        .benches
        .compare(&asked(None, Some(reply.id - 1), 1), |_| true)
        .await
        .unwrap();
    assert_eq!(
        (&question.prompt, question.prompt_tokens),
        (&done.prompt, done.prompt_tokens)
    );
    assert_eq!(
        (question.message_id, question.matches_reply),
        (Some(reply.id - 1), None)
    );
    let unknown = state
        .benches
        .compare(&asked(None, Some(reply.id + 99), 1), |_| true)
        .await;
    assert_eq!(unknown.unwrap_err().kind, "not_found");

    // What another model wrote is compared with nothing, and what was written otherwise is said to be.
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", dir.path().join("history.db").display()))
        .await
        .unwrap();
    let with = async |change: &'static str| {
        sqlx::query(change).bind(reply.id).execute(&pool).await.unwrap();
        state.benches.compare(&asked(None, Some(reply.id), 1), |_| true).await
    };
    let edited = with("UPDATE messages SET content = 'It is Rome.' WHERE id = ?")
        .await
        .unwrap();
    assert_eq!(edited.matches_reply, Some(false));
    let other = with("UPDATE messages SET made = json_set(made, '$.model', '/another') WHERE id = ?").await;
    assert_eq!(other.unwrap_err().kind, "other_model");

    // They go one by one, and with the words of their chat.
    assert_eq!(state.benches.history().await.unwrap().comparisons.len(), 3);
    state.store.remove_measurement(*id).await.unwrap();
    assert!(state.store.remove_measurement(*id).await.is_err());
    assert_eq!(state.benches.history().await.unwrap().comparisons.len(), 2);
    state.store.delete_chat(reply.chat_id).await.unwrap();
    state.store.purge_chat(reply.chat_id).await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM measurements WHERE kind = 'comparison'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(left, 0);
    pool.close().await;
    state.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_takes_the_only_place_and_can_be_stopped() {
    let (state, _dir) = app().await;
    let (started, mut running) = tokio::sync::mpsc::unbounded_channel();
    let benches = state.benches.clone();
    let request = CompareRequest {
        options: TurnOptions {
            temperature: Some(50.0),
            max_tokens: Some(2000),
            ..asked(None, None, 1).options
        },
        ..asked(Some(STORY), None, 50)
    };
    let comparison = tokio::spawn(async move {
        let mut last = None;
        let outcome = benches
            .compare(&request, |event| {
                if matches!(event, CompareEvent::Delta { .. }) {
                    let _ = started.send(());
                }
                last = Some(event);
                true
            })
            .await;
        (outcome, last)
    });
    running.recv().await.unwrap();

    let second = state.benches.compare(&asked(Some(STORY), None, 1), |_| true).await;
    assert_eq!(second.unwrap_err().kind, "busy");
    let mut told = Vec::new();
    let (sender, mut refused) = tokio::sync::mpsc::unbounded_channel();
    let listener = Box::new(move |event: TurnEvent| sender.send(event).is_ok());
    let reply = state.turns.send(None, "Hello", &TurnOptions::default(), listener).await;
    assert_eq!(reply.unwrap_err().kind, "busy");
    refused.recv_many(&mut told, 8).await;
    assert!(
        matches!(told[..], [TurnEvent::Failed { message: None, .. }]),
        "{told:?}"
    );
    assert!(
        state.load_model("builtin", None).await.is_err(),
        "not under a comparison"
    );

    let at = std::time::Instant::now();
    state.turns.stop();
    let (outcome, last) = comparison.await.unwrap();
    assert!(at.elapsed() < std::time::Duration::from_secs(10));
    let done = outcome.unwrap();
    assert!(done.stopped && done.runs.len() < 100);
    assert!(matches!(last, Some(CompareEvent::Done { .. })));

    // What is free again works.
    let again = state
        .benches
        .compare(&asked(Some(STORY), None, 1), |_| true)
        .await
        .unwrap();
    assert!(
        matches!(again.agreement, Agreement::Identical { tokens: 24, .. }),
        "{:?}",
        again.agreement
    );
    state.close().await;
}

#[tokio::test]
async fn a_slower_benchmark_is_found_in_the_history_of_its_pair_alone() {
    let report = tokio::task::spawn_blocking(short_bench).await.unwrap();
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let scaled = |by: f64, version: &str| {
        let mut report = report.clone();
        report.setup.app_version = version.to_owned();
        for (place, arm) in report.arms.iter_mut().enumerate() {
            if let Some(spread) = &mut arm.figures.tokens_per_second {
                // A steady machine, so that only what is scaled can be seen.
                let steady = [100.0, 100.5, 99.5].map(|rate| if place == 1 { rate * by } else { rate });
                spread.values = steady.to_vec();
                spread.median = steady[0];
            }
        }
        report
    };
    let first = store.add_bench(&scaled(1.0, "1.0.0")).await.unwrap();
    let mut other = scaled(9.0, "1.0.5");
    other.setup.target = "/another/model".to_owned();
    store.add_bench(&other).await.unwrap();
    let mut half = scaled(9.0, "1.0.6");
    half.stopped = true;
    store.add_bench(&half).await.unwrap();
    let slower = scaled(0.6, "1.1.0");
    let second = store.add_bench(&slower).await.unwrap();
    assert!(store.benches_before(&slower, Some(first)).await.unwrap().is_empty());
    let before = store.benches_before(&slower, Some(second)).await.unwrap();
    assert_eq!(
        before
            .iter()
            .map(|report| report.setup.app_version.as_str())
            .collect::<Vec<_>>(),
        ["1.0.0"],
        "the other pair's and the stopped one are passed over"
    );
    let found = regressions(&before, &slower);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].what.as_str(), found[0].before, found[0].after),
        ("tokens/s, block 2", 100.0, 60.0)
    );
    assert_eq!(found[0].changes, ["app 1.0.0 → 1.1.0"]);
    assert!(markdown(&slower, &found).contains("tokens/s, block 2: 100.0 → 60.0"));
    assert_eq!(store.benches().await.unwrap().len(), 4);
    store.close().await;

    // It outlives the process.
    let store = Store::open(dir.path()).await.unwrap();
    let kept = store.bench(second).await.unwrap();
    assert_eq!(
        (kept.setup.app_version, kept.runs.len()),
        (slower.setup.app_version, slower.runs.len())
    );
    store.close().await;
}
