//! Table tests of `models::text` over the shared cases: one test a folder, every case of it, all failures by id.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use models::Error;
use models::text::{ChatTemplate, EndTokens, Outcome, OutputFormat, RenderInput, TextStream, Thinking, ThinkingParser};
use serde_json::{Map, Value, json};

/// Set in the child process that renders one template with little memory: the id of its case.
const CHILD_CASE: &str = "SLIPSTREAM_TEMPLATE_CASE";
const CHILD_TEST: &str = "cases_text::one_template_with_little_memory";
/// The child's address space, as `ulimit -v` takes it.
const CHILD_KIB: u32 = 2 << 20;

type Check = std::result::Result<(), String>;

fn root() -> PathBuf {
    match std::env::var_os("CASES_ROOT") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases"),
    }
}

/// The cases of a folder; `None`, and a word about it, where there are none on this machine.
fn cases(folder: &str) -> Option<Vec<Value>> {
    let path = root().join(folder).join("cases.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    };
    let mut file: Value = serde_json::from_str(&text).unwrap();
    match file["cases"].take() {
        Value::Array(cases) => Some(cases),
        other => panic!("{} holds no cases but {other}", path.display()),
    }
}

fn run(folder: &str, check: impl Fn(&Value) -> Check) {
    let Some(cases) = cases(folder) else { return };
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            Some(format!(
                "{}: {}",
                case["id"].as_str().unwrap_or("?"),
                check(case).err()?
            ))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases of {folder} fail:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
    eprintln!("{folder}: {} cases pass", cases.len());
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Check {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} is {found:?}, expected {expected:?}"))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

// ---- templates

/// Template errors as the cases name them.
fn template_kind(error: &Error) -> &'static str {
    match error {
        Error::TemplateSyntax { .. } => "template_syntax",
        Error::TemplateRaised { .. } => "template_raised",
        Error::TemplateRuntime { .. } => "template_runtime",
        Error::TemplateLimit { .. } => "template_limit",
        Error::TemplateMissing => "template_missing",
        _ => "other",
    }
}

fn template_of(case: &Value, folder: &Path) -> models::Result<ChatTemplate> {
    if let Some(file) = case["file"].as_str() {
        return Ok(ChatTemplate::from_source(
            std::fs::read_to_string(folder.join(file)).unwrap(),
        ));
    }
    if let Some(parts) = case["build"].as_array() {
        let part = |part: &Value| match part["text"].as_str() {
            Some(text) => text.to_owned(),
            None => text(&part["repeat"]).repeat(number(&part["times"])),
        };
        return Ok(ChatTemplate::from_source(parts.iter().map(part).collect::<String>()));
    }
    if let Some(files) = case["files"].as_object() {
        let dir = tempfile::tempdir().unwrap();
        write_files(dir.path(), files.iter());
        return ChatTemplate::load(dir.path())?.ok_or(Error::TemplateMissing);
    }
    Ok(ChatTemplate::from_source(text(&case["template"])))
}

fn write_files<'a>(dir: &Path, files: impl Iterator<Item = (&'a String, &'a Value)>) {
    for (name, content) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(
            path,
            content.as_str().map_or_else(|| content.to_string(), str::to_owned),
        )
        .unwrap();
    }
}

fn render(case: &Value) -> models::Result<String> {
    let built = list(&case["messages_build"]["repeat"]);
    let messages = match case.get("messages") {
        Some(messages) => messages.clone(),
        None => (0..case["messages_build"]["times"].as_u64().unwrap_or(0))
            .flat_map(|_| built.to_vec())
            .collect(),
    };
    let vars = case["vars"].as_object().cloned().unwrap_or_default();
    template_of(case, &root().join("templates"))?.render(RenderInput {
        messages: &messages,
        tools: case.get("tools").filter(|tools| !tools.is_null()),
        add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap_or(false),
        vars: &vars,
        now: case["now"].as_str().map(|now| now.parse().unwrap()),
    })
}

fn check_template(case: &Value) -> Check {
    let start = Instant::now();
    let result = render(case);
    let took = start.elapsed();
    let expect = &case["expect"];
    if let Some(limit) = expect["within_ms"].as_u64()
        && took > Duration::from_millis(limit)
    {
        return Err(format!("took {took:?}, allowed are {limit} ms"));
    }
    let kinds: Vec<&str> = match expect["error"].as_str() {
        Some(kind) => vec![kind],
        None => list(&expect["error_any"]).iter().map(text).collect(),
    };
    match result {
        Ok(found) => {
            if let Some(sum) = expect["sha256"].as_str() {
                same("length", found.len(), number(&expect["utf8_bytes"]))?;
                return same("sha256", sha256(found.as_bytes()).as_str(), sum);
            }
            match expect["text"].as_str().or(expect["or_text"].as_str()) {
                Some(text) => same("text", found.as_str(), text),
                None => Err(format!(
                    "no error, but the text {:?}",
                    found.chars().take(80).collect::<String>()
                )),
            }
        }
        Err(error) => {
            let shown = error.to_string();
            if !kinds.contains(&template_kind(&error)) {
                return Err(format!("{} ({shown}), expected {kinds:?}", template_kind(&error)));
            }
            match expect["message"].as_str() {
                Some(message) if !shown.contains(message) => Err(format!("{shown:?} does not say {message:?}")),
                _ => Ok(()),
            }
        }
    }
}

#[test]
fn templates() {
    run("templates", |case| {
        check_template(case)?;
        let is_about_limits = list(&case["expect"]["error_any"])
            .iter()
            .any(|kind| kind == "template_limit");
        if is_about_limits {
            in_child(text(&case["id"]))
        } else {
            Ok(())
        }
    });
}

/// Renders the case once more in a child process that has little memory, and must end by itself.
fn in_child(id: &str) -> Check {
    let test = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -v {CHILD_KIB} && exec \"$0\" --exact {CHILD_TEST} --test-threads 1"),
        ])
        .arg(test)
        .env(CHILD_CASE, id)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let has_run = shown.contains("1 passed");
    if output.status.success() && has_run {
        return Ok(());
    }
    Err(format!(
        "in a child process: {}, {shown} {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The child's part; by itself it has nothing to do.
#[test]
fn one_template_with_little_memory() {
    let Ok(id) = std::env::var(CHILD_CASE) else { return };
    let cases = cases("templates").unwrap();
    let case = cases.iter().find(|case| case["id"] == id.as_str()).unwrap();
    check_template(case).unwrap();
}

// ---- streams

#[test]
fn streams() {
    run("streams", |case| {
        let pieces: Vec<Vec<u8>> = list(&case["pieces"]).iter().map(|hex| bytes(text(hex))).collect();
        for burst in list(&case["bursts"]) {
            let sizes: Vec<usize> = list(burst).iter().map(number).collect();
            check_stream(case, &pieces, &sizes).map_err(|error| format!("bursts {sizes:?}: {error}"))?;
        }
        Ok(())
    });
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn check_stream(case: &Value, pieces: &[Vec<u8>], bursts: &[usize]) -> Check {
    let expect = &case["expect"];
    let stops: Vec<String> = list(&case["stops"]).iter().map(|stop| text(stop).to_owned()).collect();
    let end_at = case["eos_at"].as_u64().map(|at| usize::try_from(at).unwrap());
    let deltas: Vec<&str> = list(&expect["deltas"]).iter().map(text).collect();
    let least: Vec<usize> = list(&expect["least_chars"]).iter().map(number).collect();

    let mut stream = TextStream::new(&stops);
    let mut shown = String::new();
    let (mut next, mut has_ended) = (0, false);
    for size in bursts {
        let burst = next..next + size;
        next = burst.end;
        for at in burst {
            has_ended = has_ended || Some(at) == end_at || stream.push(&pieces[at], &mut shown).is_break();
            if has_ended {
                break;
            }
        }
        for never in list(&expect["never"]) {
            if shown.contains(text(never)) {
                return Err(format!("{shown:?} shows {never}"));
            }
        }
        if has_ended {
            break;
        }
        let ceiling = deltas[..next].concat();
        if !ceiling.starts_with(&shown) {
            return Err(format!(
                "after token {next} {shown:?} is shown, at most {ceiling:?} may be"
            ));
        }
        if shown.chars().count() < least[next - 1] {
            return Err(format!("after token {next} only {shown:?} is shown"));
        }
    }
    stream.finish(&mut shown);

    let texts = [expect["text"].as_str(), expect["or_text"].as_str()];
    if !texts.contains(&Some(shown.as_str())) {
        return Err(format!("text is {shown:?}, expected {texts:?}"));
    }
    same(
        "finish",
        if has_ended { "stop" } else { "length" },
        text(&expect["finish"]),
    )?;
    same("stop", stream.stop(), expect["stop"].as_str())?;
    same("used tokens", stream.used_tokens(), number(&expect["used_tokens"]))
}

// ---- thinking

#[test]
fn thinking() {
    run("thinking", |case| {
        let output: Vec<char> = text(&case["output"]).chars().collect();
        let mut cuts = vec![vec![output.len()], vec![1; output.len()]];
        cuts.extend(
            list(&case["cuts"])
                .iter()
                .map(|cut| list(cut).iter().map(number).collect()),
        );
        for size in [2, 3, 7] {
            cuts.push(vec![size; output.len().div_ceil(size)]);
        }
        for sizes in cuts {
            check_thinking(case, &output, &sizes).map_err(|error| format!("cut {sizes:?}: {error}"))?;
        }
        Ok(())
    });
}

fn check_thinking(case: &Value, output: &[char], sizes: &[usize]) -> Check {
    let format = match text(&case["format"]) {
        "qwen" => OutputFormat::Qwen,
        "inkling" => OutputFormat::Inkling,
        _ => OutputFormat::Plain,
    };
    let expect = &case["expect"];
    let mut parser = ThinkingParser::new(format, text(&case["prompt_tail"]), case.get("tools"));
    let (mut reasoning, mut answer) = (String::new(), String::new());
    let mut rest = output;
    for size in sizes {
        let (chunk, tail) = rest.split_at((*size).min(rest.len()));
        rest = tail;
        let delta = parser.push(&chunk.iter().collect::<String>());
        reasoning += &delta.reasoning;
        answer += &delta.answer;
        for never in list(&expect["never_shown"]).iter().map(text) {
            if reasoning.contains(never) || answer.contains(never) {
                return Err(format!("{never:?} is shown in {reasoning:?} or {answer:?}"));
            }
        }
    }
    if !rest.is_empty() {
        return Err("the cuts do not cover the output".to_owned());
    }
    let outcome = parser.finish(case["end"] == "length");
    same(
        "reasoning shown in pieces",
        reasoning + &outcome.last.reasoning,
        outcome.reasoning.clone(),
    )?;
    same(
        "answer shown in pieces",
        answer + &outcome.last.answer,
        outcome.answer.clone(),
    )?;
    check_outcome(expect, &outcome)
}

fn check_outcome(expect: &Value, outcome: &Outcome) -> Check {
    let is_loose = expect["loose"] == true;
    let bare = |text: &str| {
        if is_loose {
            text.split_whitespace().collect()
        } else {
            text.trim().to_owned()
        }
    };
    let reasoning = bare(&outcome.reasoning);
    if expect["reasoning_or"].as_str().map(bare).as_ref() != Some(&reasoning) {
        same("reasoning", reasoning, bare(text(&expect["reasoning"])))?;
    }
    if let Some(answer) = expect["answer"].as_str() {
        same("answer", bare(&outcome.answer), bare(answer))?;
    }
    let thinking = match outcome.thinking {
        Thinking::None => "none",
        Thinking::Open => "open",
        Thinking::Closed => "closed",
    };
    same("thinking", thinking, text(&expect["thinking"]))?;
    let calls: Vec<Value> = outcome
        .tool_calls
        .iter()
        .map(|call| by_value(&json!({"name": call.name, "arguments": call.arguments})))
        .collect();
    same(
        "tool calls",
        calls,
        list(&expect["tool_calls"]).iter().map(by_value).collect(),
    )?;
    same(
        "notice",
        outcome.thinking_used_budget,
        expect["notice"] == "thinking_used_budget",
    )
}

/// Numbers as floats, so that 1 equals 1.0.
fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(by_value).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), by_value(value)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

// ---- eos

#[test]
fn eos() {
    run("eos", |case| {
        let dir = tempfile::tempdir().unwrap();
        let files = case
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| name.ends_with(".json"));
        write_files(dir.path(), files);
        let tokens = list(&case["tokenizer.json"]["added_tokens"]);
        let token_id = |wanted: &str| {
            let token = tokens.iter().find(|token| token["content"] == wanted)?;
            u32::try_from(token["id"].as_u64()?).ok()
        };
        let end = EndTokens::load(dir.path(), token_id).map_err(|error| error.to_string())?;
        let found: BTreeSet<u64> = end.ids.iter().copied().map(u64::from).collect();
        same("number of ids", end.ids.len(), found.len())?;
        same(
            "eos",
            found,
            list(&case["expect"]["eos"]).iter().filter_map(Value::as_u64).collect(),
        )
    });
}

/// SHA-256 (FIPS 180-4) in hexadecimal; the cases give long texts by their sum.
fn sha256(message: &[u8]) -> String {
    let primes: Vec<u64> = (2u64..).filter(|n| (2..*n).all(|d| n % d != 0)).take(64).collect();
    // The first 32 bits of the fractional part of a root, by bisection on whole numbers.
    let fraction = |prime: u64, power: u32| {
        let (mut low, mut high) = (0u128, 1u128 << 40);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if middle.pow(power) <= u128::from(prime) << (32 * power) {
                low = middle
            } else {
                high = middle
            }
        }
        low as u32
    };
    let constants: Vec<u32> = primes.iter().map(|prime| fraction(*prime, 3)).collect();
    let mut state: Vec<u32> = primes[..8].iter().map(|prime| fraction(*prime, 2)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64), 0);
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut words: Vec<u32> = block
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        for at in 16..64 {
            let (a, b) = (words[at - 15], words[at - 2]);
            let small0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let small1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            words.push(
                words[at - 16]
                    .wrapping_add(small0)
                    .wrapping_add(words[at - 7])
                    .wrapping_add(small1),
            );
        }
        let mut s: [u32; 8] = state.clone().try_into().unwrap();
        for at in 0..64 {
            let big1 = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choice = (s[4] & s[5]) ^ (!s[4] & s[6]);
            let first = [big1, choice, constants[at], words[at]]
                .iter()
                .fold(s[7], |sum, term| sum.wrapping_add(*term));
            let big0 = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
            s.rotate_right(1);
            s[4] = s[4].wrapping_add(first);
            s[0] = first.wrapping_add(big0).wrapping_add(majority);
        }
        for (total, part) in state.iter_mut().zip(s) {
            *total = total.wrapping_add(part);
        }
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

#[test]
fn the_sum_is_sha256() {
    assert_eq!(
        sha256(b""),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    assert_eq!(
        sha256(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        sha256(&[b'a'; 60]),
        "11ee391211c6256460b6ed375957fadd8061cafbb31daf967db875aebd5aaad4"
    );
}
