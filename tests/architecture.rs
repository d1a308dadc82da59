//! The boundaries of ARCHITECTURE.md, kept by looking at the sources.

use std::path::{Path, PathBuf};

use models::families::FAMILIES;
use tests::root;

/// Files below `dir` with one of the endings, relative to the root.
fn sources(dir: &str, endings: &[&str]) -> Vec<(String, String)> {
    fn walk(dir: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", "node_modules", "dist", "gen"].contains(&name.as_str()) {
                    walk(&path, endings, out);
                }
            } else if endings.iter().any(|e| name.ends_with(e)) {
                out.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(&root().join(dir), endings, &mut paths);
    assert!(!paths.is_empty(), "no sources in {dir}");
    paths
        .into_iter()
        .map(|p| {
            let text = std::fs::read_to_string(&p).unwrap();
            (p.strip_prefix(root()).unwrap().display().to_string(), text)
        })
        .collect()
}

/// Code lines only: what a comment says is no dependency, and unit tests inside a file are none of the program.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    own.lines().filter(|l| !l.trim_start().starts_with("//"))
}

fn offenders(dir: &str, allowed: &[&str], needles: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources(dir, &[".rs"]) {
        if allowed.iter().any(|a| path.starts_with(a)) {
            continue;
        }
        for line in code(&text) {
            if let Some(n) = needles.iter().find(|n| line.contains(**n)) {
                found.push(format!("{path}: `{n}`"));
            }
        }
    }
    found
}

fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn a_family_is_named_only_in_its_folder_and_the_registry() {
    for family in FAMILIES {
        let name = family.name;
        let home = format!("models/src/families/{name}");
        let allowed = [
            home.as_str(),
            "models/src/families/mod.rs",
            "models/src/text/end_tokens.rs",
        ];
        none(
            "a family named outside its home",
            offenders("models/src", &allowed, &[name]),
        );
        // The catalogue's data names repositories, and so do unit tests about them.
        none(
            "a family named in the app",
            offenders("src-tauri/src", &["src-tauri/src/hub/catalog/tests.rs"], &[name]),
        );
    }
}

#[test]
fn families_do_not_know_each_other_or_the_engine() {
    for family in FAMILIES {
        let others: Vec<String> = FAMILIES
            .iter()
            .filter(|f| f.name != family.name)
            .map(|f| format!("families::{}", f.name))
            .collect();
        let mut needles: Vec<&str> = others.iter().map(String::as_str).collect();
        needles.extend(["crate::generate", "crate::text", "crate::registry", "std::fs"]);
        none(
            "a family reaches out",
            offenders(&format!("models/src/families/{}", family.name), &[], &needles),
        );
    }
}

#[test]
fn nothing_below_the_decoders_waits_for_the_device() {
    let waits = [
        ".eval()",
        "::eval(",
        "item_exact",
        ".item(",
        "as_slice::",
        "to_vec_exact",
        "item_cast",
    ];
    for dir in ["models/src/families", "models/src/nn", "models/src/cache"] {
        none("a host wait", offenders(dir, &[], &waits));
    }
    let reads = offenders(
        "models/src/generate",
        &["models/src/generate/mod.rs"],
        &["try_as_slice", "as_slice::", "item_"],
    );
    none("decoding reads results in one place only", reads);
}

#[test]
fn the_engine_crate_has_no_network_async_or_ui() {
    let manifest = std::fs::read_to_string(root().join("models/Cargo.toml")).unwrap();
    for name in ["tokio", "tauri", "sqlx", "hf-hub", "reqwest"] {
        assert!(
            !manifest.lines().any(|l| l.starts_with(name)),
            "models depends on {name}"
        );
    }
    let text = offenders("models/src/text", &[], &["mlx_rs"]);
    none("text knows arrays", text);
    none(
        "the app knows arrays",
        offenders("src-tauri/src", &[], &["mlx_rs", "mlx_sys"]),
    );
}

#[test]
fn the_app_uses_only_the_engines_front_door() {
    let inner = [
        "cache",
        "checkpoint",
        "families",
        "family",
        "generate",
        "nn",
        "registry",
        "sampler",
    ];
    let needles: Vec<String> = inner.iter().map(|m| format!("models::{m}::")).collect();
    let needles: Vec<&str> = needles.iter().map(String::as_str).collect();
    none(
        "the app looks inside the engine",
        offenders("src-tauri/src", &[], &needles),
    );
}

#[test]
fn each_outside_library_has_one_home_in_the_app() {
    let window = [
        "src-tauri/src/lib.rs",
        "src-tauri/src/main.rs",
        "src-tauri/src/commands",
        "src-tauri/src/state.rs",
    ];
    none(
        "tauri outside the window's files",
        offenders("src-tauri/src", &window, &["tauri::", "tauri_plugin"]),
    );
    none(
        "sqlx outside the store",
        offenders("src-tauri/src", &["src-tauri/src/store"], &["sqlx"]),
    );
}

#[test]
fn unsafe_code_is_in_one_file() {
    let allowed = ["models/src/nn/ffi.rs"];
    none("unsafe code", offenders("models/src", &allowed, &["unsafe "]));
}

#[test]
fn the_window_talks_to_the_app_in_few_places() {
    let mut found = Vec::new();
    for (path, text) in sources("ui/src", &[".ts", ".svelte"]) {
        let allowed = path.contains("ui/src/lib/") || path.contains("ui/src/state/") || path.contains("ui/src/dev/");
        if !allowed && text.contains("@tauri-apps/api") {
            found.push(path);
        }
    }
    none("a component talks to the app", found);
}

#[test]
fn files_stay_small() {
    let mut large = Vec::new();
    for (dir, endings) in [
        ("models/src", &[".rs"][..]),
        ("src-tauri/src", &[".rs"]),
        ("tests", &[".rs", ".mjs"]),
        ("ui/src", &[".ts", ".svelte"]),
    ] {
        for (path, text) in sources(dir, endings) {
            // Nobody reads what is generated.
            if path.ends_with("bindings.ts") {
                continue;
            }
            let lines = text.lines().count();
            if lines > 800 {
                large.push(format!("{path}: {lines} lines"));
            } else if lines > 500 {
                eprintln!("{path}: {lines} lines");
            }
        }
    }
    none("files past 800 lines", large);
}

#[test]
fn every_public_trait_says_what_it_promises() {
    for (path, text) in sources("models/src", &[".rs"]) {
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            if line.starts_with("pub trait ") {
                assert!(
                    i > 0 && lines[i - 1].starts_with("///"),
                    "{path}: `{line}` has no contract"
                );
            }
        }
    }
}
