//! Failures: said once, nothing lost, the next message works.

use std::path::Path;

use app::ipc::{MessageStatus, ModelStatus, TurnEvent, TurnOptions};
use app::library::BUILTIN;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

use super::{App, Heard, QUESTION, STORY, assets, greedy};

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
