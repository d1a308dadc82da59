//! The program itself, headless, with the built-in model.

mod bench;
mod chat;
mod download;
mod generate;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use app::ipc::Chat;
use app::store::Store;
use serde_json::Value;
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
