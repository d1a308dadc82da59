//! What is refused before a turn, the model's status, titles.

use std::sync::{Arc, Mutex};

use app::ipc::{ModelStatus, Speculating, SpeculationChoice, TurnOptions};
use app::library::BUILTIN;
use app::turn::title_of;

use super::{App, Heard, QUESTION, greedy, until};

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
    assert_eq!(app.state.library.shelf().await.unwrap().models[0].model, *model);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_of_another_model_is_told_and_the_model_chats_without_it() {
    let app = App::empty().await;
    let target = tests::golden("qwen3_5").join("mlx-q4");
    let head = tests::builtin("drafter");
    let status = app
        .state
        .library
        .load_once(&target.to_string_lossy(), Some(&head.to_string_lossy()))
        .await
        .unwrap();
    let ModelStatus::Ready {
        speculating,
        can_speculate,
        speculation_note,
        ..
    } = status
    else {
        panic!("{status:?}");
    };
    assert_eq!((speculating, can_speculate), (Speculating::Mismatch, false));
    // The field and both values.
    assert!(
        speculation_note.contains("hidden_size") && speculation_note.contains("512"),
        "{speculation_note}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_load_measured_is_not_measured_again() {
    let app = App::empty().await;
    let costs = async || match app.state.library.load_once(BUILTIN, None).await.unwrap() {
        ModelStatus::Ready {
            costs,
            draft_ms,
            exactness_note,
            ..
        } => (costs, draft_ms, exactness_note),
        other => panic!("{other:?}"),
    };
    let first = costs().await;
    assert!(
        first.0.len() == 6 && first.1.is_some() && first.2.starts_with("exact"),
        "{first:?}"
    );
    // Times measured twice differ in more than what writing them down may round.
    let again = costs().await;
    let is_same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a;
    let passes = first.0.iter().zip(&again.0);
    assert!(
        passes.clone().count() == 6 && passes.clone().all(|(a, b)| is_same(a.ms, b.ms)),
        "{first:?} {again:?}"
    );
    assert!(is_same(first.1.unwrap(), again.1.unwrap()), "{first:?} {again:?}");
    let kept = app.state.store.measured().await.unwrap();
    assert_eq!((kept.self_checks.len(), kept.costs.len()), (1, 1));
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
        ("File: a.md\n````md\n# A\n```\nb\n```\n````\n\nSum it up", "Sum it up"),
        ("```js\nlet a;\n```", "```js let a; ```"),
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
