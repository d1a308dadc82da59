//! Large files: little memory, and as fast as the official client.

use super::child::Job;
use super::{Body, FakeHub, File, MIB, Place, REPO, Repo, WEIGHTS, hash};

const GIB: u64 = 1 << 30;
/// SHA-256 of 5 GiB of zeros.
const FIVE_GIB_OF_ZEROS: &str = "7f06c62352aebd8125b2a1841e2b9e1ffcbed602f381c3dcb3200200e383d1d5";

fn memory_for(size: u64) -> u64 {
    let place = Place::new(Body::repeated(size, 1));
    let outcome = Job::new(&place.hub, place.home.path()).start().end();
    let dir = outcome.dir.unwrap_or_else(|| panic!("{:?}", outcome.error));
    assert!(place.is_whole(dir.as_ref()));
    outcome.memory
}

#[test]
fn memory_does_not_grow_with_the_file() {
    let (small, large) = (memory_for(16 * MIB), memory_for(256 * MIB));
    eprintln!(
        "most memory: {} MiB for 16 MiB, {} MiB for 256 MiB",
        small / MIB,
        large / MIB
    );
    assert!(
        large < small + 24 * MIB,
        "{small} bytes for 16 MiB, {large} for 256 MiB"
    );
}

#[test]
#[ignore = "5 GiB on disk, a minute or more: cargo test -- --ignored a_file_of_five"]
fn a_file_of_five_gibibytes() {
    let zeros = Body::Zeros { size: 5 * GIB };
    let file = File::large_hashed(WEIGHTS, zeros, FIVE_GIB_OF_ZEROS);
    let place = Place {
        hub: FakeHub::with(Repo::new(REPO, [file])),
        ..Place::tiny()
    };
    place.hub.hold_after(Some(9 * GIB / 2));
    let job = Job {
        stall_ms: 60_000,
        ..Job::new(&place.hub, place.home.path())
    };
    let running = job.start();
    assert!(place.hub.until_held(std::time::Duration::from_secs(300)));
    std::thread::sleep(std::time::Duration::from_secs(1));
    running.kill();
    place.hub.hold_after(None);
    place.hub.forget_requests();
    let outcome = job.start().end();
    let dir = outcome.dir.unwrap_or_else(|| panic!("{:?}", outcome.error));
    assert!(place.hub.content_gets()[0].from() > 4 * GIB, "offsets beyond 32 bits");
    let path = std::path::Path::new(&dir).join(WEIGHTS);
    assert_eq!(path.metadata().unwrap().len(), 5 * GIB);
    assert_eq!(hash(&path), FIVE_GIB_OF_ZEROS);
    eprintln!(
        "5 GiB: {} bytes fetched twice, most memory {} MiB, the rest took {:.1} s",
        place.hub.served() - GIB / 2,
        outcome.memory / MIB,
        outcome.seconds
    );
    assert!(outcome.memory < 200 * MIB);
}
