//! Thinking that the person ends.

use app::ipc::{MessageStatus, SpeculationChoice, TurnEvent, TurnOptions};

use super::{App, Heard, STORY, endless, greedy};

/// Thinks on for as long as it may.
fn thinking(max_tokens: u32) -> TurnOptions {
    TurnOptions {
        thinking: Some(true),
        max_tokens: Some(max_tokens),
        ..endless()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_wants_the_answer_gets_it_and_the_reply_comes_out_the_same_again() {
    const CUT: u32 = 120;
    const WHOLE: u32 = 128;
    let app = App::with_builtin().await;
    let turns = &app.state.turns;
    let (heard, asker) = (Heard::default(), turns.clone());
    let listener = heard.listener_with(move |event| {
        if matches!(event, TurnEvent::Delta { .. }) {
            asker.answer_now();
        }
    });
    let cut = turns.send(None, STORY, &thinking(CUT), listener).await.unwrap();
    heard.assert_order();
    let thought = cut.thought.clone().unwrap();
    assert_eq!((thought.ended.as_deref(), thought.open), (Some("person"), false));
    assert!(0 < thought.tokens && thought.tokens < CUT && thought.ms > 0.0);
    assert!(!cut.content.is_empty() && cut.status == MessageStatus::Length);
    let reasoning = cut.reasoning.clone().unwrap();
    assert!(reasoning.contains("limited time"), "{reasoning}");
    assert_eq!(
        app.messages(cut.chat_id).await[1].thought,
        Some(thought.clone()),
        "it is kept"
    );

    // Written again with its seed, by whoever has no hand on the button.
    let again = TurnOptions {
        speculation: SpeculationChoice::Off,
        ..thinking(CUT)
    };
    let again = turns
        .regenerate(cut.id, &again, Heard::default().listener())
        .await
        .unwrap();
    assert_eq!((&again.content, &again.reasoning), (&cut.content, &cut.reasoning));
    let own = again.thought.unwrap();
    assert_eq!((own.tokens, own.ended.as_deref()), (thought.tokens, Some("budget")));

    // What a budget of as many tokens gives, whole, is what the one that was cut by its limit becomes.
    let budget = TurnOptions {
        thinking_budget: Some(thought.tokens),
        ..thinking(WHOLE)
    };
    let whole = turns
        .send(None, STORY, &budget, Heard::default().listener())
        .await
        .unwrap();
    app.state.store.show_message(cut.id).await.unwrap();
    let rest = TurnOptions {
        max_tokens: Some(WHOLE - CUT),
        ..greedy()
    };
    let joined = turns.go_on(cut.id, &rest, Heard::default().listener()).await.unwrap();
    assert_eq!((&joined.content, &joined.reasoning), (&whole.content, &whole.reasoning));
    let own = joined.thought.unwrap();
    assert_eq!((own.tokens, own.ended.as_deref()), (thought.tokens, Some("person")));
    assert!(own.ms >= thought.ms);
}
