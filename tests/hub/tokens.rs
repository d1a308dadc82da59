//! Who gets to see the token.

use app::hub::{CancelToken, Hub};
use tests::fake_hub::{On, Respond, Rule};

use super::{Place, Told, WEIGHTS, fetch, fetch_watched, request, words};

const TOKEN: &str = "hf_veryVerySecret0123456789";

#[tokio::test(flavor = "multi_thread")]
async fn the_token_goes_to_the_hub_and_to_no_other_host() {
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::cut_at(500_000)).times(1));
    let told = Told::default();
    let dir = fetch_watched(place.with_token(TOKEN), &["*"], &told.take(), &CancelToken::new())
        .await
        .unwrap();
    assert!(place.is_whole(&dir));
    let requests = place.hub.requests();
    let bearer = format!("Bearer {TOKEN}");
    assert!(requests.iter().any(|request| request.content_host));
    for request in &requests {
        let expected = (!request.content_host).then_some(bearer.as_str());
        assert_eq!(
            request.authorization.as_deref(),
            expected,
            "{} {}",
            request.method,
            request.target
        );
        assert!(!request.target.contains(TOKEN));
    }
    let told = format!("{:?} {}", told.all(), serde_json::to_string(&told.all()).unwrap());
    assert!(!told.contains(TOKEN) && !told.contains("signed-"), "{told}");
    nothing_on_disk(&place);
}

/// Also an answer of the API may lead elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_redirects_to_another_host_does_not_take_the_token_there() {
    let place = Place::tiny();
    let elsewhere = format!("{}/api/models/stolen", place.hub.content_url());
    place
        .hub
        .rule(Rule::on(On::Api, Respond::status(307).header("Location", elsewhere)));
    let error = fetch(place.with_token(TOKEN), &[WEIGHTS]).await.unwrap_err();
    assert!(!words(&error).contains(TOKEN), "{error}");
    for request in place.hub.requests().iter().filter(|request| request.content_host) {
        assert_eq!(request.authorization, None);
    }
}

/// The hub's own name on another port is another place as well.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_host_on_another_port_does_not_get_the_token() {
    let place = Place::tiny();
    let port = place.hub.content_url().rsplit(':').next().unwrap().to_owned();
    let there = format!("http://127.0.0.1:{port}/blob/{}", place.body.sha256());
    place
        .hub
        .rule(Rule::on(On::Resolve, Respond::status(302).header("Location", there)));
    assert!(place.is_whole(&fetch(place.with_token(TOKEN), &[WEIGHTS]).await.unwrap()));
    let gets = place.hub.content_gets();
    assert!(!gets.is_empty() && gets.iter().all(|get| get.authorization.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_error_shows_the_token_or_a_signed_address() {
    let texts = [
        (On::Api, Respond::status(401)),
        (On::Api, Respond::status(403)),
        (On::Api, Respond::status(500)),
        (On::Resolve, Respond::status(401)),
        (On::Resolve, Respond::status(404)),
        (
            On::Resolve,
            Respond::status(302).header("Location", "http://x/?X-Signature=signed-1"),
        ),
        (On::Content, Respond::status(403)),
        (On::Content, Respond::status(503)),
        (On::Content, Respond::cut_at(0)),
        (On::Content, Respond::stall_at(0)),
        (
            On::Content,
            Respond::status(302).header("Location", "/blob/again?X-Signature=signed-2"),
        ),
        (
            On::Content,
            Respond {
                flip: Some(1),
                ..Respond::default()
            },
        ),
    ];
    for (on, respond) in texts {
        let place = Place::tiny();
        place.hub.rule(Rule::on(on, respond.clone()));
        let config = app::hub::HubConfig {
            retries: 1,
            network_wait: std::time::Duration::from_millis(100),
            ..place.with_token(TOKEN)
        };
        assert!(!format!("{:?}", config.token).contains(TOKEN));
        let hub = Hub::new(config).unwrap();
        let cancel = CancelToken::new();
        let told = Told::default();
        let result = match hub.plan(&[request(&[WEIGHTS])], &cancel).await {
            Ok(plan) => hub.download(&plan, &told.take(), &cancel).await.map(|_| ()),
            Err(error) => Err(error),
        };
        let error = result.unwrap_err();
        let words = format!("{} {:?}", words(&error), told.all());
        assert!(
            !words.contains(TOKEN) && !words.contains("signed-"),
            "{on:?} {respond:?}: {words}"
        );
        nothing_on_disk(&place);
    }
}

fn nothing_on_disk(place: &Place) {
    for path in super::files(place.home.path()) {
        if path.metadata().is_ok_and(|meta| meta.len() < 100_000) {
            let bytes = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(TOKEN) && !text.contains("signed-"), "{}", path.display());
        }
    }
}

fn revoked() -> Respond {
    Respond::status(401).header("X-Error-Message", "Invalid credentials in Authorization header")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_does_not_stand_before_a_public_repository() {
    let place = Place::tiny();
    for on in [On::Api, On::Resolve, On::Content] {
        place.hub.rule(Rule::on(on, revoked()).with_authorization());
    }
    let dir = fetch(place.with_token("hf_revoked"), &["*"]).await.unwrap();
    assert!(place.is_whole(&dir));
    // What worked is kept for the rest: no second refusal a request.
    let refused = place
        .hub
        .requests()
        .iter()
        .filter(|request| request.authorization.is_some())
        .count();
    assert!(refused <= 2, "{refused} requests with the revoked token");
}

/// The listing may be open to a token that the files are not.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_only_the_files_refuse_is_left_out_from_then_on() {
    let place = Place::tiny();
    for on in [On::Resolve, On::Content] {
        place.hub.rule(Rule::on(on, revoked()).with_authorization());
    }
    let config = app::hub::HubConfig {
        concurrency: 1,
        ..place.with_token("hf_revoked")
    };
    assert!(place.is_whole(&fetch(config, &["*"]).await.unwrap()));
    let requests = place.hub.requests();
    let refused = requests
        .iter()
        .filter(|request| request.on != On::Api && request.authorization.is_some())
        .count();
    assert_eq!(refused, 1, "it is not tried again for the second file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_on_a_private_repository_is_said_to_be_refused() {
    let place = Place::tiny();
    for on in [On::Api, On::Resolve] {
        place.hub.rule(Rule::on(on, revoked()).with_authorization());
        place.hub.rule(Rule::on(
            on,
            Respond::status(401).header("X-Error-Code", "RepoNotFound"),
        ));
    }
    let error = fetch(place.with_token("hf_revoked"), &[WEIGHTS]).await.unwrap_err();
    assert_eq!(error.kind(), "unauthorized", "{error}");
    assert!(error.to_string().contains("token"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_is_used_at_once() {
    let place = Place::tiny();
    place
        .hub
        .rule(Rule::on(On::Api, revoked()).with_authorization().times(1));
    let hub = Hub::new(place.with_token("hf_revoked")).unwrap();
    let cancel = CancelToken::new();
    hub.plan(&[request(&[])], &cancel).await.unwrap();
    hub.set_token(app::hub::Secret::new(TOKEN));
    place.hub.forget_requests();
    hub.plan(&[request(&[])], &cancel).await.unwrap();
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(place.hub.requests()[0].authorization.as_deref(), Some(bearer.as_str()));
}
