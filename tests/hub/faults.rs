//! Wrong bytes, wrong lengths, wrong ranges, wrong redirects.

use std::path::Path;

use tests::fake_hub::{Body, FakeHub, File, On, Repo, Respond, Rule};

use super::child::Job;
use super::{MIB, Place, REPO, SOON, WEIGHTS, fetch, hash};

/// A place where the first half of the file is already there.
fn with_a_half() -> Place {
    let place = Place::tiny();
    place.hub.hold_after(Some(MIB / 2));
    let running = Job {
        stall_ms: 60_000,
        ..Job::new(&place.hub, place.home.path())
    }
    .start();
    assert!(place.hub.until_held(SOON));
    std::thread::sleep(std::time::Duration::from_millis(150));
    running.kill();
    place.hub.hold_after(None);
    place.hub.forget_requests();
    assert!(place.kept() > 0);
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_bytes_never_get_a_name() {
    let place = Place::tiny();
    let flip = Respond {
        flip: Some(77_777),
        ..Respond::default()
    };
    place.hub.rule(Rule::on(On::Content, flip.clone()));
    let error = place.fetch().await.unwrap_err();
    assert_eq!(error.kind(), "hash_mismatch", "{error}");
    assert!(error.to_string().contains(&place.body.sha256()), "{error}");
    assert!(place.is_absent() && place.kept() == 0);
    // Once only: the second try is whole.
    place.hub.clear_rules();
    place.hub.rule(Rule::on(On::Content, flip).times(1));
    assert!(place.is_whole(&place.fetch().await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_bytes_of_a_small_file_never_get_a_name() {
    let place = Place::tiny();
    let flip = Respond {
        flip: Some(3),
        ..Respond::default()
    };
    place.hub.rule(Rule::on(On::Content, flip));
    let error = fetch(place.config(), &["config.json"]).await.unwrap_err();
    assert_eq!(error.kind(), "hash_mismatch", "{error}");
    assert!(super::found(&place.repo_dir(), "config.json").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn short_and_long_files_are_refused() {
    let short = Respond {
        truncate: Some(900_000),
        ..Respond::default()
    };
    let long = Respond {
        longer: 10,
        ..Respond::default()
    };
    let long_without_length = Respond {
        chunked: true,
        ..long.clone()
    };
    for (name, respond) in [
        ("short", short),
        ("long", long),
        ("long in chunks", long_without_length),
    ] {
        let place = Place::tiny();
        place.hub.rule(Rule::on(On::Content, respond));
        let error = place.fetch().await.unwrap_err();
        assert_eq!(error.kind(), "length_mismatch", "{name}: {error}");
        assert!(place.is_absent(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_is_ignored_refused_or_another_does_not_damage_the_file() {
    let ignored = Respond {
        ignore_range: true,
        ..Respond::default()
    };
    let elsewhere = |from| Respond {
        serve_from: Some(from),
        ..Respond::default()
    };
    let unlike = Respond::status(416).header("Content-Range", format!("bytes */{MIB}"));
    let answers = [
        ignored,
        unlike,
        Respond::status(416),
        elsewhere(0),
        elsewhere(MIB / 2 + 4096),
    ];
    for (number, respond) in answers.into_iter().enumerate() {
        let place = with_a_half();
        place.hub.rule(Rule::on(On::Content, respond).with_range());
        let dir = place
            .fetch()
            .await
            .unwrap_or_else(|error| panic!("answer {number}: {error}"));
        assert!(place.is_whole(&dir), "answer {number}");
        assert!(
            place.hub.served() <= 2 * MIB,
            "answer {number}: {} served",
            place.hub.served()
        );
        // A whole file in place of a range is taken as it comes, from its start.
        if number == 0 {
            assert_eq!((place.hub.content_gets().len(), place.hub.served()), (1, MIB));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_between_two_halves_is_fetched_from_its_start() {
    let place = with_a_half();
    let body = Body::formula(MIB, 2);
    place
        .hub
        .add(Repo::new(REPO, [File::large(WEIGHTS, body.clone())]).commit("beef111111111111111111111111111111111111"));
    let dir = place.fetch().await.unwrap();
    assert_eq!(hash(&dir.join(WEIGHTS)), body.sha256());
    assert_eq!(place.hub.content_gets()[0].from(), 0);
    assert_eq!(place.hub.served(), MIB);
}

/// SHA-256 names the content, whatever commit it is in.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_of_a_file_that_did_not_change_with_the_commit_is_kept() {
    let place = with_a_half();
    let half = place.kept();
    let commit = "beef111111111111111111111111111111111111";
    let repo = Repo::new(REPO, [File::large(WEIGHTS, place.body.clone())]).commit(commit);
    place.hub.add(repo);
    let dir = place.fetch().await.unwrap();
    assert!(dir.ends_with(commit) && place.is_whole(&dir));
    assert_eq!(place.hub.content_gets()[0].from(), half);
    assert_eq!(place.hub.served(), MIB - half);
}

/// The commit is pinned when the plan is made: another file under the same commit is not believed.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_during_the_download_is_an_error() {
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::cut_at(300_000)).times(1));
    let other = Respond {
        etag: Some(format!("\"{}\"", Body::formula(MIB, 2).sha256())),
        ..Respond::default()
    };
    place.hub.rule(Rule::on(On::Resolve, Respond::default()).times(1));
    place.hub.rule(Rule::on(On::Resolve, other));
    match place.fetch().await {
        Ok(dir) => panic!("{} is there", dir.display()),
        Err(error) => assert_eq!(error.kind(), "changed", "{error}"),
    }
    assert!(place.is_absent());
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_in_a_circle_or_to_nowhere_end() {
    let place = Place::tiny();
    let here = format!("{}/{REPO}/resolve/main/{WEIGHTS}", place.hub.url());
    for target in [here.as_str(), "ftp://elsewhere/file", "http://", "file:///etc/passwd"] {
        place.hub.clear_rules();
        place.hub.forget_requests();
        place
            .hub
            .rule(Rule::on(On::Resolve, Respond::status(302).header("Location", target)));
        let error = place.fetch().await.unwrap_err();
        assert_eq!(error.kind(), "redirect", "{target}: {error}");
        assert!(
            place.hub.requests().len() < 100,
            "{target}: {} requests",
            place.hub.requests().len()
        );
        assert!(place.is_absent());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_repository_is_followed() {
    let place = Place::tiny();
    let body = place.body.clone();
    place
        .hub
        .add(Repo::new("new-org/tiny-model", [File::large(WEIGHTS, body)]));
    let moved = |from: &str, to: &str| {
        let on = if from.starts_with("/api") { On::Api } else { On::Resolve };
        Rule::on(on, Respond::status(307).header("Location", to)).target(from)
    };
    place.hub.rule(moved(
        &format!("/{REPO}/resolve/"),
        &format!("/new-org/tiny-model/resolve/{}/{WEIGHTS}", tests::fake_hub::COMMIT),
    ));
    assert!(place.is_whole(&place.fetch().await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_small_files_are_unpacked_or_not_asked_for() {
    let if_accepted = Respond {
        gzip_if_accepted: true,
        ..Respond::default()
    };
    // Nobody asked for it.
    let always = Respond {
        gzip: true,
        ..Respond::default()
    };
    for (respond, chunked) in [(&if_accepted, false), (&always, false), (&always, true)] {
        let place = Place::tiny();
        let respond = Respond {
            chunked,
            ..respond.clone()
        };
        place.hub.rule(Rule::on(On::Content, respond));
        let dir = fetch(place.config(), &["config.json"]).await.unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.join("config.json")).unwrap(),
            "{\"model_type\": \"tiny\"}\n"
        );
    }
}

/// Packed and broken off: the packed bytes that come next are not put behind unpacked ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_packed_file_that_breaks_off_begins_anew() {
    let place = Place::tiny();
    let packed = Respond {
        gzip: true,
        chunked: true,
        ..Respond::default()
    };
    let cut = Respond {
        cut_at: Some(400_000),
        ..packed.clone()
    };
    place.hub.rule(Rule::on(On::Content, cut).times(1));
    place.hub.rule(Rule::on(On::Content, packed));
    assert!(place.is_whole(&place.fetch().await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_files_are_files() {
    let hub = FakeHub::with(Repo::new(
        REPO,
        [File::small("merges.txt", ""), File::large(WEIGHTS, Body::text(""))],
    ));
    let place = Place { hub, ..Place::tiny() };
    let dir = fetch(place.config(), &["*"]).await.unwrap();
    for name in ["merges.txt", WEIGHTS] {
        assert_eq!(std::fs::read(dir.join(name)).unwrap(), b"", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_folders_and_a_listing_in_pages() {
    let files = (0..25).map(|i| File::small(&format!("part/{i}/x y+{i}.json"), &format!("[{i}]")));
    let hub = FakeHub::with(Repo::new(REPO, files));
    hub.page(10);
    let place = Place { hub, ..Place::tiny() };
    let dir = fetch(place.config(), &["part/*.json"]).await.unwrap();
    for i in 0..25 {
        let text = std::fs::read_to_string(dir.join(format!("part/{i}/x y+{i}.json"))).unwrap();
        assert_eq!(text, format!("[{i}]"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_not_written_anywhere() {
    let names = [
        "config.json",
        "../evil.json",
        "/etc/evil.json",
        "a/../../evil.json",
        ".git/evil.json",
        "run.sh",
    ];
    let hub = FakeHub::with(Repo::new(REPO, names.map(|name| File::small(name, "{}"))));
    let place = Place { hub, ..Place::tiny() };
    let dir = fetch(place.config(), &["*"]).await.unwrap();
    let names = |dir: &Path| {
        super::files(dir)
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&dir), ["config.json"]);
    let all = super::files(place.home.path());
    assert!(
        !all.iter()
            .any(|path| path.ends_with("evil.json") || path.ends_with("run.sh")),
        "{all:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_one_on_a_mac_are_refused() {
    let files = ["config.json", "Config.json"].map(|name| File::small(name, "{}"));
    let place = Place {
        hub: FakeHub::with(Repo::new(REPO, files)),
        ..Place::tiny()
    };
    let error = fetch(place.config(), &["*"]).await.unwrap_err();
    assert_eq!(error.kind(), "case_collision");
    assert!(error.to_string().contains("config.json") && error.to_string().contains("Config.json"));
    assert_eq!(place.hub.content_gets().len(), 0);
}
