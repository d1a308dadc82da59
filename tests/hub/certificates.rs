//! A hub whose certificate nobody knows, until somebody says whom to believe.

use std::path::PathBuf;

use super::child::{Job, Outcome};
use super::{Place, SOON};

/// A hub that is reached by TLS, and the certificate of its authority.
fn secure() -> (Place, PathBuf) {
    let mut place = Place::tiny();
    let authority = place.home.path().join("authority.pem");
    std::fs::write(&authority, place.hub.secure()).unwrap();
    (place, authority)
}

fn fetched(place: &Place, env: &[(&str, &str)]) -> Outcome {
    let job = Job {
        env: env
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        ..Job::new(&place.hub, place.home.path())
    };
    job.start().end()
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused_at_once_with_a_way_out() {
    let (place, _) = secure();
    let begun = std::time::Instant::now();
    let (kind, words) = fetched(&place, &[]).error.unwrap();
    assert_eq!(kind, "certificate", "{words}");
    for word in ["127.0.0.1", "certificate", "SSL_CERT_FILE"] {
        assert!(words.contains(word), "{words}");
    }
    assert!(begun.elapsed() < SOON);
    assert_eq!(place.hub.requests().len(), 0, "nothing was asked of it");
    assert!(place.is_absent());
}

#[test]
fn an_authority_is_named_as_for_other_programs() {
    for name in ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"] {
        let (place, authority) = secure();
        let outcome = fetched(&place, &[(name, authority.to_str().unwrap())]);
        let dir = outcome.dir.unwrap_or_else(|| panic!("{name}: {:?}", outcome.error));
        assert!(place.is_whole(dir.as_ref()), "{name}");
        assert!(place.hub.content_gets().iter().all(|get| get.content_host), "{name}");
    }
}

#[test]
fn an_authority_that_cannot_be_read_is_named() {
    let (place, authority) = secure();
    std::fs::write(&authority, "no certificate").unwrap();
    let (kind, words) = fetched(&place, &[("REQUESTS_CA_BUNDLE", authority.to_str().unwrap())])
        .error
        .unwrap();
    assert_eq!(kind, "config");
    for word in ["REQUESTS_CA_BUNDLE", "authority.pem", "it holds no certificate", "PEM"] {
        assert!(words.contains(word), "{words}");
    }
}
