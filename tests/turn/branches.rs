//! Versions of messages, and replies that go on.

use app::ipc::{ChatConfig, KvChoice, Message, MessageStatus, Provenance, RoundText, TurnEvent, TurnOptions};

use super::{App, Heard, QUESTION, STORY, greedy};

/// Sampled, so that a reply that goes on otherwise would soon read otherwise.
fn sampled(max_tokens: u32) -> TurnOptions {
    TurnOptions {
        temperature: Some(0.8),
        seed: Some(11.0),
        max_tokens: Some(max_tokens),
        ..TurnOptions::default()
    }
}

impl App {
    async fn send(&self, chat_id: Option<i32>, text: &str, options: &TurnOptions) -> Message {
        let heard = Heard::default();
        let message = self.state.turns.send(chat_id, text, options, heard.listener()).await;
        message.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_broke_off_becomes_what_it_would_have_become() {
    const WHOLE: u32 = 48;
    let app = App::with_builtin().await;
    let whole = app.send(None, STORY, &sampled(WHOLE)).await;
    assert_eq!(whole.status, MessageStatus::Length);
    let tokens = whole.run.unwrap().tokens;
    let whole_id = whole.id;

    // Cut by the limit.
    let cut = app.send(None, STORY, &sampled(9)).await;
    assert!(cut.can_continue && cut.content.len() < whole.content.len());
    let heard = Heard::default();
    // Another temperature and seed now: the reply goes on as it began.
    let rest = TurnOptions {
        max_tokens: Some(WHOLE - 9),
        ..greedy()
    };
    // Instructions of now are for the next message.
    let config = app::ipc::ChatConfig {
        system_prompt: "Answer in one word.".to_owned(),
        ..app::ipc::ChatConfig::default()
    };
    app.state.store.configure_chat(cut.chat_id, &config).await.unwrap();
    let turns = &app.state.turns;
    let joined = turns.go_on(cut.id, &rest, heard.listener()).await.unwrap();
    heard.assert_order();
    assert_eq!((joined.id, &joined.content), (cut.id, &whole.content));
    let run = joined.run.unwrap();
    assert_eq!((run.tokens, run.seed), (tokens, 11.0));
    assert_eq!(run.accepted_per_round.iter().sum::<u32>(), run.accepted);
    let Some(TurnEvent::Started { assistant, .. }) = heard.events().first().cloned() else {
        panic!("no start")
    };
    assert_eq!(
        assistant.content + &heard.texts().1,
        whole.content,
        "what is heard adds up"
    );
    let rounds = app.state.store.message_origin(cut.id).await.unwrap().rounds;
    let sum = |part: fn(&RoundText) -> u32| rounds.iter().map(part).sum::<u32>();
    let length = u32::try_from(whole.content.encode_utf16().count()).unwrap();
    assert_eq!(sum(|round| round.length), length);
    assert_eq!(
        (sum(|round| round.accepted), sum(|round| round.drafted)),
        (run.accepted, run.drafted)
    );
    assert_eq!(sum(|round| round.tokens), tokens);
    let pieces = app.pieces(cut.id).await;
    assert_eq!(
        pieces,
        app.pieces(whole_id).await,
        "each token showed what it had shown in one go"
    );

    // Stopped by the person, wherever that was.
    let (heard, stopper) = (Heard::default(), app.state.turns.clone());
    let listener = heard.listener_with(move |event| {
        if matches!(event, TurnEvent::Delta { .. }) {
            stopper.stop();
        }
    });
    let stopped = turns.send(None, STORY, &sampled(WHOLE), listener).await.unwrap();
    let said = stopped.run.as_ref().unwrap().tokens;
    assert_eq!(stopped.status, MessageStatus::Stopped);
    assert!(said < WHOLE, "stopped too late to tell anything");
    let rest = sampled(WHOLE - said);
    let joined = turns
        .go_on(stopped.id, &rest, Heard::default().listener())
        .await
        .unwrap();
    assert_eq!(joined.content, whole.content);
    assert_eq!(app.pieces(joined.id).await, pieces);
    assert_eq!(app.messages(joined.chat_id).await.last(), Some(&joined));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_reply_and_one_of_another_model_do_not_go_on() {
    let app = App::with_builtin().await;
    let turns = &app.state.turns;
    let whole = app.send(None, QUESTION, &greedy()).await;
    assert!(!whole.can_continue);
    let refused = turns.go_on(whole.id, &greedy(), Heard::default().listener()).await;
    assert_eq!(refused.unwrap_err().kind, "cannot_continue");

    let cut = app.send(None, STORY, &sampled(5)).await;
    let made = app::store::Made {
        model: "/models/other".to_owned(),
        options: sampled(5),
        system_prompt: None,
        thought: None,
        kv: KvChoice::Plain,
    };
    // Only while it is being written can a reply be described: as another model would have.
    let begun = app.state.store.begin_continued(cut.id).await.unwrap();
    app.state.store.describe_turn(cut.id, &made).await.unwrap();
    let ending = app::store::Ending {
        content: cut.content.clone(),
        reasoning: String::new(),
        status: MessageStatus::Stopped,
        run: None,
        error: None,
        resume: Some(app::store::Resume {
            tokens: begun.continued.unwrap().tokens,
            answer: cut.content.len(),
            reasoning: 0,
        }),
        origin: Provenance::default(),
    };
    app.state.store.finish_turn(cut.id, &ending).await.unwrap();
    let refused = turns
        .go_on(cut.id, &greedy(), Heard::default().listener())
        .await
        .unwrap_err();
    assert_eq!(refused.kind, "other_model");
    let kept = app.messages(cut.chat_id).await.pop().unwrap();
    assert_eq!(
        (kept.content, kept.can_continue),
        (cut.content, true),
        "with that model it can still go on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_message_is_answered_without_what_followed_the_first() {
    let app = App::with_builtin().await;
    let turns = &app.state.turns;
    let first = app.send(None, STORY, &sampled(8)).await;
    let chat = Some(first.chat_id);
    let alone = app.send(None, QUESTION, &greedy()).await;
    app.send(chat, "And then?", &sampled(8)).await;
    let question = app.messages(first.chat_id).await[0].id;
    let edited = turns
        .edit(question, QUESTION, &greedy(), Heard::default().listener())
        .await
        .unwrap();
    assert_eq!(edited.content, alone.content);
    let shown = app.messages(first.chat_id).await;
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0].versions, [question, shown[0].id]);
    let empty = turns
        .edit(question, " \n", &greedy(), Heard::default().listener())
        .await;
    assert_eq!(empty.unwrap_err().kind, "empty_message");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chats_instructions_are_in_its_prompt() {
    let app = App::with_builtin().await;
    let config = ChatConfig {
        system_prompt: "Answer in one word, and always be as kind as you can.".to_owned(),
        options: None,
    };
    let plain = app.send(None, QUESTION, &greedy()).await;
    let heard = Heard::default();
    let turns = &app.state.turns;
    let told = turns
        .send_with(None, QUESTION, Some(&config), &greedy(), heard.listener())
        .await
        .unwrap();
    let tokens = |message: &Message| message.run.as_ref().unwrap().prompt_tokens;
    let extra = tokens(&told) - tokens(&plain);
    assert!(extra > 8, "{extra} more tokens of prompt");
    app.state
        .configure_chat(told.chat_id, &ChatConfig::default())
        .await
        .unwrap();
    let again = turns
        .regenerate(told.id, &greedy(), Heard::default().listener())
        .await
        .unwrap();
    assert_eq!(tokens(&again), tokens(&plain));
    let bad = ChatConfig {
        options: Some(TurnOptions {
            top_p: Some(2.0),
            ..TurnOptions::default()
        }),
        ..ChatConfig::default()
    };
    assert_eq!(
        app.state.configure_chat(told.chat_id, &bad).await.unwrap_err().kind,
        "bad_option"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn attached_files_are_text_with_their_length_for_the_model() {
    let app = App::with_builtin().await;
    let file = |name: &str, bytes: &[u8]| {
        let path = app.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let words = "one two three ".repeat(20);
    let long = words.repeat(200);
    let paths = [
        file("a.txt", format!("\u{feff}{words}\r\n").as_bytes()),
        file("long.csv", long.as_bytes()),
        file("empty.md", b""),
    ];
    let turns = &app.state.turns;
    turns
        .send(None, "Hi", &greedy(), Heard::default().listener())
        .await
        .unwrap();
    let picked = app.state.attach(&paths).await.unwrap();
    assert_eq!((picked.pdfs.len(), picked.refused.len()), (0, 0));
    let attached = picked.files;
    assert_eq!(
        (attached[0].name.as_str(), &attached[0].text),
        ("a.txt", &format!("{words}\n"))
    );
    let tokens: Vec<_> = attached.iter().map(|file| file.tokens.unwrap()).collect();
    // As the engine counts a prompt that holds it.
    let with = app
        .send(None, &format!("{words}\n."), &sampled(1))
        .await
        .run
        .unwrap()
        .prompt_tokens;
    let without = app.send(None, ".", &sampled(1)).await.run.unwrap().prompt_tokens;
    assert!(
        (with - without).abs_diff(tokens[0]) <= 2,
        "{with} - {without}, but {}",
        tokens[0]
    );
    assert!(
        tokens[1] > 2048 && tokens[1] > 100 * tokens[0],
        "longer than the context: {tokens:?}"
    );
    assert_eq!(tokens[2], 0);
    // One that cannot be used is named and does not hold up the others; a PDF is given out once.
    let mixed = [
        file("a.png", b"\x89PNG\0"),
        file("b.bin", b"a\0b"),
        app.dir.path().join("none"),
        file("c.pdf", b"%PDF-1.7\n"),
        file("d.rs", b"fn main() {}\n"),
    ];
    let picked = app.state.attach(&mixed).await.unwrap();
    let kinds: Vec<_> = picked.refused.iter().map(|error| error.kind.as_str()).collect();
    assert_eq!(kinds, ["input", "input", "file"]);
    for (error, name) in picked.refused.iter().zip(["a.png", "b.bin", "none"]) {
        assert!(error.message.contains(name) && error.hint.is_some(), "{error:?}");
    }
    assert_eq!(picked.files[0].name, "d.rs");
    assert_eq!(picked.pdfs[0].name, "c.pdf");
    assert_eq!(app.state.take_pdf(picked.pdfs[0].id).await.unwrap(), b"%PDF-1.7\n");
    assert_eq!(app.state.take_pdf(picked.pdfs[0].id).await.unwrap_err().kind, "input");
    assert_eq!(app.state.count_tokens(&format!("{words}\n")).await, Some(tokens[0]));
}
