//! `slipstream download` against the fake hub.

use std::time::{Duration, Instant};

use serde_json::Value;
use tests::fake_hub::{Body, FakeHub, File, Repo};

use super::{Program, signal, stderr, stdout};

const REPO: &str = "tiny-org/tiny-model";
const SIZE: u64 = 4 << 20;
const SOON: Duration = Duration::from_secs(30);

fn hub() -> FakeHub {
    FakeHub::with(Repo::new(
        REPO,
        [
            File::small("config.json", "{}"),
            File::small("README.md", "hello"),
            File::large("mtp.safetensors", Body::formula(SIZE, 1)),
        ],
    ))
}

/// The program told to use the fake hub, with its cache in the data folder.
fn download(program: &Program, hub: &FakeHub, arguments: &[&str]) -> std::process::Command {
    let mut command = program.command(&[&["download", REPO], arguments].concat());
    command
        .env("HF_HOME", program.data.path().join("hf"))
        .env("HF_ENDPOINT", hub.url());
    for name in [
        "HF_HUB_CACHE",
        "HUGGINGFACE_HUB_CACHE",
        "HF_TOKEN",
        "HF_TOKEN_PATH",
        "HF_HUB_OFFLINE",
    ] {
        command.env_remove(name);
    }
    command
}

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// A token that was entered in the window serves the command line too, and is not told to anybody.
#[test]
fn the_token_of_the_window_is_used() {
    let program = Program::new();
    let gated = Repo::new(REPO, [File::small("config.json", "{}")]).gated_but_for(&["hf_entered"]);
    let hub = FakeHub::with(gated);
    let arguments = ["--include", "config.json"];
    let refused = download(&program, &hub, &arguments).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    std::fs::write(program.data.path().join("hub-token"), "hf_entered\n").unwrap();
    let output = download(&program, &hub, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!(stdout(&output) + &stderr(&output)).contains("hf_entered"));
}

#[test]
fn patterns_choose_and_json_tells_plan_progress_and_folder() {
    let (program, hub) = (Program::new(), hub());
    let arguments = ["--include", "config.json", "--include", "mtp.safetensors", "--json"];
    let output = download(&program, &hub, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let events = events(&stdout(&output));
    assert_eq!(events[0]["event"], "plan");
    assert_eq!(events[0]["total"], SIZE + 2);
    let done = events.last().unwrap();
    assert_eq!(done["event"], "done");
    assert_eq!(done["commit"], tests::fake_hub::COMMIT);
    let dir = std::path::Path::new(done["dir"].as_str().unwrap());
    let mut names: Vec<_> = dir
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["config.json", "mtp.safetensors"]);
    assert_eq!(
        std::fs::read(dir.join("mtp.safetensors")).unwrap(),
        Body::formula(SIZE, 1).bytes()
    );
}

#[test]
fn a_pattern_that_matches_nothing_lists_what_is_there() {
    let (program, hub) = (Program::new(), hub());
    let output = download(&program, &hub, &["--include", "nothing.safetensors"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = stderr(&output);
    assert!(
        text.contains("mtp.safetensors") && text.contains("config.json"),
        "{text}"
    );
    assert_eq!(stdout(&output), "");
    assert_eq!(hub.content_gets().len(), 0);
}

#[test]
fn killed_and_started_again_it_fetches_the_rest() {
    let (program, hub) = (Program::new(), hub());
    let arguments = ["--include", "mtp.safetensors", "--json"];
    hub.hold_after(Some(SIZE / 2));
    let mut child = download(&program, &hub, &arguments).spawn().unwrap();
    assert!(hub.until_held(SOON));
    std::thread::sleep(Duration::from_millis(200));
    child.kill().unwrap();
    child.wait().unwrap();
    hub.hold_after(None);
    hub.forget_requests();
    let output = download(&program, &hub, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(hub.served() <= SIZE / 2 + (256 << 10), "{} served", hub.served());
    let events = events(&stdout(&output));
    assert!(events[0]["present"].as_u64().unwrap() >= SIZE / 2 - (256 << 10));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_at_once_and_says_what_was_kept() {
    let (program, hub) = (Program::new(), hub());
    hub.hold_after(Some(SIZE / 2));
    let child = download(&program, &hub, &["--include", "mtp.safetensors"])
        .spawn()
        .unwrap();
    assert!(hub.until_held(SOON));
    let start = Instant::now();
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(output.status.code(), Some(130));
    assert!(stderr(&output).contains("kept"), "{}", stderr(&output));
}
