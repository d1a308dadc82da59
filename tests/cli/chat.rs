//! `chat`, and what two processes and a kill leave behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use app::ipc::MessageStatus;
use tempfile::TempDir;

use super::{ENDLESS, Program, QUESTION, signal, stderr, stdout};

#[test]
fn a_terminal_chat_writes_the_history() {
    let program = Program::new();
    let output = program.chat(
        &["--temp", "0"],
        &format!("{QUESTION}\n/spec off\nAnd of Italy?\n/new\n{QUESTION}\n/list\n/quit\nnot read\n"),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Paris"), "{}", stdout(&output));
    let told = stderr(&output);
    assert_eq!(told.lines().filter(|line| line.contains("tok/s")).count(), 3, "{told}");
    assert_eq!(
        told.lines().filter(|line| line.contains("tok/round")).count(),
        1,
        "off holds from the next message on: {told}"
    );
    let chats = program.chats();
    assert_eq!(chats.iter().map(|chat| chat.messages.len()).collect::<Vec<_>>(), [2, 4]);
    for chat in &chats {
        assert!(stdout(&output).contains(&chat.summary.title));
        assert!(
            chat.messages
                .iter()
                .all(|message| message.status == MessageStatus::Complete)
        );
    }

    let open = program.chat(&["--temp", "0"], &format!("/open {}\nThanks!\n", chats[1].summary.id));
    assert!(
        open.status.success() && stdout(&open).contains("And of Italy?"),
        "{}",
        stderr(&open)
    );
    assert_eq!(program.chats().iter().map(|chat| chat.messages.len()).max(), Some(6));
    let wrong = program.chat(&[], "/open 99\n/spec 99\n/answer\n/frobnicate\n");
    assert!(
        wrong.status.success()
            && stderr(&wrong).contains("chat 99 does not exist")
            && stderr(&wrong).contains("no reply is thinking"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn a_chat_without_its_model_says_why() {
    let program = Program::new();
    let empty = TempDir::new().unwrap();
    let output = program.chat(&["-m", &empty.path().to_string_lossy()], "Hello\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("config.json"), "{}", stderr(&output));
    let kept = program.chats().pop().unwrap().messages.pop().unwrap();
    assert_eq!(
        (kept.status, kept.error.unwrap().kind.as_str()),
        (MessageStatus::Failed, "config_missing")
    );
}

/// Starts a chat with a reply that does not end, and waits until some of it is shown.
fn endless_chat(program: &Program) -> (Child, impl Write) {
    let mut child = program
        .command(&[&["chat"], &ENDLESS[..]].concat())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "Tell me a story").unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    (child, input)
}

#[test]
#[cfg(unix)]
fn after_a_kill_the_message_and_the_partial_reply_are_there() {
    let program = Program::new();
    let (mut child, _input) = endless_chat(&program);
    // While it lives, its turn is its own.
    let start = Instant::now();
    loop {
        let chats = program.chats();
        let reply = chats[0].messages.last().unwrap().clone();
        assert_eq!(reply.status, MessageStatus::Streaming);
        if !reply.content.is_empty() {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no partial reply is stored");
        std::thread::sleep(Duration::from_millis(100));
    }
    signal(&child, "-KILL");
    child.wait().unwrap();
    let chat = program.chats().pop().unwrap();
    assert_eq!(chat.messages[0].content, "Tell me a story");
    assert_eq!(chat.messages[1].status, MessageStatus::Interrupted);
    assert!(!chat.messages[1].content.is_empty());
    let next = program.chat(
        &["--temp", "0", "--open", &chat.summary.id.to_string()],
        &format!("{QUESTION}\n"),
    );
    assert!(next.status.success(), "{}", stderr(&next));
    assert_eq!(program.chats().pop().unwrap().messages.len(), 4);
}

#[test]
#[cfg(unix)]
fn two_processes_share_the_history_and_an_interrupt_ends_the_reply_alone() {
    let program = Program::new();
    let (mut child, mut input) = endless_chat(&program);
    let chat = program.chats().pop().unwrap().summary;
    // The other process refuses this chat while its reply runs, and has its own.
    let other = program.chat(
        &["--temp", "0"],
        &format!("/open {}\nHello\n/new\n{QUESTION}\n", chat.id),
    );
    assert!(stderr(&other).contains("is being generated"), "{}", stderr(&other));
    assert!(stdout(&other).contains("Paris"), "{}", stdout(&other));
    assert_eq!(other.status.code(), Some(1), "a script sees that a message was refused");
    signal(&child, "-INT");
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("stopped") {
        line.clear();
        assert!(
            told.read_line(&mut line).unwrap() > 0,
            "it ended without saying that it stopped"
        );
    }
    writeln!(input, "/spec off\n/quit").unwrap();
    assert!(
        child.wait().unwrap().success(),
        "the program goes on after the interrupt"
    );
    let replies: Vec<_> = program
        .chats()
        .into_iter()
        .map(|chat| chat.messages.last().unwrap().status)
        .collect();
    assert_eq!(replies.len(), 2);
    assert!(
        replies.contains(&MessageStatus::Stopped) && replies.contains(&MessageStatus::Complete),
        "{replies:?}"
    );
}
