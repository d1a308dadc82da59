//! What is refused before a turn, the model's status, titles.

use std::sync::{Arc, Mutex};

use app::ipc::{ModelStatus, SpeculationChoice, TurnOptions};
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
            "File: a.md\n````md\n# A\n```\nb\n```\n````\n\nSum it up",
            "File: a.md Sum it up",
        ),
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
