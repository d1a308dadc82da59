//! What was measured of a pair: shown where the pair is, and where its automatic depth begins.

use std::path::Path;

use app::bench::{Estimate, conditions};
use app::ipc::{
    Agreement, BenchReport, Call, ModelStatus, PairVerdict, Ratio, SpeculationChoice, TurnOptions, VerdictSource,
    Winner,
};
use app::state::AppState;
use app::store::Store;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

use super::history::app;
use super::short_bench;

const BLOCK: SpeculationChoice = SpeculationChoice::Block { size: 6 };

/// A benchmark of the built-in pair on this machine, in which block 6 won.
fn won(pair: &Shelf) -> BenchReport {
    let mut report = short_bench().clone();
    report.setup.target = pair.target.clone();
    report.setup.drafter = pair.drafter.clone();
    let ratio = Ratio {
        value: 1.4,
        low: Some(1.3),
        high: Some(1.5),
        call: Call::Higher,
    };
    let last = report.arms.last_mut().unwrap();
    last.figures.speculation = BLOCK;
    last.figures.acceptance_by_position = vec![0.9; 5];
    last.speedup = Some(ratio.clone());
    report.winner = Winner::Fastest {
        speculation: BLOCK,
        ratio,
    };
    report
}

/// The built-in pair, as it is listed.
struct Shelf {
    target: String,
    drafter: Option<String>,
    measured: Vec<PairVerdict>,
}

async fn shelf(state: &AppState) -> Shelf {
    let first = state.library.shelf().await.unwrap().models.remove(0);
    Shelf {
        target: first.model.path,
        drafter: first.model.drafter_path,
        measured: first.measured,
    }
}

async fn begins_at(state: &AppState) -> u32 {
    match state.library.load_once("builtin", None).await.unwrap() {
        ModelStatus::Ready { auto_depth, .. } => auto_depth,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_benchmark_is_the_verdict_on_its_pair_and_where_auto_begins() {
    tokio::task::spawn_blocking(short_bench).await.unwrap();
    let (state, _dir) = app().await;
    let before = shelf(&state).await;
    assert_eq!(before.measured, [], "nothing was measured");

    let mut old = won(&before);
    old.setup.mlx_version = "0.1".to_owned();
    state.store.add_bench(&old).await.unwrap();
    let mut other = won(&before);
    other.setup.before.chip = Some("another chip".to_owned());
    state.store.add_bench(&other).await.unwrap();
    let told = shelf(&state).await.measured;
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].changes,
        [format!("MLX 0.1 → {}", models::mlx_version())],
        "stale, and it says so"
    );

    state.store.add_bench(&won(&before)).await.unwrap();
    let told = shelf(&state).await.measured;
    assert_eq!((told.len(), told[0].changes.len()), (1, 0), "{told:?}");
    assert_eq!(told[0].drafter, before.drafter);
    assert!(matches!(told[0].says, Winner::Fastest { speculation: BLOCK, .. }));
    assert!(matches!(
        told[0].source,
        VerdictSource::Benchmark {
            prompts: 2,
            repetitions: 3
        }
    ));
    assert_eq!(begins_at(&state).await, 5);

    // It is where it begins and nothing else: the text is that without speculation.
    let mut texts = Vec::new();
    for speculation in [SpeculationChoice::Off, SpeculationChoice::Auto] {
        let options = TurnOptions {
            speculation,
            temperature: Some(0.8),
            seed: Some(5.0),
            max_tokens: Some(20),
            ..TurnOptions::default()
        };
        let reply = state
            .turns
            .send(None, "Write a haiku about the sea.", &options, Box::new(|_| true));
        texts.push(reply.await.unwrap().content);
    }
    assert_eq!(texts[0], texts[1]);
    state.close().await;
}

#[tokio::test]
async fn what_auto_worked_out_in_replies_is_an_estimate() {
    let (state, _dir) = app().await;
    let pair = shelf(&state).await;
    let machine = conditions::machine_key(&conditions::read(), models::device());
    let estimate = |speedup: f64| Estimate {
        made_at: conditions::now(),
        under: conditions::circumstances(Some("float32".to_owned())),
        depth: 4,
        speedup,
        acceptance: vec![0.9; 4],
    };
    let pair_of = (pair.target.as_str(), pair.drafter.as_deref());
    for (machine, n) in (0..25)
        .map(|n| (machine.as_str(), n))
        .chain([("another machine", 9000)])
    {
        let estimate = estimate(1.3 + 0.001 * f64::from(n % 5 + n / 1000));
        let kept = state.store.add_estimate(machine, pair_of.0, pair_of.1, &estimate);
        kept.await.unwrap();
    }
    let told = shelf(&state).await.measured;
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].source,
        VerdictSource::Replies { replies: 20, depth: 4 },
        "the last ones"
    );
    assert!(
        matches!(&told[0].says, Winner::Fastest { speculation: SpeculationChoice::Auto, ratio } if ratio.value < 1.31)
    );
    assert_eq!(begins_at(&state).await, 4);
    assert!(
        state.store.benches().await.unwrap().is_empty(),
        "they are no benchmarks"
    );
    state.close().await;
}

#[tokio::test]
async fn measurements_of_before_are_all_there_in_their_order() {
    let report = tokio::task::spawn_blocking(short_bench).await.unwrap();
    let dir = TempDir::new().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(dir.path().join("history.db"))
        .create_if_missing(true);
    let old = SqlitePool::connect_with(options).await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src-tauri/migrations");
    let mut migrations = Migrator::new(folder).await.unwrap();
    let before = migrations.migrations.iter().filter(|m| m.version < 7).cloned();
    migrations.migrations = before.collect::<Vec<_>>().into();
    migrations.run(&old).await.unwrap();
    for (table, at, identical, speedup) in [
        ("comparisons", 30, Some(true), Some(1.5)),
        ("comparisons", 10, None, None),
        ("benches", 20, Some(false), None),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "INSERT INTO {table} (created_at, machine, target, drafter, model, app_version, mlx_version, identical, \
             speedup, result) VALUES (?, 'm', '/t', '', 'Tiny', '1', '2', ?, ?, ?)"
        )))
        .bind(at)
        .bind(identical)
        .bind(speedup)
        .bind(serde_json::json!(report).to_string())
        .execute(&old)
        .await
        .unwrap();
    }
    // The words of a message that is gone go with it.
    sqlx::query(
        "INSERT INTO comparisons (created_at, machine, target, drafter, model, app_version, mlx_version, result) \
         VALUES (40, 'm', '/t', '', 'Tiny', '1', '2', '{\"messageId\":77}')",
    )
    .execute(&old)
    .await
    .unwrap();
    old.close().await;

    let store = Store::open(dir.path()).await.unwrap();
    let kept = store.comparisons().await.unwrap();
    let told: Vec<_> = kept
        .iter()
        .map(|one| (one.created_at, one.identical, one.speedup))
        .collect();
    assert_eq!(told, [(30.0, Some(true), Some(1.5)), (10.0, None, None)]);
    let benches = store.benches().await.unwrap();
    assert_eq!((benches.len(), benches[0].identical), (1, Some(false)));
    let opened = store.bench(benches[0].id).await.unwrap();
    assert_eq!(opened.prompt_ids, report.prompt_ids);
    assert!(store.bench(kept[0].id).await.is_err(), "a comparison is no benchmark");
    let pairs = store.measured_pairs("m", Some("/t")).await.unwrap();
    assert_eq!(
        (pairs.len(), pairs[0].benches.len(), pairs[0].drafter.as_ref()),
        (1, 1, None)
    );
    store.close().await;
}

#[test]
fn a_comparison_of_before_can_still_be_read() {
    let agreement = serde_json::json!({ "verdict": "different", "difference": {
        "side": "on", "position": 1, "before": "", "expected": "", "found": "", "expectedTokens": [], "foundTokens": [],
        "first": null, "second": null, "margin": null, "suspects": [],
    } });
    let read: Agreement = serde_json::from_value(agreement).unwrap();
    assert!(matches!(read, Agreement::Different { difference } if difference.recheck.is_none()));
}
