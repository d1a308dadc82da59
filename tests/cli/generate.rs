//! `generate` and `inspect`.

use std::io::Read;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ENDLESS, Program, QUESTION, builtin, keys, signal, stderr, stdout};

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
            "thinking",
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
        "state",
        "sentence",
        "reason",
        "exactness",
        "exactness_sentence",
        "in_parts",
        "block_size",
        "accept",
        "rounds",
        "plain_rounds",
        "drafted",
        "accepted",
        "acceptance_rate",
        "tokens_per_round",
        "drafted_per_round",
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
    assert_eq!(speculation["accept"], "equality");
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
    assert_eq!(off["speculation"]["accept"], Value::Null);

    let by_chance = |temp| program.generate(&["-p", QUESTION, "--temp", temp, "--accept", "rejection", "-n", "8"]);
    assert_eq!(by_chance("0.7")["speculation"]["accept"], "rejection");
    assert_eq!(by_chance("0")["speculation"]["accept"], "equality");
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
fn a_head_is_extracted_and_drafts() {
    let program = Program::new();
    let dir = TempDir::new().unwrap();
    let to = dir.path().join("head");
    let (source, to) = (
        tests::golden("qwen3_5/hf").display().to_string(),
        to.display().to_string(),
    );
    let extract = ["extract-head", &source, "--to", &to, "--json"];
    let output = program.run(&extract);
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["tensors"], &told["from"]),
        (&json!(15), &json!(["model.safetensors"]))
    );
    let again = program.run(&extract);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    let target = tests::golden("qwen3_5/mlx").display().to_string();
    let ids = [
        "--raw",
        "--ignore-eos",
        "--prompt-ids",
        "11,5,93,40,7",
        "-n",
        "24",
        "--temp",
        "0",
    ];
    let with = program.generate(&[&["-m", &target, "--draft-model", &to], &ids[..]].concat());
    let without = program.generate(&[&["-m", &target], &ids[..]].concat());
    assert_eq!(with["tokens"], without["tokens"]);
    assert_eq!(
        (&with["speculation"]["enabled"], &without["speculation"]["enabled"]),
        (&json!(true), &json!(false))
    );
    assert!(without["speculation"]["reason"].as_str().unwrap().contains("announces"));
}

#[test]
fn a_wiring_is_chosen_by_name_and_told() {
    let program = Program::new();
    let target = tests::golden("inkling/hf").display().to_string();
    let with = |wiring| {
        let ids = [
            "--raw",
            "--ignore-eos",
            "--prompt-ids",
            "11,5,93,40,7",
            "-n",
            "24",
            "--temp",
            "0",
        ];
        program.generate(&[&["-m", &target, "--draft-wiring", wiring], &ids[..]].concat())
    };
    let (a, b) = (with("contract"), with("sglang"));
    assert_eq!(a["tokens"], b["tokens"]);
    assert_eq!(
        (&a["speculation"]["wiring"], &b["speculation"]["wiring"]),
        (&json!("contract"), &json!("sglang"))
    );
    let unknown = program.run(&[
        "generate",
        "-m",
        &target,
        "--draft-wiring",
        "x",
        "--raw",
        "--prompt-ids",
        "1,2",
    ]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("sglang"), "{}", stderr(&unknown));
}

#[test]
fn a_thinking_budget_ends_the_thinking_and_is_told() {
    let program = Program::new();
    let thinking = |more: &[&str]| {
        let usual = ["-p", QUESTION, "--temp", "0", "-n", "48", "--thinking", "on"];
        program.generate(&[&usual[..], more].concat())
    };
    let on = thinking(&["--thinking-budget", "5"]);
    let off = thinking(&["--thinking-budget", "5", "--draft-kind", "none"]);
    assert_eq!((&on["text"], &on["tokens"]), (&off["text"], &off["tokens"]));
    assert_eq!(
        (&on["thinking"]["tokens"], &on["thinking"]["ended"]),
        (&json!(5), &json!("budget"))
    );
    assert!(on["text"].as_str().unwrap().contains("</think>"));

    // Ids alone have no tags.
    let target = tests::golden("qwen3_5/hf").display().to_string();
    let ids = ["generate", "-m", &target, "--raw", "--prompt-ids", "1,2,3", "-n", "4"];
    let none = program.run(&[&ids[..], &["--thinking-budget", "5"]].concat());
    assert!(none.status.success());
    assert!(stderr(&none).contains("no thinking"), "{}", stderr(&none));
}
