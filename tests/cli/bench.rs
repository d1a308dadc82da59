//! `bench`.

use serde_json::Value;
use tests::root;

use super::{Program, stderr, stdout};

#[test]
fn bench_writes_its_report_and_keeps_it() {
    let program = Program::new();
    let file = program.data.path().join("report.json");
    let arguments = [
        "bench",
        "--prompts",
        "predictable,unpredictable",
        "--block-sizes",
        "off,3",
        "--repetitions",
        "1",
        "--max-tokens",
        "8",
        "--json",
        file.to_str().unwrap(),
    ];
    let output = program.run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let schema = tests::json(&root().join("assets/bench/report.schema.json"));
    assert_eq!(tests::schema::faults(&schema, &report), Vec::<String>::new());
    assert_eq!(report["runs"].as_array().unwrap().len(), 4);
    assert_eq!(report["passes"][0]["rows"], 1, "the passes are timed at load");
    assert_eq!(report["winner"]["verdict"], "unknown", "one repetition tells nothing");
    assert!(
        stdout(&output).starts_with("## Slipstream benchmark"),
        "{}",
        stdout(&output)
    );
    let progress = stderr(&output);
    assert!(
        progress.contains("[6/6]") && progress.contains("No winner"),
        "{progress}"
    );

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let kept = runtime.block_on(async {
        let store = app::store::Store::open(program.data.path()).await.unwrap();
        let kept = store.benches().await.unwrap();
        store.close().await;
        kept
    });
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].identical, Some(true));

    let lost = program.run(&["bench", "--json", "/no/such/folder/report.json"]);
    assert_eq!(lost.status.code(), Some(1));
    assert!(
        !stderr(&lost).contains("runs"),
        "nothing was measured for it: {}",
        stderr(&lost)
    );
    let wrong = program.run(&["bench", "--block-sizes", "off,99"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}
