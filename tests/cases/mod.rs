//! Table tests over the shared cases: one test a folder, every case of it, all failures by id. Where the cases are is
//! said by `CASES_ROOT`; without it they lie beside the repository.

mod eos;
mod loading;
pub(crate) mod materialise;
mod sampling;
mod streams;
mod templates;
mod thinking;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Set in the child process that runs one case with little memory: the case's id.
const CHILD_CASE: &str = "SLIPSTREAM_CASE";
/// The child's address space, as `ulimit -v` takes it.
const CHILD_KIB: u32 = 2 << 20;

type Check = std::result::Result<(), String>;

fn root() -> PathBuf {
    match std::env::var_os("CASES_ROOT") {
        Some(root) => PathBuf::from(root),
        None => tests::root().join("../shared/cases"),
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

/// Runs the case once more in a child process with little memory, which must end by itself. `test` is the child's part.
fn in_child(test: &str, id: &str) -> Check {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -v {CHILD_KIB} && exec \"$0\" --exact {test} --test-threads 1"),
        ])
        .arg(program)
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

/// In a child process, the case it is for.
fn case_of_child(folder: &str) -> Option<Value> {
    let id = std::env::var(CHILD_CASE).ok()?;
    cases(folder)?.into_iter().find(|case| case["id"] == id.as_str())
}
