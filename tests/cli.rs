//! The program itself, headless: `generate`, `inspect` and `chat`, with the built-in model.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use app::ipc::{Chat, MessageStatus};
use app::store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

const QUESTION: &str = "What is the capital of France?";
/// Hot enough to wander on for as long as it may.
const ENDLESS: [&str; 4] = ["--temp", "50", "--seed", "7"];

/// The program, in a data folder of its own and without a display.
struct Program {
    data: TempDir,
}

impl Program {
    fn new() -> Self {
        Program {
            data: TempDir::new().unwrap(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        // The tests are built into target/PROFILE/deps, the program one folder up.
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("slipstream");
        assert!(program.is_file(), "build it first: cargo build --release -p app");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("SLIPSTREAM_DATA_DIR", self.data.path())
            .env(
                "SLIPSTREAM_ASSETS",
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets"),
            )
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn generate(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["generate", "--json"], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A terminal chat that is fed lines.
    fn chat(&self, arguments: &[&str], lines: &str) -> Output {
        let mut child = self
            .command(&[&["chat"], arguments].concat())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn chats(&self) -> Vec<Chat> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = Store::open(self.data.path()).await.unwrap();
            let mut chats = Vec::new();
            for chat in store.list_chats().await.unwrap() {
                chats.push(store.open_chat(chat.id).await.unwrap());
            }
            store.close().await;
            chats
        })
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn builtin(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../assets/builtin")
        .join(part)
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill")
            .args([name, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn generate_answers_as_json() {
    let program = Program::new();
    let on = program.generate(&["-p", QUESTION, "--temp", "0", "--draft-block-size", "4"]);
    assert_eq!(
        keys(&on),
        [
            "prompt_tokens",
            "tokens",
            "text",
            "finish_reason",
            "timings",
            "speculation"
        ]
    );
    assert_eq!(
        keys(&on["timings"]),
        [
            "load_ms",
            "prefill_ms",
            "ttft_ms",
            "decode_ms",
            "decode_tokens_per_second"
        ]
    );
    let fields = [
        "enabled",
        "reason",
        "block_size",
        "rounds",
        "drafted",
        "accepted",
        "acceptance_rate",
        "tokens_per_round",
        "accepted_per_round",
        "acceptance_by_position",
    ];
    assert_eq!(keys(&on["speculation"]), fields);
    assert!(on["text"].as_str().unwrap().contains("Paris"), "{on}");
    assert_eq!(on["finish_reason"], "stop");
    let speculation = &on["speculation"];
    assert_eq!(
        (&speculation["enabled"], &speculation["block_size"]),
        (&json!(true), &json!(4))
    );
    assert_eq!(speculation["reason"], Value::Null);
    let rounds = speculation["accepted_per_round"].as_array().unwrap();
    assert_eq!(json!(rounds.len()), speculation["rounds"]);
    assert_eq!(
        json!(rounds.iter().map(|round| round.as_u64().unwrap()).sum::<u64>()),
        speculation["accepted"]
    );
    assert_eq!(speculation["acceptance_by_position"].as_array().unwrap().len(), 3);

    let off = program.generate(&["-p", QUESTION, "--temp", "0", "--draft-kind", "none"]);
    assert_eq!((&off["text"], &off["tokens"]), (&on["text"], &on["tokens"]));
    assert_eq!(
        (&off["speculation"]["enabled"], &off["speculation"]["block_size"]),
        (&json!(false), &json!(1))
    );
    assert!(off["speculation"]["reason"].is_string());
}

#[test]
fn generate_streams_text_and_one_line_of_figures() {
    let program = Program::new();
    let text = program.generate(&["-p", QUESTION, "--temp", "0", "--thinking", "off"])["text"].clone();
    let output = program.run(&["generate", "-p", QUESTION, "--temp", "0", "--thinking", "off"]);
    assert!(output.status.success());
    assert!(stdout(&output).ends_with('\n'));
    assert_eq!(stdout(&output).trim(), text.as_str().unwrap().trim());
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("tok/s"));
}

#[test]
fn prompts_come_from_text_file_messages_and_ids() {
    let program = Program::new();
    let dir = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let greedy = ["--temp", "0", "-n", "8"];
    let direct = program.generate(&[&["-p", QUESTION], &greedy[..]].concat());
    let messages = json!([{ "role": "user", "content": QUESTION }]);
    let list = write("list.json", &messages.to_string());
    let object = write("object.json", &json!({ "messages": messages }).to_string());
    let file = write("prompt.txt", QUESTION);
    for source in [["--prompt-file", &file], ["--messages", &list], ["--messages", &object]] {
        let same = program.generate(&[&source[..], &greedy[..]].concat());
        assert_eq!(
            (&same["tokens"], &same["prompt_tokens"]),
            (&direct["tokens"], &direct["prompt_tokens"]),
            "{source:?}"
        );
    }
    let raw = program.generate(&[&["--raw", "-p", QUESTION], &greedy[..]].concat());
    assert!(
        raw["prompt_tokens"].as_u64() < direct["prompt_tokens"].as_u64(),
        "no template around it"
    );

    // Ids need no tokenizer files.
    let bare = TempDir::new().unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(builtin("target").join(name), bare.path().join(name)).unwrap();
    }
    let bare = bare.path().to_string_lossy();
    let ids = program.generate(&[
        "-m",
        &bare,
        "--raw",
        "--prompt-ids",
        "5,6,7",
        "--ignore-eos",
        "-n",
        "16",
        "--temp",
        "0",
    ]);
    assert_eq!(
        (&ids["prompt_tokens"], ids["tokens"].as_array().unwrap().len()),
        (&json!(3), 16)
    );
    assert_eq!(ids["finish_reason"], "length");
    let missing = program.run(&["generate", "--json", "-m", &bare, "-p", "text"]);
    assert_eq!(missing.status.code(), Some(1));

    for broken in ["{", "[]", "3", r#"[{"content": "x"}]"#, r#"{"message": []}"#] {
        let path = write("broken.json", broken);
        let output = program.run(&["generate", "--json", "--messages", &path]);
        assert_eq!(output.status.code(), Some(1), "{broken}");
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(error["error"]["kind"], "input", "{broken}");
    }
}

#[test]
fn stop_strings_and_seeds_reach_the_engine() {
    let program = Program::new();
    let stopped = program.generate(&["-p", QUESTION, "--temp", "0", "--stop", "Par"]);
    assert_eq!(stopped["finish_reason"], "stop");
    assert!(!stopped["text"].as_str().unwrap().contains("Par"), "{stopped}");
    let sampled = |seed| {
        let arguments = [
            "--raw", "-p", "The", "--temp", "1", "--top-p", "0.95", "--min-p", "0.01", "--top-k", "50", "-n", "24",
        ];
        program.generate(&[&arguments[..], &["--seed", seed]].concat())["tokens"].clone()
    };
    assert_eq!(sampled("1"), sampled("1"));
    assert_ne!(sampled("1"), sampled("2"));
}

#[test]
fn failures_are_told_once_and_exit_with_one() {
    let program = Program::new();
    let empty = TempDir::new().unwrap();
    let folder = empty.path().to_string_lossy();
    for command in [vec!["generate", "-m", &folder, "-p", "x"], vec!["inspect", &folder]] {
        let plain = program.run(&command);
        assert_eq!(plain.status.code(), Some(1));
        assert!(plain.stdout.is_empty());
        let text = stderr(&plain);
        assert!(
            text.starts_with("slipstream: ") && text.contains("config.json") && text.contains("hint: "),
            "{text}"
        );

        let output = program.run(&[&command[..], &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(keys(&answer), ["error"]);
        assert_eq!(keys(&answer["error"]), ["kind", "message", "hint"]);
        assert_eq!(answer["error"]["kind"], "config_missing");
    }
}

#[test]
fn mistakes_on_the_command_line_exit_with_two() {
    let program = Program::new();
    let mistakes: [&[&str]; 16] = [
        &["frobnicate"],
        &["generate"],
        &["generate", "-p", "x", "--prompt-ids", "1"],
        &["generate", "-p", "x", "--no-such-flag"],
        &["generate", "-p", "x", "--draft-block-size", "1"],
        &["generate", "-p", "x", "--draft-block-size", "17"],
        &["generate", "-p", "x", "--draft-kind", "magic"],
        &["generate", "-p", "x", "--temp", "-1"],
        &["generate", "-p", "x", "--temp", "nan"],
        &["generate", "-p", "x", "--top-p", "2"],
        &["generate", "-p", "x", "-n", "0"],
        &["generate", "-p", "x", "--thinking", "maybe"],
        &["generate", "--prompt-ids", "1,x"],
        &["generate", "--prompt-ids", "-1"],
        &["generate", "--raw", "--messages", "x.json"],
        &["inspect"],
    ];
    for arguments in mistakes {
        let output = program.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    let output = program.run(&["generate", "--json", "--top-p", "2", "-p", "x"]);
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &error["error"]["kind"]),
        (Some(2), &json!("usage"))
    );
    for asked in [["--help"], ["--version"]] {
        let output = program.run(&asked);
        assert!(output.status.success() && !output.stdout.is_empty());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn without_a_display_the_window_says_what_to_do() {
    let output = Program::new().run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("slipstream chat"), "{}", stderr(&output));
}

#[test]
fn inspect_tells_what_a_folder_holds() {
    let program = Program::new();
    let inspect = |part| {
        let output = program.run(&["inspect", &builtin(part).to_string_lossy(), "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (target, drafter) = (inspect("target"), inspect("drafter"));
    assert_eq!(
        (&target["role"], &target["family"], &target["layers"]),
        (&json!("target"), &json!("qwen3_5"), &json!(12))
    );
    assert_eq!(target["mtp"]["location"], "none");
    assert_eq!(drafter["role"], "drafter");
    assert_eq!(drafter["mtp"]["location"], "drafter");
    let output = program.run(&["inspect", &builtin("target").to_string_lossy()]);
    assert!(stdout(&output).contains("qwen3_5"), "{}", stdout(&output));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let program = Program::new();
    let arguments = [
        &["generate", "--raw", "-p", "The", "--ignore-eos", "-n", "3000"],
        &ENDLESS[..],
    ]
    .concat();
    let mut child = program.command(&arguments).spawn().unwrap();
    let mut first = [0; 1];
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut first).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?} {}", output.status, stderr(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
#[cfg(unix)]
fn an_interrupt_ends_a_generation_and_prints_what_there_is() {
    let program = Program::new();
    let endless = [&["generate", "--raw", "-p", "The", "--ignore-eos"], &ENDLESS[..]].concat();
    let mut child = program.command(&endless).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("tok/s"));

    let mut child = program.command(&[&endless[..], &["--json"]].concat()).spawn().unwrap();
    // Nothing shows when the generation has begun; before it, the answer to the signal is to end at once.
    std::thread::sleep(Duration::from_secs(4));
    assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["finish_reason"], "cancelled");
    assert!(!answer["tokens"].as_array().unwrap().is_empty());
}

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
    let wrong = program.chat(&[], "/open 99\n/spec 99\n/frobnicate\n");
    assert!(
        wrong.status.success() && stderr(&wrong).contains("chat 99 does not exist"),
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
