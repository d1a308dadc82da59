//! The official client reads what we wrote, and we read what it wrote. Needs Python with `huggingface_hub`; which Python
//! is said by `HUB_PYTHON`, else `python3`.

use std::path::Path;
use std::process::Command;

use tests::fake_hub::{Body, FakeHub, File, Repo};

use super::child::Job;
use super::{MIB, Place, REPO, WEIGHTS, fetch, files};

/// The client's word, or nothing where there is no such client.
fn python(step: &str, hub: &FakeHub, home: &Path) -> Option<String> {
    let program = std::env::var("HUB_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(program)
        .arg(tests::root().join("tests/hub/interop.py"))
        .args([step, REPO])
        .env("HF_ENDPOINT", hub.url())
        .env("HF_HOME", home)
        .env("HF_HUB_DISABLE_TELEMETRY", "1")
        .env("HF_HUB_DISABLE_XET", "1")
        .env("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        .env_remove("HF_HUB_CACHE")
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("HF_TOKEN")
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no Python here (HUB_PYTHON)");
        return None;
    };
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if output.status.code() == Some(77) {
        eprintln!("skipped: {}", err.trim());
        return None;
    }
    assert!(output.status.success(), "{step}: {out}{err}");
    Some(out.trim().to_owned())
}

fn place() -> Place {
    let place = Place::tiny();
    place.hub.add(Repo::new(
        REPO,
        [
            File::small("config.json", "{\"model_type\": \"tiny\"}\n"),
            File::small("sub/deep/notes.txt", ""),
            File::large(WEIGHTS, place.body.clone()),
        ],
    ));
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_client_reads_what_we_wrote() {
    let place = place();
    let dir = fetch(place.config(), &["*"]).await.unwrap();
    place.hub.forget_requests();
    let Some(found) = python("offline", &place.hub, place.home.path()) else {
        return;
    };
    assert_eq!(Path::new(&found), dir);
    assert_eq!(place.hub.requests().len(), 0, "it asked nobody");
    // Against the hub it finds every file there and fetches none.
    assert_eq!(
        Path::new(&python("online", &place.hub, place.home.path()).unwrap()),
        dir
    );
    assert!(!place.hub.requests().is_empty());
    assert_eq!(place.hub.content_gets().len(), 0);
    // Its own look at the cache finds nothing to complain about.
    let scan = python("scan", &place.hub, place.home.path()).unwrap();
    let expected = format!("{REPO} main {} 3 files 0 warnings", tests::fake_hub::COMMIT);
    assert_eq!(scan, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn we_read_what_the_official_client_wrote() {
    let place = place();
    let Some(found) = python("online", &place.hub, place.home.path()) else {
        return;
    };
    let before = files(place.home.path());
    place.hub.forget_requests();
    let dir = fetch(place.config(), &["*"]).await.unwrap();
    assert_eq!(Path::new(&found), dir);
    assert!(place.is_whole(&dir));
    assert_eq!(place.hub.content_gets().len(), 0);
    let blobs = |files: Vec<std::path::PathBuf>| {
        let mut blobs: Vec<_> = files
            .into_iter()
            .filter(|p| p.to_string_lossy().contains("/blobs/"))
            .collect();
        blobs.sort();
        blobs
    };
    assert_eq!(
        blobs(files(place.home.path())),
        blobs(before),
        "the same blobs, under the same names"
    );
    let offline = app::hub::HubConfig {
        offline: true,
        ..place.config()
    };
    place.hub.forget_requests();
    assert_eq!(fetch(offline, &["*"]).await.unwrap(), dir);
    assert_eq!(place.hub.requests().len(), 0);
}

/// Both at once on one file: each finds it whole in the end, and it is fetched once.
#[tokio::test(flavor = "multi_thread")]
async fn both_clients_at_once_do_not_damage_each_other() {
    let place = Place::new(Body::formula(4 * MIB, 9));
    if python("version", &place.hub, place.home.path()).is_none() {
        return;
    }
    place.hub.speed(Some(4 * MIB));
    let ours = Job::new(&place.hub, place.home.path()).start();
    let theirs = python("online", &place.hub, place.home.path()).unwrap();
    let outcome = ours.end();
    let dir = outcome.dir.unwrap_or_else(|| panic!("{:?}", outcome.error));
    assert_eq!(theirs, dir);
    assert!(place.is_whole(dir.as_ref()));
    let large = place
        .hub
        .content_gets()
        .iter()
        .filter(|get| get.content_host)
        .map(|get| get.bytes())
        .sum::<u64>();
    assert_eq!(large, 4 * MIB, "fetched once");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "1 GiB twice; a measurement: cargo test --release -- --ignored as_fast_as"]
async fn as_fast_as_the_official_client() {
    const SIZE: u64 = 1 << 30;
    let body = Body::repeated(SIZE, 1);
    let hub = FakeHub::with(Repo::new(REPO, [File::large(WEIGHTS, body)]));
    if python("version", &hub, Path::new(".")).is_none() {
        return;
    }
    let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let home = tempfile::tempdir().unwrap();
        let outcome = Job::new(&hub, home.path()).start().end();
        assert!(outcome.dir.is_some(), "{:?}", outcome.error);
        ours = ours.min(outcome.seconds);
        eprintln!(
            "ours: {:.2} s, most memory {} MiB",
            outcome.seconds,
            outcome.memory / MIB
        );
        let home = tempfile::tempdir().unwrap();
        let seconds: f64 = python("timed", &hub, home.path()).unwrap().parse().unwrap();
        eprintln!("theirs: {seconds:.2} s");
        theirs = theirs.min(seconds);
    }
    assert!(ours <= theirs * 1.1, "{ours:.2} s, the official client {theirs:.2} s");
}
