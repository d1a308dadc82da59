//! A network that goes, stalls, trickles or comes in pieces.

use std::time::{Duration, Instant};

use app::hub::{CancelToken, HubConfig, WaitReason};
use tests::fake_hub::{Body, On, Respond, Rule};

use super::child::Job;
use super::{MIB, Place, SOON, Told, WEIGHTS, fetch, fetch_watched};

const SLACK: u64 = 64 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_goes_and_comes_back_is_waited_for() {
    let place = Place::new(Body::formula(2 * MIB, 1));
    place.hub.speed(Some(4 * MIB));
    let told = Told::default();
    let (take, cancel) = (told.take(), CancelToken::new());
    let download = fetch_watched(place.config(), &[WEIGHTS], &take, &cancel);
    let weather = async {
        while place.hub.served() < MIB / 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        place.hub.go_down();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(place.is_absent());
        place.hub.come_back();
    };
    let (dir, ()) = tokio::join!(download, weather);
    assert!(place.is_whole(&dir.unwrap()));
    let waiting = |progress: &app::hub::Progress| progress.waiting == Some(WaitReason::Network);
    assert!(told.all().iter().any(waiting), "it says what it waits for");
    assert_eq!(told.all().last().unwrap().waiting, None);
    // Bytes under way when it broke are lost with it.
    let limit = 2 * MIB + SLACK + 256 * 1024;
    assert!(place.hub.served() <= limit, "{} served", place.hub.served());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_stays_away_is_an_error_with_what_was_kept() {
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::cut_at(500_000)).times(1));
    let config = HubConfig {
        network_wait: Duration::from_millis(600),
        ..place.config()
    };
    let cut = async {
        while place.hub.served() < 500_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        place.hub.go_down();
    };
    let start = Instant::now();
    let (result, ()) = tokio::join!(fetch(config, &[WEIGHTS]), cut);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), "network", "{error}");
    assert!(error.hint().unwrap().contains("kept"), "{:?}", error.hint());
    assert!(start.elapsed() < SOON && place.is_absent());
    assert!(place.kept() >= 500_000 - SLACK, "{} kept", place.kept());
    place.hub.come_back();
    place.hub.forget_requests();
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    assert!(place.hub.served() <= MIB - 500_000 + SLACK);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_a_plan_does_not_wait_for_hours() {
    let place = Place::tiny();
    place.hub.go_down();
    let start = Instant::now();
    let error = place.fetch().await.unwrap_err();
    assert_eq!(error.kind(), "network");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_again_and_again_moves_on_each_time() {
    let place = Place::tiny();
    // More breaks than failures in a row are allowed: each brought something.
    place
        .hub
        .rule(Rule::on(On::Content, Respond::cut_at(100_000)).times(10));
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    let gets = place.hub.content_gets();
    assert_eq!(gets.len(), 11);
    assert!(gets.windows(2).all(|pair| pair[1].from() > pair[0].from()));
    assert!(place.hub.served() <= MIB + 10 * SLACK, "{} served", place.hub.served());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_brings_nothing_is_given_up_after_some_tries() {
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::cut_at(0)));
    let error = place.fetch().await.unwrap_err();
    assert_eq!(error.kind(), "network", "{error}");
    let tries = place.hub.content_gets().len();
    assert!((3..=8).contains(&tries), "{tries} tries");
    assert!(place.is_absent());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_is_noticed_and_gone_around() {
    let place = Place::tiny();
    place
        .hub
        .rule(Rule::on(On::Content, Respond::stall_at(300_000)).times(1));
    let start = Instant::now();
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    let spent = start.elapsed();
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(10)).contains(&spent),
        "{spent:?}"
    );
    assert!(place.hub.content_gets()[1].from() >= 300_000 - SLACK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_that_stays_is_an_error() {
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::stall_at(0)));
    let error = place.fetch().await.unwrap_err();
    assert_eq!(error.kind(), "stalled", "{error}");
    assert!(place.is_absent());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trickle_below_the_floor_is_gone_around_and_one_above_it_is_not() {
    let place = Place::tiny();
    // 5 KB a second: never still, never done.
    place
        .hub
        .rule(Rule::on(On::Content, Respond::trickle(100, 20)).times(1));
    let config = HubConfig {
        floor: 50_000,
        ..place.config()
    };
    assert!(place.is_whole(&fetch(config.clone(), &[WEIGHTS]).await.unwrap()));
    assert_eq!(place.hub.content_gets().len(), 2);

    let place = Place::tiny();
    place.hub.speed(Some(MIB / 2));
    let config = HubConfig {
        endpoint: place.hub.url(),
        cache_dir: place.home.path().join("hub"),
        ..config
    };
    assert!(place.is_whole(&fetch(config, &[WEIGHTS]).await.unwrap()));
    assert_eq!(place.hub.content_gets().len(), 1, "slow, but not too slow");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_come_slowly_or_not_at_all() {
    let place = Place::tiny();
    let slow = Respond {
        header_every_ms: 40,
        ..Respond::default()
    };
    place.hub.rule(Rule::on(On::Content, slow));
    assert!(place.is_whole(&place.fetch().await.unwrap()));

    let place = Place::tiny();
    let never = Respond {
        delay_ms: 30_000,
        ..Respond::default()
    };
    place.hub.rule(Rule::on(On::Content, never.clone()).times(1));
    place.hub.rule(Rule::on(On::Api, never.clone()).times(1));
    place.hub.rule(Rule::on(On::Resolve, never).times(1));
    let start = Instant::now();
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_proxy_is_used() {
    let place = Place::tiny();
    let job = Job {
        // No such host: only the proxy knows what to do with it.
        endpoint: "http://hub.invalid".into(),
        env: ["http_proxy", "HTTP_PROXY"]
            .map(|name| (name.into(), place.hub.url()))
            .into(),
        ..Job::new(&place.hub, place.home.path())
    };
    let outcome = job.start().end();
    let dir = outcome.dir.unwrap_or_else(|| panic!("{:?}", outcome.error));
    assert!(place.is_whole(dir.as_ref()));
    assert!(place.hub.requests().iter().any(|request| request.host == "hub.invalid"));
}
