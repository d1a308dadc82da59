//! The models on a disk: found, judged by the loader, paired, counted once and deleted without harm.

mod delete;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use app::hub::HubConfig;
use app::ipc::{ModelHealth, ModelPlace, ModelRole, ShelfView, Shelved};
use app::library::{Assets, Places};
use app::state::AppState;
use tempfile::TempDir;
use tests::{builtin, root};

const FIRST: &str = "1111111111111111111111111111111111111111";
const SECOND: &str = "2222222222222222222222222222222222222222";

struct Disk {
    dir: TempDir,
    state: AppState,
}

impl Disk {
    async fn new() -> Disk {
        let dir = TempDir::new().unwrap();
        let config = HubConfig {
            offline: true,
            ..HubConfig::at("http://127.0.0.1:9", &dir.path().join("huggingface"))
        };
        let places = Places {
            cache: Some(config.cache_dir.clone()),
            heads: Some(dir.path().join("data/heads")),
            others: vec![dir.path().join("lmstudio/models")],
        };
        let assets = Assets::in_dir(&root().join("assets"));
        let state = AppState::open_with(&dir.path().join("data"), assets, config, places)
            .await
            .unwrap();
        Disk { dir, state }
    }

    fn repo(&self, repo: &str) -> PathBuf {
        self.dir
            .path()
            .join("huggingface/hub")
            .join(format!("models--{}", repo.replace('/', "--")))
    }

    /// A snapshot as the hub's clients make it: links to blobs, named by content so that equal files are one blob.
    fn cache(&self, repo: &str, commit: &str, from: &Path) -> PathBuf {
        let repo = self.repo(repo);
        let snapshot = repo.join("snapshots").join(commit);
        fs::create_dir_all(&snapshot).unwrap();
        fs::create_dir_all(repo.join("blobs")).unwrap();
        fs::create_dir_all(repo.join("refs")).unwrap();
        fs::write(repo.join("refs/main"), commit).unwrap();
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            let bytes = fs::read(file.path()).unwrap();
            let blob = format!("{}-{}", bytes.len(), file.file_name().to_string_lossy());
            fs::write(repo.join("blobs").join(&blob), bytes).unwrap();
            symlink(Path::new("../../blobs").join(&blob), snapshot.join(file.file_name())).unwrap();
        }
        snapshot
    }

    async fn shelf(&self) -> ShelfView {
        self.state.library.shelf().await.unwrap()
    }

    async fn find(&self, dir: &Path) -> Shelved {
        let shelf = self.shelf().await;
        let found = shelf
            .models
            .into_iter()
            .find(|model| Path::new(&model.model.path) == dir);
        found.unwrap_or_else(|| panic!("{} is not listed", dir.display()))
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn bytes_in(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let meta = entry.path().symlink_metadata().unwrap();
            if meta.is_dir() {
                bytes_in(&entry.path())
            } else if meta.is_file() {
                meta.len()
            } else {
                0
            }
        })
        .sum()
}

#[tokio::test]
async fn models_are_listed_by_what_the_loader_says_they_are() {
    let disk = Disk::new().await;
    let target = disk.cache("demo/Tiny-4bit", FIRST, &builtin("target"));
    let head = disk.cache("demo/Tiny-MTP-4bit", FIRST, &builtin("drafter"));
    let other = disk.cache("demo/Other-MTP", FIRST, &builtin("drafter"));
    let whisper = disk.dir.path().join("lmstudio/models/someone/whisper");
    fs::create_dir_all(&whisper).unwrap();
    fs::write(whisper.join("config.json"), r#"{"model_type": "whisper"}"#).unwrap();

    let found = disk.find(&target).await;
    assert_eq!(
        (found.role, &found.health, found.place),
        (ModelRole::Target, &ModelHealth::Whole, ModelPlace::Cache)
    );
    assert_eq!(found.repo.as_deref(), Some("demo/Tiny-4bit"));
    assert_eq!(found.model.name, "demo/Tiny-4bit");
    // The head of the same base goes with it; the other one of the same shapes does not.
    assert_eq!(found.model.drafter_path.as_deref(), Some(head.to_str().unwrap()));
    assert_eq!(found.drafters.len(), 1);
    let found = disk.find(&head).await;
    assert_eq!((found.role, &found.health), (ModelRole::Drafter, &ModelHealth::Whole));
    assert_eq!(found.targets, ["demo/Tiny-4bit"]);
    assert!(disk.find(&other).await.targets.is_empty());
    let found = disk.find(&whisper).await;
    assert_eq!(found.health, ModelHealth::Incomplete, "{:?}", found.problems);
    assert_eq!(found.model.name, "someone/whisper");

    // What is listed as whole loads, and drafts.
    let path = target.to_str().unwrap();
    let status = disk.state.load_model(path, head.to_str()).await.unwrap();
    assert!(
        matches!(
            status,
            app::ipc::ModelStatus::Ready {
                can_speculate: true,
                ..
            }
        ),
        "{status:?}"
    );
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let disk = Disk::new().await;
    let lost = disk.cache("demo/Lost-Blob", FIRST, &builtin("target"));
    fs::remove_file(fs::canonicalize(lost.join("model.safetensors")).unwrap()).unwrap();
    let no_tokenizer = disk.cache("demo/No-Tokenizer", FIRST, &builtin("target"));
    fs::remove_file(no_tokenizer.join("tokenizer.json")).unwrap();
    let cut = disk.cache("demo/Cut", FIRST, &builtin("target"));
    let weights = fs::canonicalize(cut.join("model.safetensors")).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&weights)
        .unwrap()
        .set_len(1_000_000)
        .unwrap();
    let partial = disk.repo("demo/Partial");
    fs::create_dir_all(partial.join("blobs")).unwrap();
    fs::write(partial.join("blobs/abc.incomplete"), [0; 5000]).unwrap();

    for (dir, word) in [
        (lost, "model.safetensors"),
        (no_tokenizer, "tokenizer.json"),
        (cut, "model.safetensors"),
        (partial, "broke off"),
    ] {
        let found = disk.find(&dir).await;
        assert_eq!(
            found.health,
            ModelHealth::Incomplete,
            "{}: {:?}",
            dir.display(),
            found.problems
        );
        let said: Vec<&str> = found.problems.iter().map(|problem| problem.message.as_str()).collect();
        assert!(
            said.iter().any(|text| text.contains(word)),
            "{}: {said:?}",
            dir.display()
        );
        assert!(found.problems.iter().all(|problem| problem.hint.is_some()));
    }
}

#[tokio::test]
async fn bytes_are_counted_once_however_many_links_lead_to_them() {
    let disk = Disk::new().await;
    disk.cache("demo/Tiny-4bit", FIRST, &builtin("target"));
    let one = disk.shelf().await.bytes;
    // A second commit of the same files, and a folder that links to the first.
    let second = disk.cache("demo/Tiny-4bit", SECOND, &builtin("target"));
    let links = disk.dir.path().join("lmstudio/models/me/links");
    fs::create_dir_all(&links).unwrap();
    for file in fs::read_dir(&second).unwrap() {
        let file = file.unwrap();
        symlink(file.path(), links.join(file.file_name())).unwrap();
    }
    let shelf = disk.shelf().await;
    assert_eq!(shelf.models.len(), 4, "built-in, two commits, links");
    assert_eq!(shelf.bytes, one);
    assert_eq!(one, bytes_in(&builtin("target")) as f64);
    let twice: Vec<_> = shelf
        .models
        .iter()
        .filter(|m| m.repo.as_deref() == Some("demo/Tiny-4bit"))
        .collect();
    // The one that `main` names has the plain name.
    assert!(
        twice
            .iter()
            .any(|m| m.model.name == "demo/Tiny-4bit" && m.commit.as_deref() == Some(SECOND))
    );
    assert!(twice.iter().any(|m| m.model.name == "demo/Tiny-4bit @ 1111111"));
}

#[tokio::test]
async fn a_model_in_use_is_not_deleted() {
    let disk = Disk::new().await;
    let target = disk.cache("demo/Tiny-4bit", FIRST, &builtin("target"));
    let path = target.to_str().unwrap();
    let locks = disk.dir.path().join("huggingface/hub/.locks/models--demo--Tiny-4bit");
    fs::create_dir_all(&locks).unwrap();
    let lock = fs::File::create(locks.join("abc.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(disk.state.delete_model(path, false).await.unwrap_err().kind, "in_use");
    lock.unlock().unwrap();
    disk.state.load_model(path, None).await.unwrap();
    assert_eq!(disk.state.delete_model(path, false).await.unwrap_err().kind, "in_use");
    disk.state.unload_model().await.unwrap();
    disk.state.delete_model(path, false).await.unwrap();
}

#[tokio::test]
async fn folders_are_added_and_may_vanish() {
    let disk = Disk::new().await;
    let drive = disk.dir.path().join("drive");
    copy(&builtin("target"), &drive.join("models/demo/Tiny-4bit"));
    let library = &disk.state.library;
    let path = drive.to_str().unwrap();
    let shelf = library.add_folder(path).await.unwrap();
    let found = shelf
        .models
        .iter()
        .find(|model| model.model.name.ends_with("demo/Tiny-4bit"))
        .unwrap();
    assert_eq!((found.place, &found.health), (ModelPlace::Folder, &ModelHealth::Whole));

    fs::rename(&drive, disk.dir.path().join("unplugged")).unwrap();
    let shelf = disk.shelf().await;
    assert_eq!(shelf.models.len(), 1);
    let folder = shelf.folders.iter().find(|folder| folder.path == path).unwrap();
    assert!(!folder.present && folder.added);

    assert!(
        library
            .remove_folder(path)
            .await
            .unwrap()
            .folders
            .iter()
            .all(|folder| folder.path != path)
    );
    fs::create_dir_all(disk.dir.path().join("nothing")).unwrap();
    let empty = disk.dir.path().join("nothing");
    assert_eq!(
        library.add_folder(empty.to_str().unwrap()).await.unwrap_err().kind,
        "no_models"
    );
    assert_eq!(
        library.add_folder("/no/such/folder").await.unwrap_err().kind,
        "no_folder"
    );
}

#[tokio::test]
async fn heads_by_range_are_listed_and_deleted_with_all_that_is_theirs() {
    let disk = Disk::new().await;
    let (library, heads) = (&disk.state.library, disk.dir.path().join("data/heads/demo--Big"));
    let whole = heads.join(FIRST);
    copy(&builtin("drafter"), &whole);
    fs::write(whole.join("slipstream-head.json"), "{}").unwrap();
    let begun = heads.join(format!(".{SECOND}.part"));
    fs::create_dir_all(begun.join("files")).unwrap();
    fs::write(begun.join("files/model.safetensors"), [0; 5000]).unwrap();
    fs::write(begun.join("plan"), "x").unwrap();
    let lock = fs::File::create(heads.join(format!(".{SECOND}.lock"))).unwrap();

    let found = disk.find(&whole).await;
    assert_eq!((found.role, &found.health), (ModelRole::Drafter, &ModelHealth::Whole));
    assert_eq!(found.model.bytes, bytes_in(&whole) as f64);
    let found = disk.find(&begun).await;
    assert_eq!(
        (found.place, &found.health),
        (ModelPlace::Heads, &ModelHealth::Incomplete)
    );
    let (repo, commit) = (found.repo.as_deref(), found.commit.as_deref());
    assert_eq!(
        (repo, commit, found.model.bytes),
        (Some("demo/Big"), Some(SECOND), 5001.0)
    );
    assert!(found.problems[0].message.contains("broke off"), "{:?}", found.problems);
    assert_eq!(library.repo_of(begun.to_str().unwrap()).as_deref(), Some("demo/Big"));

    lock.lock().unwrap();
    let path = begun.to_str().unwrap();
    assert_eq!(library.delete(path, false).await.unwrap_err().kind, "in_use");
    lock.unlock().unwrap();
    assert_eq!(library.delete(path, false).await.unwrap(), 5001);
    assert!(!begun.exists() && whole.exists());
    let all = bytes_in(&whole);
    assert_eq!(library.delete(whole.to_str().unwrap(), false).await.unwrap(), all);
    assert!(!heads.exists(), "nothing of it is left");

    // A link in the place of a head is somebody's doing, and what it leads to is theirs.
    let theirs = disk.dir.path().join("theirs");
    copy(&builtin("drafter"), &theirs);
    fs::write(theirs.join("diary.txt"), "dear diary").unwrap();
    fs::create_dir_all(&heads).unwrap();
    symlink(&theirs, &whole).unwrap();
    let error = library.delete(whole.to_str().unwrap(), false).await.unwrap_err();
    assert_eq!(error.kind, "outside_cache");
    assert!(theirs.join("model.safetensors").exists() && theirs.join("diary.txt").exists());
}

/// One look at the disk for both lists, which say the same.
#[tokio::test]
async fn what_is_here_and_what_can_be_fetched_are_listed_together() {
    let disk = Disk::new().await;
    let entry = "mlx-community/Qwen3.5-9B-4bit";
    let target = disk.cache(entry, FIRST, &builtin("target"));
    let head = disk.cache("mlx-community/Qwen3.5-9B-MTP-4bit", FIRST, &builtin("drafter"));
    let models = disk.state.models().await.unwrap();
    let (catalog, shelf) = (models.catalog.unwrap(), models.shelf);
    let pair = catalog
        .pairs
        .iter()
        .find(|pair| pair.wanted.parts[0].repo == entry)
        .unwrap();
    let here = shelf
        .models
        .iter()
        .find(|model| Path::new(&model.model.path) == target)
        .unwrap();
    let installed = pair.installed.as_ref().unwrap();
    assert_eq!(installed.drafter_path.as_deref(), head.to_str());
    // What is free may change between the two.
    assert_eq!(
        (here.memory.bytes, here.memory.total),
        (pair.memory.bytes, pair.memory.total)
    );
}

#[tokio::test]
async fn two_hundred_models_are_listed_quickly_and_a_change_is_seen() {
    let disk = Disk::new().await;
    for n in 0..200 {
        disk.cache(&format!("demo/Head-{n}"), FIRST, &builtin("drafter"));
    }
    let clock = Instant::now();
    assert_eq!(disk.shelf().await.models.len(), 201);
    let cold = clock.elapsed();
    let clock = Instant::now();
    let shelf = disk.shelf().await;
    let warm = clock.elapsed();
    eprintln!("200 models: {cold:?}, again {warm:?}");
    assert!(
        shelf
            .models
            .iter()
            .skip(1)
            .all(|model| model.role == ModelRole::Drafter)
    );
    assert!(warm < Duration::from_secs(1), "{warm:?}");

    let changed = disk.repo("demo/Head-7").join("snapshots").join(FIRST);
    fs::remove_file(changed.join("config.json")).unwrap();
    assert_ne!(disk.find(&changed).await.health, ModelHealth::Whole);
}
