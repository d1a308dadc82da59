//! `kill -9` in mid-file, and the next start.

use super::child::Job;
use super::{Body, MIB, Place, SOON};

const SIZE: u64 = 8 * MIB;
/// What may be fetched twice after a kill.
const TWICE: u64 = 256 << 10;

fn place() -> Place {
    Place::new(Body::formula(SIZE, 5))
}

/// Starts a download, and kills it when the hub has sent so many bytes of the file.
fn kill_at(place: &Place, byte: u64) {
    place.hub.forget_requests();
    place.hub.hold_after(Some(byte));
    let running = Job {
        stall_ms: 60_000,
        ..Job::new(&place.hub, place.home.path())
    }
    .start();
    assert!(place.hub.until_held(SOON), "never came to byte {byte}");
    // What was sent is on its way to the disk.
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert!(place.is_absent(), "under its name at byte {byte}");
    running.kill();
    place.hub.hold_after(None);
}

fn finish(place: &Place) -> u64 {
    place.hub.forget_requests();
    let outcome = Job::new(&place.hub, place.home.path()).start().end();
    let dir = outcome.dir.unwrap_or_else(|| panic!("{:?}", outcome.error));
    assert!(place.is_whole(dir.as_ref()));
    assert_eq!(place.kept(), 0, "nothing unfinished is left");
    place.hub.served()
}

#[test]
fn killed_at_ten_fifty_and_ninety_nine_percent_the_rest_is_fetched() {
    std::thread::scope(|scope| {
        for percent in [10, 50, 99] {
            scope.spawn(move || {
                let place = place();
                let byte = SIZE * percent / 100;
                kill_at(&place, byte);
                let twice = finish(&place) + byte - SIZE;
                eprintln!("killed at {percent} %: {twice} bytes fetched twice");
                assert!(twice <= TWICE, "killed at {percent} %: {twice} bytes fetched twice");
            });
        }
    });
}

#[test]
fn killed_again_and_again_a_file_comes_together() {
    let place = place();
    let mut sent = 0;
    for percent in [10, 50, 99] {
        kill_at(&place, SIZE * percent / 100);
        sent += place.hub.served();
    }
    sent += finish(&place);
    assert!(sent <= SIZE + 3 * TWICE, "{} bytes fetched twice", sent - SIZE);
}

#[test]
fn killed_before_the_first_byte_and_before_the_last() {
    for byte in [0, SIZE - 1] {
        let place = place();
        kill_at(&place, byte);
        let twice = (finish(&place) + byte).saturating_sub(SIZE);
        assert!(twice <= TWICE, "killed at byte {byte}: {twice} bytes fetched twice");
    }
}

#[test]
fn a_damaged_half_is_noticed_and_fetched_anew() {
    let place = place();
    kill_at(&place, SIZE / 2);
    let part = super::files(&place.repo_dir().join("blobs"))
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with("-part"))
        .expect("an unfinished file");
    let mut bytes = std::fs::read(&part).unwrap();
    assert!(bytes.len() as u64 >= SIZE / 2 - TWICE);
    bytes[1000] ^= 0xff;
    std::fs::write(&part, bytes).unwrap();
    let served = finish(&place);
    assert!(served >= SIZE, "the damaged half is fetched again");
}
