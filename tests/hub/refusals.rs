//! What the hub refuses, how long it is waited for, and what a person is told.

use std::time::{Duration, Instant, SystemTime};

use app::hub::{CancelToken, Hub, HubConfig, HubError, WaitReason};
use tests::fake_hub::{FakeHub, File, On, Repo, Respond, Rule};

use super::{MIB, Place, REPO, Told, WEIGHTS, fetch, fetch_watched, words};

async fn refused(place: &Place, config: HubConfig) -> HubError {
    let error = fetch(config, &[WEIGHTS]).await.unwrap_err();
    assert!(place.is_absent());
    assert_eq!(place.hub.served(), 0);
    error
}

fn gated(place: &Place) {
    let file = File::large(WEIGHTS, place.body.clone());
    place.hub.add(Repo::new(REPO, [file]).gated_but_for(&["hf_member"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gated_repository_says_where_to_accept_its_licence() {
    let place = Place::tiny();
    gated(&place);
    let error = refused(&place, place.with_token("hf_stranger")).await;
    assert_eq!(error.kind(), "gated", "{error}");
    let words = words(&error);
    assert!(words.contains(&format!("{}/{REPO}", place.hub.url())), "{words}");
    let error = refused(&place, place.config()).await;
    assert_eq!(error.kind(), "gated", "without a token: {error}");
    let dir = fetch(place.with_token("hf_member"), &[WEIGHTS]).await.unwrap();
    assert!(place.is_whole(&dir));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_repository_is_there_for_its_owner_only() {
    let place = Place::tiny();
    let file = File::large(WEIGHTS, place.body.clone());
    place.hub.add(Repo::new(REPO, [file]).private_but_for(&["hf_owner"]));
    for config in [place.config(), place.with_token("hf_stranger")] {
        let error = refused(&place, config).await;
        assert!(["not_found", "unauthorized"].contains(&error.kind()), "{error}");
        assert!(words(&error).contains(REPO));
    }
    let dir = fetch(place.with_token("hf_owner"), &[WEIGHTS]).await.unwrap();
    assert!(place.is_whole(&dir));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_named() {
    let place = Place::tiny();
    let hub = Hub::new(place.config()).unwrap();
    let cancel = CancelToken::new();
    let error = hub.list(&"no/such".parse().unwrap(), None, &cancel).await.unwrap_err();
    assert!(["not_found", "unauthorized"].contains(&error.kind()), "{error}");
    assert!(error.to_string().contains("no/such"), "{error}");
    let error = hub
        .list(&REPO.parse().unwrap(), Some("no-branch"), &cancel)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "not_found");
    assert!(error.to_string().contains("no-branch"), "{error}");
    let error = fetch(place.config(), &["mtp-*.safetensors"]).await.unwrap_err();
    assert_eq!(error.kind(), "no_match");
    assert!(
        error.to_string().contains(WEIGHTS) && error.to_string().contains("config.json"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_listed_but_gone_is_named() {
    let place = Place::tiny();
    let gone = Respond::status(404).header("X-Error-Code", "EntryNotFound");
    place.hub.rule(Rule::on(On::Resolve, gone));
    let error = refused(&place, place.config()).await;
    assert_eq!(error.kind(), "not_found");
    assert!(error.to_string().contains(WEIGHTS), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_file_says_what_the_hub_says() {
    let place = Place::tiny();
    let no = Respond::status(403).header("X-Error-Message", "Access to this resource is disabled.");
    place.hub.rule(Rule::on(On::Resolve, no));
    let error = refused(&place, place.config()).await;
    assert_eq!(error.kind(), "forbidden");
    assert!(error.to_string().contains("disabled"), "{error}");
}

/// A signed address may run out during a long download: a new one is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_address_that_ran_out_is_asked_for_anew() {
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::cut_at(400_000)).times(1));
    place.hub.rule(Rule::on(On::Content, Respond::status(403)).times(1));
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    assert!(place.hub.served() <= MIB + (64 << 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_in_trouble_is_asked_again_and_at_last_given_up() {
    for status in [500, 502, 503, 504, 408] {
        let place = Place::tiny();
        for on in [On::Api, On::Resolve, On::Content] {
            place.hub.rule(Rule::on(on, Respond::status(status)).times(2));
        }
        let dir = place.fetch().await.unwrap_or_else(|error| panic!("{status}: {error}"));
        assert!(place.is_whole(&dir));
    }
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::status(503)));
    let error = place.fetch().await.unwrap_err();
    assert_eq!(error.kind(), "server", "{error}");
    assert!(error.to_string().contains("503"));
    let tries = place.hub.content_gets().len();
    assert!((3..=8).contains(&tries), "{tries} tries");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_as_long_as_the_hub_asks_in_every_form() {
    let soon = httpdate(SystemTime::now() + Duration::from_secs(3));
    let forms = [
        ("Retry-After", "1".to_owned(), 950),
        // Cut to whole seconds: up to one less.
        ("Retry-After", soon, 1_500),
        ("RateLimit", "\"resolvers\";r=0;t=1".to_owned(), 950),
    ];
    let waits = forms.map(|(name, value, least)| async move {
        let place = Place::tiny();
        place
            .hub
            .rule(Rule::on(On::Content, Respond::status(429).header(name, value.as_str())).times(1));
        let told = Told::default();
        let dir = fetch_watched(place.config(), &[WEIGHTS], &told.take(), &CancelToken::new())
            .await
            .unwrap();
        assert!(place.is_whole(&dir));
        let gets = place.hub.content_gets();
        let waited = gets[1].at - gets[0].at;
        assert!(
            waited >= Duration::from_millis(least),
            "{name}: {value}: asked again after {waited:?}"
        );
        assert!(waited < Duration::from_secs(6), "{name}: {value}: {waited:?}");
        let says = |progress: &app::hub::Progress| matches!(progress.waiting, Some(WaitReason::RateLimit { .. }));
        assert!(told.all().iter().any(says), "{name}: it says so");
    });
    let [a, b, c] = waits;
    tokio::join!(a, b, c);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listing_waits_too_and_a_wait_of_hours_is_an_error() {
    let place = Place::tiny();
    place
        .hub
        .rule(Rule::on(On::Api, Respond::status(429).header("Retry-After", "1")).times(1));
    let start = Instant::now();
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    assert!(start.elapsed() >= Duration::from_millis(950));

    let place = Place::tiny();
    place.hub.rule(Rule::on(
        On::Content,
        Respond::status(429).header("Retry-After", "86400"),
    ));
    let start = Instant::now();
    let error = place.fetch().await.unwrap_err();
    assert_eq!(error.kind(), "rate_limited", "{error}");
    assert!(error.to_string().contains("86400") && start.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_page_in_place_of_the_hub_is_not_believed() {
    let place = Place::tiny();
    let page = Respond {
        text: Some("<html>Please sign in to this network</html>".into()),
        ..Respond::default()
    };
    place.hub.rule(Rule::on(On::Api, page.clone()));
    let error = refused(&place, place.config()).await;
    assert_eq!(error.kind(), "answer", "{error}");
    place.hub.clear_rules();
    place.hub.rule(Rule::on(On::Content, page));
    let error = place.fetch().await.unwrap_err();
    assert!(
        ["length_mismatch", "changed", "answer", "hash_mismatch"].contains(&error.kind()),
        "{error}"
    );
    assert!(place.is_absent());
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_the_cache_answers_and_nobody_is_asked() {
    let place = Place::tiny();
    let offline = HubConfig {
        offline: true,
        ..place.config()
    };
    let error = fetch(offline.clone(), &[WEIGHTS]).await.unwrap_err();
    assert_eq!(error.kind(), "offline", "{error}");
    assert!(error.hint().is_some());
    let dir = place.fetch().await.unwrap();
    place.hub.forget_requests();
    let start = Instant::now();
    assert_eq!(fetch(offline.clone(), &[WEIGHTS]).await.unwrap(), dir);
    let hub = Hub::new(offline.clone()).unwrap();
    assert_eq!(hub.cached(&REPO.parse().unwrap(), None), Some(dir));
    assert_eq!(
        hub.search("tiny", 5, &CancelToken::new()).await.unwrap_err().kind(),
        "offline"
    );
    assert!(start.elapsed() < Duration::from_secs(1));
    // A part that was never fetched is said to be missing.
    let error = fetch(offline, &["config.json"]).await.unwrap_err();
    assert!(["offline", "no_match"].contains(&error.kind()), "{error}");
    assert_eq!(place.hub.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn search_finds_repositories() {
    let place = Place::tiny();
    place
        .hub
        .add(Repo::new("other/Qwen-4bit", [File::small("config.json", "{}")]));
    let hub = Hub::new(place.config()).unwrap();
    let hits = hub.search("qwen", 10, &CancelToken::new()).await.unwrap();
    let names: Vec<_> = hits.iter().map(|hit| hit.repo.to_string()).collect();
    assert_eq!(names, ["other/Qwen-4bit"]);
    assert_eq!((hits[0].downloads, hits[0].likes), (7, 3));
    assert_eq!(place.hub.requests().len(), 1);
    assert!(FakeHub::start().requests().is_empty());
}

/// A time as HTTP writes it.
fn httpdate(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(days % 7).unwrap()];
    // Civil date from days since 1970, with years that begin in March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = [
        "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb",
    ][usize::try_from(month_from_march).unwrap()];
    let year = year_of_era + era * 400 + u64::from(month_from_march >= 10);
    format!(
        "{weekday}, {day:02} {month} {year} {:02}:{:02}:{:02} GMT",
        second / 3600,
        second % 3600 / 60,
        second % 60
    )
}

#[test]
fn the_date_is_written_as_http_has_it() {
    let at = |seconds| httpdate(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(at(1_709_210_096), "Thu, 29 Feb 2024 12:34:56 GMT");
}
