//! Several downloads at a time: one writer a file, and no more connections than allowed.

use app::hub::{CancelToken, Hub};
use tests::fake_hub::{Body, FakeHub, File, Repo};

use super::child::Job;
use super::{MIB, Place, REPO, SOON, request};

#[test]
fn two_processes_on_one_file_fetch_it_once() {
    let place = Place::new(Body::formula(4 * MIB, 3));
    place.hub.speed(Some(8 * MIB));
    let start = || Job::new(&place.hub, place.home.path()).start();
    for running in [start(), start(), start()] {
        let outcome = running.end();
        let dir = outcome.dir.unwrap_or_else(|| panic!("{:?}", outcome.error));
        assert!(place.is_whole(dir.as_ref()));
    }
    assert_eq!(place.hub.served(), 4 * MIB);
}

#[test]
fn when_the_writer_is_killed_the_other_goes_on_from_there() {
    let place = Place::new(Body::formula(4 * MIB, 3));
    place.hub.hold_after(Some(2 * MIB));
    let job = Job {
        stall_ms: 60_000,
        ..Job::new(&place.hub, place.home.path())
    };
    let first = job.start();
    assert!(place.hub.until_held(SOON));
    place.hub.hold_after(None);
    let second = job.start();
    let apis = |hub: &FakeHub| hub.requests().iter().filter(|r| r.target.starts_with("/api/")).count();
    let before = apis(&place.hub);
    assert!(place.hub.until(SOON, |hub| apis(hub) > before), "the second has begun");
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert_eq!(place.hub.content_gets().len(), 1, "it waits for the first");
    first.kill();
    let outcome = second.end();
    let dir = outcome.dir.unwrap_or_else(|| panic!("{:?}", outcome.error));
    assert!(place.is_whole(dir.as_ref()));
    assert!(
        place.hub.served() <= 4 * MIB + (256 << 10),
        "{} served",
        place.hub.served()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_windows_of_one_process_fetch_a_file_once() {
    let place = Place::new(Body::formula(4 * MIB, 3));
    place.hub.speed(Some(8 * MIB));
    let (first, second) = tokio::join!(place.fetch(), place.fetch());
    assert!(place.is_whole(&first.unwrap()) && place.is_whole(&second.unwrap()));
    assert_eq!(place.hub.served(), 4 * MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_files_at_a_time_than_allowed() {
    let files = (0..9).map(|i| File::large(&format!("model-{i}.safetensors"), Body::formula(MIB / 2, i)));
    let place = Place {
        hub: FakeHub::with(Repo::new(REPO, files)),
        ..Place::tiny()
    };
    place.hub.speed(Some(4 * MIB));
    for allowed in [1, 3] {
        place.hub.forget_requests();
        let home = tempfile::tempdir().unwrap();
        let mut config = super::patient(app::hub::HubConfig::at(&place.hub.url(), home.path()));
        config.concurrency = allowed;
        super::fetch(config, &[]).await.unwrap();
        assert_eq!(place.hub.busiest(), allowed);
        assert_eq!(place.hub.content_gets().len(), 9);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_planned_as_there_and_not_fetched_again() {
    let place = Place::tiny();
    let hub = Hub::new(place.config()).unwrap();
    let cancel = CancelToken::new();
    let plan = hub.plan(&[request(&[])], &cancel).await.unwrap();
    let small = "{\"model_type\": \"tiny\"}\n".len() as u64;
    assert_eq!(
        (plan.total(), plan.present(), plan.to_fetch()),
        (MIB + small, 0, MIB + small)
    );
    place.fetch().await.unwrap();
    let plan = hub.plan(&[request(&[])], &cancel).await.unwrap();
    assert_eq!((plan.present(), plan.to_fetch()), (MIB, small));
    place.hub.forget_requests();
    let parts = hub.download(&plan, &|_| (), &cancel).await.unwrap();
    assert_eq!(place.hub.served(), small);
    assert_eq!(parts[0].commit, tests::fake_hub::COMMIT);
    place.hub.forget_requests();
    hub.download(&plan, &|_| (), &cancel).await.unwrap();
    assert_eq!(place.hub.requests().len(), 0, "all is there: nobody is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_two_commits_share_their_bytes() {
    let place = Place::tiny();
    let first = place.fetch().await.unwrap();
    place.hub.forget_requests();
    let commit = "beef111111111111111111111111111111111111";
    place
        .hub
        .add(Repo::new(REPO, [File::large(super::WEIGHTS, place.body.clone())]).commit(commit));
    let second = place.fetch().await.unwrap();
    assert!(first != second && second.ends_with(commit));
    assert!(place.is_whole(&first) && place.is_whole(&second));
    assert_eq!(place.hub.served(), 0);
}
