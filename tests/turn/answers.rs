//! Messages without a reply, and what is dropped on the window.

use app::ipc::MessageStatus;

use super::{App, Heard, QUESTION, greedy};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_reply_is_gone_is_answered() {
    let app = App::with_builtin().await;
    let turns = &app.state.turns;
    let first = turns.send(None, QUESTION, &greedy(), Heard::default().listener()).await;
    let first = first.unwrap();
    let asked = app.messages(first.chat_id).await[0].clone();

    let refused = turns.answer(asked.id, &greedy(), Heard::default().listener()).await;
    assert_eq!(refused.unwrap_err().kind, "not_the_last", "it has a reply");
    app.state.store.delete_message(first.id).await.unwrap();
    let heard = Heard::default();
    let answered = turns.answer(asked.id, &greedy(), heard.listener()).await.unwrap();
    heard.assert_order();
    assert_eq!(answered.status, MessageStatus::Complete);
    assert_eq!(answered.content, first.content);
    let messages = app.messages(first.chat_id).await;
    let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
    assert_eq!(ids, [asked.id, answered.id], "no second question");

    let refused = turns.answer(answered.id, &greedy(), Heard::default().listener()).await;
    assert_eq!(refused.unwrap_err().kind, "not_a_message");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_dropped_is_sorted_and_nothing_else_is_read() {
    let app = App::empty().await;
    let folder = app.dir.path().join("a-model");
    let (note, secret) = (app.dir.path().join("note.md"), app.dir.path().join("secret.txt"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&note, "# Note").unwrap();
    std::fs::write(&secret, "secret").unwrap();

    let paths = [folder.clone(), note.clone()];
    app.state.note_drop(&paths);
    let dropped = app
        .state
        .sort_drop(&[paths.as_slice(), &[secret]].concat())
        .await
        .unwrap();
    assert_eq!(dropped.folders, [folder.display().to_string()]);
    let names: Vec<_> = dropped.files.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["note.md"]);
    assert!(dropped.files.refused.is_empty());
    assert_eq!(app.state.sort_drop(&paths).await.unwrap(), Default::default(), "once");
}
