//! `ui/src/bindings.ts` is what `src-tauri/src/ipc` says. With `SLIPSTREAM_WRITE_BINDINGS=1` it is written.

use std::path::Path;

#[test]
fn the_committed_bindings_are_those_of_ipc() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/bindings.ts");
    let generated = app::ipc::bindings();
    if std::env::var_os("SLIPSTREAM_WRITE_BINDINGS").is_some_and(|value| value == "1") {
        std::fs::write(&file, generated).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == generated,
        "ui/src/bindings.ts is not what ipc says: npm run bindings"
    );
}

#[test]
fn every_type_of_ipc_is_exported() {
    let source = concat!(
        include_str!("../src-tauri/src/ipc/mod.rs"),
        include_str!("../src-tauri/src/ipc/hub.rs"),
        include_str!("../src-tauri/src/ipc/model.rs"),
        include_str!("../src-tauri/src/ipc/bench.rs"),
        include_str!("../src-tauri/src/ipc/compare.rs"),
        include_str!("../src-tauri/src/ipc/chats.rs")
    );
    let generated = app::ipc::bindings();
    let declared = source.lines().filter_map(|line| {
        line.strip_prefix("pub struct ")
            .or_else(|| line.strip_prefix("pub enum "))?
            .split([' ', '(', '{'])
            .next()
    });
    let missing: Vec<_> = declared
        .filter(|name| !generated.contains(&format!("export type {name} =")))
        .collect();
    assert!(missing.is_empty(), "not in bindings(): {missing:?}");
}
