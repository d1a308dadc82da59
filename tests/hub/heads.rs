//! Heads fetched by byte range, judged by the engine: its own check takes the folder, and it drafts as the head that
//! lies in the original.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::hub::{CancelToken, Hub, HubConfig, PartRequest, Plan};
use tempfile::TempDir;
use tests::fake_hub::{Body, FakeHub, File, Repo};
use tests::{golden, greedy, load, run};

const REPO: &str = "tiny-org/tiny-model";

fn of_head() -> PartRequest {
    PartRequest {
        repo: REPO.parse().unwrap(),
        revision: None,
        branch: None,
        include: Vec::new(),
        exclude: Vec::new(),
        head_only: true,
    }
}

/// What a download of the head alone makes.
fn fetched(hub: &FakeHub, home: &Path) -> (Plan, PathBuf) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let hub = Hub::new(HubConfig::at(&hub.url(), home)).unwrap();
        let cancel = CancelToken::new();
        let plan = hub.plan(&[of_head()], &cancel).await.unwrap();
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

/// A head goes to the home, which may be on another disk than the cache: that one must have room.
#[tokio::test]
async fn room_for_a_head_is_looked_for_where_it_goes() {
    let hub = FakeHub::with(Repo::new(REPO, File::all_in(&golden("qwen3_5/hf"))));
    let dir = TempDir::new().unwrap();
    let (home, cache) = (dir.path().join("home"), dir.path().join("cache"));
    let with_room_only_in = |place: &Path| {
        let place = place.to_owned();
        let config = HubConfig {
            cache_dir: cache.clone(),
            disk_free: Arc::new(move |dir: &Path| Some(if dir.starts_with(&place) { u64::MAX } else { 0 })),
            ..HubConfig::at(&hub.url(), &home)
        };
        Hub::new(config).unwrap()
    };
    let cancel = CancelToken::new();
    let roomy = with_room_only_in(&home);
    let plan = roomy.plan(&[of_head()], &cancel).await.unwrap();
    assert!(plan.fits());
    roomy.download(&plan, &|_| {}, &cancel).await.unwrap();

    std::fs::remove_dir_all(&home).unwrap();
    let full = with_room_only_in(&cache);
    let plan = full.plan(&[of_head()], &cancel).await.unwrap();
    assert!(!plan.fits());
    let error = full.download(&plan, &|_| {}, &cancel).await.unwrap_err();
    assert_eq!(error.kind(), "disk_full", "{error}");
    assert!(error.to_string().contains("home"), "{error}");
}
