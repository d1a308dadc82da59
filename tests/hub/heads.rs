//! Heads fetched by byte range, judged by the engine: its own check takes the folder, and it drafts as the head that
//! lies in the original.

use std::path::{Path, PathBuf};

use app::hub::{CancelToken, Hub, HubConfig, PartRequest, Plan};
use tempfile::TempDir;
use tests::fake_hub::{Body, FakeHub, File, Repo};
use tests::{golden, greedy, load, run};

const REPO: &str = "tiny-org/tiny-model";

/// What a download of the head alone makes.
fn fetched(hub: &FakeHub, home: &Path) -> (Plan, PathBuf) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let hub = Hub::new(HubConfig::at(&hub.url(), home)).unwrap();
        let request = PartRequest {
            repo: REPO.parse().unwrap(),
            revision: None,
            include: Vec::new(),
            exclude: Vec::new(),
            head_only: true,
        };
        let cancel = CancelToken::new();
        let plan = hub.plan(&[request], &cancel).await.unwrap();
        let parts = hub.download(&plan, &|_| {}, &cancel).await.unwrap();
        (plan, parts[0].dir.clone())
    })
}

#[test]
fn a_head_fetched_by_range_is_taken_by_the_engine_and_drafts_the_same() {
    // A head in the target's only file, one of a mixture of experts, and one in a file beside the index.
    for source in ["qwen3_5/hf", "qwen3_5_moe/hf", "inkling/hf"] {
        let (hub, home) = (
            FakeHub::with(Repo::new(REPO, File::all_in(&golden(source)))),
            TempDir::new().unwrap(),
        );
        let (plan, dir) = fetched(&hub, home.path());
        let (head, all) = (
            plan.parts[0].head.as_ref().unwrap(),
            models::inspect(&golden(source)).unwrap(),
        );
        assert_eq!(head.in_place_of(), all.bytes, "{source}");
        assert!(head.total() < all.bytes, "{source}: {} of {}", head.total(), all.bytes);

        let inspection = models::inspect(&dir).unwrap();
        assert!(inspection.problems.is_empty(), "{source}: {:?}", inspection.problems);
        assert_eq!(
            (inspection.role, inspection.mtp.tensors, head.tensors()),
            ("drafter", all.mtp.tensors, all.mtp.tensors),
            "{source}"
        );
        let prompt = tests::ids(&tests::json(&golden(source).with_file_name("ref.json"))["prompt_short"]);
        let drafted = |drafter: Option<&Path>| {
            let run = run(load(&golden(source), drafter).as_ref(), &prompt, Some(3), &greedy(), 40);
            (run.tokens, run.accepted)
        };
        assert_eq!(drafted(Some(&dir)), drafted(None), "{source}");
    }
}

/// A head of a folder of its own is found there again.
#[test]
fn a_head_in_the_mtp_folder_is_taken_by_the_engine() {
    let weights = std::fs::read(golden("qwen3_5/mlx-q4-mtp").join("model.safetensors")).unwrap();
    let mut files = File::all_in(&golden("qwen3_5/mlx-q4"));
    files.push(File::large("mtp/weights.safetensors", Body::Bytes(weights.into())));
    let (hub, home) = (FakeHub::with(Repo::new(REPO, files)), TempDir::new().unwrap());
    let (_, dir) = fetched(&hub, home.path());
    let inspection = models::inspect(&dir).unwrap();
    assert_eq!(
        (inspection.role, inspection.problems.len()),
        ("drafter", 0),
        "{:?}",
        inspection.problems
    );
    assert_eq!(inspection.mtp.files, ["mtp/weights.safetensors"]);
}
