//! Stop, pause and going on.

use std::future::Future;
use std::time::{Duration, Instant};

use app::hub::{CancelToken, Hub, HubError};
use tests::fake_hub::{Body, On, Respond, Rule};

use super::{MIB, Place, Told, WEIGHTS, fetch_watched, request};

const AT_ONCE: Duration = Duration::from_millis(200);

/// Cancels when something is so, and gives the error and how long it took to come.
async fn stop_when<T: std::fmt::Debug>(
    cancel: &CancelToken,
    work: impl Future<Output = Result<T, HubError>>,
    so: impl Fn() -> bool,
) -> (HubError, Duration) {
    let stop = async {
        let start = Instant::now();
        while !so() && start.elapsed() < super::SOON {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Until the wait has begun on this side too.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = Instant::now();
        cancel.cancel();
        now
    };
    let (result, stopped) = tokio::join!(async { (work.await, Instant::now()) }, stop);
    (result.0.unwrap_err(), result.1.duration_since(stopped))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_mid_file_is_immediate_stays_and_says_what_it_kept() {
    let place = Place::new(Body::formula(4 * MIB, 1));
    place.hub.speed(Some(4 * MIB));
    let cancel = CancelToken::new();
    let told = Told::default();
    let take = told.take();
    let work = fetch_watched(place.config(), &[WEIGHTS], &take, &cancel);
    let (error, took) = stop_when(&cancel, work, || place.hub.served() > MIB).await;
    assert!(took < AT_ONCE, "{took:?}");
    let HubError::Cancelled { kept } = error else {
        panic!("{error}")
    };
    assert_eq!(kept, place.kept());
    assert!(kept > MIB / 2, "{kept} kept");
    assert!(place.is_absent());
    let (requests, events) = (place.hub.requests().len(), told.all().len());
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(place.hub.requests().len(), requests, "it stays stopped");
    assert_eq!(told.all().len(), events, "and silent");
    assert!(place.is_absent());
    assert_eq!(place.kept(), kept);
    // Going on, the same place is gone on from.
    place.hub.speed(None);
    place.hub.forget_requests();
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    assert_eq!(place.hub.served(), 4 * MIB - kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_and_resume_with_one_plan() {
    let place = Place::new(Body::formula(2 * MIB, 1));
    place.hub.speed(Some(2 * MIB));
    let hub = Hub::new(place.config()).unwrap();
    let plan = hub.plan(&[request(&[WEIGHTS])], &CancelToken::new()).await.unwrap();
    let mut kept = 0;
    for target in [MIB / 2, MIB, 3 * MIB / 2] {
        let cancel = CancelToken::new();
        let work = hub.download(&plan, &|_| (), &cancel);
        let (error, took) = stop_when(&cancel, work, || place.hub.served() > target).await;
        assert!(took < AT_ONCE, "{took:?}");
        let HubError::Cancelled { kept: now } = error else {
            panic!("{error}")
        };
        assert!(now > kept, "{now} after {kept}");
        kept = now;
    }
    place.hub.speed(None);
    let told = Told::default();
    let parts = hub.download(&plan, &told.take(), &CancelToken::new()).await.unwrap();
    assert!(place.is_whole(&parts[0].dir));
    let last = told.all().pop().unwrap();
    assert_eq!(
        (last.done, last.total, last.fetched),
        (2 * MIB, 2 * MIB, 2 * MIB - kept)
    );
    assert!(
        place.hub.served() <= 2 * MIB + 3 * (256 << 10),
        "{} served",
        place.hub.served()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_every_kind_of_wait() {
    let late = Respond {
        delay_ms: 20_000,
        ..Respond::default()
    };
    let waits = [
        ("a late listing", On::Api, late.clone()),
        ("a late redirect", On::Resolve, late.clone()),
        ("late bytes", On::Content, late),
        ("a stall", On::Content, Respond::stall_at(1000)),
        (
            "a wait the hub asked for",
            On::Content,
            Respond::status(429).header("Retry-After", "30"),
        ),
        (
            "a wait for the listing",
            On::Api,
            Respond::status(429).header("Retry-After", "30"),
        ),
    ];
    for (name, on, respond) in waits {
        let place = Place::tiny();
        place.hub.rule(Rule::on(on, respond));
        let cancel = CancelToken::new();
        let config = app::hub::HubConfig {
            stall: Duration::from_secs(30),
            ..place.config()
        };
        let work = fetch_watched(config, &[WEIGHTS], &|_| (), &cancel);
        let begun = || place.hub.requests().iter().any(|request| request.on == on);
        let (error, took) = stop_when(&cancel, work, begun).await;
        assert_eq!(error.kind(), "cancelled", "{name}: {error}");
        assert!(took < AT_ONCE, "{name}: {took:?}");
        assert!(place.is_absent(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_wait_for_the_network_and_for_another_writer() {
    let place = Place::tiny();
    place.hub.rule(Rule::on(On::Content, Respond::stall_at(1000)));
    let hub = Hub::new(app::hub::HubConfig {
        stall: Duration::from_secs(30),
        ..place.config()
    })
    .unwrap();
    let plan = hub.plan(&[request(&[WEIGHTS])], &CancelToken::new()).await.unwrap();
    let (first, second) = (CancelToken::new(), CancelToken::new());
    let told = Told::default();
    let take = told.take();
    let writer = hub.download(&plan, &|_| (), &first);
    let waiter = async {
        while place.hub.content_gets().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let waits = || {
            told.all()
                .iter()
                .any(|p| p.waiting == Some(app::hub::WaitReason::OtherProcess))
        };
        let stopped = stop_when(&second, hub.download(&plan, &take, &second), waits).await;
        assert!(waits(), "it says who it waits for");
        first.cancel();
        stopped
    };
    let (_, (error, took)) = tokio::join!(writer, waiter);
    assert_eq!(error.kind(), "cancelled");
    assert!(took < AT_ONCE, "{took:?}");

    place.hub.go_down();
    let cancel = CancelToken::new();
    let told = Told::default();
    let take = told.take();
    let waits = || {
        told.all()
            .iter()
            .any(|p| p.waiting == Some(app::hub::WaitReason::Network))
    };
    let (error, took) = stop_when(&cancel, hub.download(&plan, &take, &cancel), waits).await;
    assert!(waits());
    assert_eq!(error.kind(), "cancelled");
    assert!(took < AT_ONCE, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_before_it_begins_nothing_is_asked() {
    let place = Place::tiny();
    let cancel = CancelToken::new();
    cancel.cancel();
    let error = fetch_watched(place.config(), &[WEIGHTS], &|_| (), &cancel)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "cancelled");
    assert_eq!(place.hub.content_gets().len(), 0);
}

/// A window that closes drops the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_download_stops_and_keeps_what_came() {
    let place = Place::new(Body::formula(4 * MIB, 1));
    place.hub.speed(Some(4 * MIB));
    let cancel = CancelToken::new();
    let half = async {
        while place.hub.served() < MIB {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        result = fetch_watched(place.config(), &[WEIGHTS], &|_| (), &cancel) => panic!("{result:?}"),
        () = half => {}
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (requests, served) = (place.hub.requests().len(), place.hub.served());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!((place.hub.requests().len(), place.hub.served()), (requests, served));
    assert!(place.is_absent());
    place.hub.speed(None);
    place.hub.forget_requests();
    assert!(place.is_whole(&place.fetch().await.unwrap()));
    assert!(
        place.hub.served() <= 3 * MIB + (256 << 10),
        "{} served",
        place.hub.served()
    );
}
