//! Downloads as the app keeps them: what they are told to be, what they go on with, and what comes of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use app::downloads::Downloads;
use app::hub::{HubConfig, head};
use app::ipc::{Download, DownloadPhase, Fetched, WaitReason, Wanted, WantedPart};
use app::library::{Assets, Places};
use app::state::AppState;
use tempfile::TempDir;
use tests::fake_hub::{Body, FakeHub, File, On, Repo, Respond, Rule};
use tests::{golden, root};

use super::{MIB, REPO, SOON, WEIGHTS, files, patient};

const NEXT: &str = "beef111111111111111111111111111111111111";

struct Home {
    hub: FakeHub,
    dir: TempDir,
    state: AppState,
}

impl Home {
    async fn new(files: Vec<File>) -> Self {
        let (hub, dir) = (FakeHub::with(Repo::new(REPO, files)), TempDir::new().unwrap());
        let config = patient(HubConfig::at(&hub.url(), &dir.path().join("huggingface")));
        let places = Places {
            cache: Some(config.cache_dir.clone()),
            heads: Some(head::heads_dir(&config.home)),
            others: Vec::new(),
        };
        let assets = Assets::in_dir(&root().join("assets"));
        let state = AppState::open_with(&dir.path().join("data"), assets, config, places)
            .await
            .unwrap();
        Home { hub, dir, state }
    }

    fn downloads(&self) -> &Downloads {
        self.state.downloads().unwrap()
    }

    fn only(&self) -> Download {
        let mut list = self.downloads().list();
        assert_eq!(list.len(), 1, "{list:?}");
        list.remove(0)
    }

    /// The only download, once it is so.
    async fn until(&self, what: &str, so: impl Fn(&Download) -> bool) -> Download {
        let begun = Instant::now();
        loop {
            let now = self.only();
            if so(&now) {
                return now;
            }
            assert!(begun.elapsed() < SOON, "not {what}: {now:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn over(&self) -> DownloadPhase {
        let is_over = |download: &Download| {
            matches!(
                download.state,
                DownloadPhase::Done { .. } | DownloadPhase::Failed { .. }
            )
        };
        self.until("over", is_over).await.state
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        let repo = self.dir.path().join("huggingface/hub/models--tiny-org--tiny-model");
        repo.join("snapshots").join(commit)
    }
}

fn weights(seed: u64) -> Vec<File> {
    vec![File::large(WEIGHTS, Body::formula(MIB, seed))]
}

fn wanted(part: WantedPart) -> Wanted {
    Wanted {
        name: "Tiny".into(),
        parts: vec![WantedPart {
            repo: REPO.into(),
            ..part
        }],
    }
}

fn of_files(include: &[&str]) -> Wanted {
    wanted(WantedPart {
        include: include.iter().map(|&pattern| pattern.into()).collect(),
        ..WantedPart::default()
    })
}

fn of_head() -> Wanted {
    wanted(WantedPart {
        head_only: true,
        ..WantedPart::default()
    })
}

fn at(mut wanted: Wanted, revision: &str) -> Wanted {
    wanted.parts[0].revision = Some(revision.into());
    wanted
}

fn holds(dir: &Path, body: &Body) -> bool {
    dir.join(WEIGHTS).exists() && super::hash(&dir.join(WEIGHTS)) == body.sha256()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_revision_is_fetched_when_it_is_asked_for() {
    let home = Home::new(weights(1)).await;
    let wanted = of_files(&[WEIGHTS]);
    home.hub.hold_after(Some(MIB / 2));
    let id = home.downloads().start(wanted.clone(), None, false).await.unwrap();
    home.until("begun", |download| download.done > 0.0).await;
    home.downloads().pause(&id).await.unwrap();
    home.hub.hold_after(None);
    home.hub.cut_connections();

    // Without a word of a revision it goes on as it was pinned.
    home.downloads().start(wanted.clone(), None, false).await.unwrap();
    assert!(matches!(home.over().await, DownloadPhase::Done { .. }));
    let pinned = tests::fake_hub::COMMIT;
    assert!(holds(&home.snapshot(pinned), &Body::formula(MIB, 1)));
    // Whoever asks for the branch without a network finds it.
    let branch = home.snapshot(pinned).join("../../refs/main");
    assert_eq!(std::fs::read_to_string(branch).unwrap(), pinned);

    // By name, or when it was over, it is what there is now.
    home.hub.add(Repo::new(REPO, weights(2)).commit(NEXT));
    let again = home
        .downloads()
        .start(at(wanted.clone(), "main"), None, false)
        .await
        .unwrap();
    assert_eq!(again, id, "one download, not two");
    home.until("pinned anew", |download| {
        download.wanted.parts[0].revision.as_deref() == Some(NEXT)
    })
    .await;
    assert!(matches!(home.over().await, DownloadPhase::Done { .. }));
    assert!(holds(&home.snapshot(NEXT), &Body::formula(MIB, 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_download_turns_to_the_revision_that_is_asked_for() {
    let home = Home::new(weights(1)).await;
    let wanted = of_files(&[WEIGHTS]);
    home.hub.hold_after(Some(MIB / 2));
    home.downloads().start(wanted.clone(), None, false).await.unwrap();
    home.until("begun", |download| download.done > 0.0).await;
    home.hub.add(Repo::new(REPO, weights(2)).commit(NEXT));
    home.downloads().start(at(wanted, NEXT), None, false).await.unwrap();
    home.hub.hold_after(None);
    assert!(matches!(home.over().await, DownloadPhase::Done { .. }));
    assert!(holds(&home.snapshot(NEXT), &Body::formula(MIB, 2)));
    assert!(!home.snapshot(tests::fake_hub::COMMIT).join(WEIGHTS).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_begins_without_a_network_waits_for_it_and_stops_at_once() {
    let home = Home::new(weights(1)).await;
    home.hub.go_down();
    let id = home.downloads().start(of_files(&[WEIGHTS]), None, false).await.unwrap();
    let waits = DownloadPhase::Waiting {
        reason: WaitReason::Network,
        seconds: None,
    };
    home.until("waiting", |download| download.state == waits).await;
    home.downloads().pause(&id).await.unwrap();
    assert_eq!(home.only().state, DownloadPhase::Paused);
    home.downloads().resume(&id).await.unwrap();
    home.until("waiting again", |download| download.state == waits).await;
    home.hub.come_back();
    assert!(matches!(home.over().await, DownloadPhase::Done { .. }));
    assert!(holds(&home.snapshot(tests::fake_hub::COMMIT), &Body::formula(MIB, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_is_called_what_it_is() {
    let done = |fetched| DownloadPhase::Done { model: None, fetched };
    let home = Home::new(File::all_in(&golden("inkling/hf"))).await;
    // The mission's own example: a head in two files.
    home.downloads()
        .start(of_files(&["config.json", "mtp.safetensors"]), None, false)
        .await
        .unwrap();
    assert_eq!(home.over().await, done(Fetched::Head));
    let shelf = home.state.library.shelf().await.unwrap();
    let head = shelf
        .models
        .iter()
        .find(|model| model.repo.as_deref() == Some(REPO))
        .unwrap();
    assert_eq!((head.role, head.problems.len()), (app::ipc::ModelRole::Drafter, 0));

    // Files that make no model are what was asked for, unless it was to chat with them; and that can be taken back.
    let home = Home::new(File::all_in(&golden("inkling/hf"))).await;
    let start = async |then_chat| {
        let wanted = of_files(&["config.json"]);
        home.downloads().start(wanted, None, then_chat).await.unwrap();
        home.over().await
    };
    assert!(matches!(start(true).await, DownloadPhase::Failed { .. }));
    assert_eq!(start(false).await, done(Fetched::Files));
    home.downloads()
        .start(of_files(&["config.json"]), None, true)
        .await
        .unwrap();
    let DownloadPhase::Failed { error } = home.over().await else {
        panic!("{:?}", home.only());
    };
    assert!(error.hint.is_some(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_alone_says_what_it_waits_for_and_stops_at_once() {
    let home = Home::new(File::all_in(&golden("qwen3_5/hf"))).await;
    let plan = home.downloads().plan(of_head()).await.unwrap();
    let all: f64 = 1_169_765.0;
    assert!(
        plan.parts[0].head_only && plan.bytes > 0.0 && plan.bytes < all,
        "{plan:?}"
    );
    assert_eq!(plan.parts[0].in_place_of, Some(all));
    home.hub.forget_requests();
    home.hub.hold_after(Some(8));
    let id = home
        .downloads()
        .start(plan.wanted.clone(), Some(&plan.id), false)
        .await
        .unwrap();
    let waits = DownloadPhase::Waiting {
        reason: WaitReason::Network,
        seconds: None,
    };
    home.until("waiting", |download| download.state == waits).await;
    let begun = Instant::now();
    home.downloads().pause(&id).await.unwrap();
    assert_eq!(home.only().state, DownloadPhase::Paused);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    home.hub.hold_after(None);
    home.hub.cut_connections();
    home.downloads().resume(&id).await.unwrap();
    let done = DownloadPhase::Done {
        model: None,
        fetched: Fetched::Head,
    };
    assert_eq!(home.over().await, done);
    let heads = files(&head::heads_dir(&home.dir.path().join("huggingface")));
    assert!(
        heads.iter().any(|file| file.ends_with("model.safetensors")),
        "{heads:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_nobody_looks_at_ends_and_one_that_is_looked_at_is_not_waited_for_long() {
    let home = Home::new(File::all_in(&golden("qwen3_5/hf"))).await;
    let never = Respond {
        delay_ms: 30_000,
        ..Respond::default()
    };
    home.hub.rule(Rule::on(On::Content, never));
    let begun = Instant::now();
    let closed = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        home.downloads().cancel_plan();
    };
    let (plan, ()) = tokio::join!(home.downloads().plan(of_head()), closed);
    assert_eq!(plan.unwrap_err().kind, "cancelled");
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());

    // A download waits for minutes if it is asked to, a plan does not.
    home.hub.clear_rules();
    home.hub
        .rule(Rule::on(On::Content, Respond::status(429).header("Retry-After", "300")));
    let begun = Instant::now();
    assert_eq!(home.downloads().plan(of_head()).await.unwrap_err().kind, "rate_limited");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
