//! A disk that is full, or not ours to write.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use app::hub::{CancelToken, Hub, HubConfig};
use tests::fake_hub::Body;

use super::child::Job;
use super::{MIB, Place, WEIGHTS, fetch, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room_is_told_before_a_byte_is_fetched() {
    let place = Place::tiny();
    let config = HubConfig {
        disk_free: Arc::new(|_: &Path| Some(MIB - 1)),
        ..place.config()
    };
    let plan = Hub::new(config.clone())
        .unwrap()
        .plan(&[request(&[WEIGHTS])], &CancelToken::new())
        .await
        .unwrap();
    assert!(!plan.fits());
    let error = fetch(config, &[WEIGHTS]).await.unwrap_err();
    let app::hub::HubError::DiskFull { needed, free, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((needed, free), (MIB, Some(MIB - 1)));
    assert!(
        error
            .to_string()
            .ends_with("is full: 1.0 MB are needed, 1.0 MB are free"),
        "{error}"
    );
    assert!(error.hint().is_some());
    assert_eq!((place.hub.served(), place.kept()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn room_for_the_rest_is_room_enough_and_an_unreadable_disk_does_not_stand_in_the_way() {
    let place = Place::tiny();
    let free = Arc::new(AtomicU64::new(MIB));
    let probe = Arc::clone(&free);
    let config = HubConfig {
        disk_free: Arc::new(move |_: &Path| Some(probe.load(Ordering::SeqCst))),
        ..place.config()
    };
    place.hub.hold_after(Some(MIB / 2));
    let error = fetch(config.clone(), &[WEIGHTS]).await.unwrap_err();
    assert_eq!(error.kind(), "stalled", "{error}");
    free.store(MIB - place.kept(), Ordering::SeqCst);
    place.hub.hold_after(None);
    assert!(place.is_whole(&fetch(config, &[WEIGHTS]).await.unwrap()));

    let place = Place::tiny();
    let config = HubConfig {
        disk_free: Arc::new(|_: &Path| None),
        ..place.config()
    };
    assert!(place.is_whole(&fetch(config, &[WEIGHTS]).await.unwrap()));
}

/// A disk of its own, where the system lets us.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(dir.path())
            .output();
        status.is_ok_and(|output| output.status.success()).then_some(Mount(dir))
    }

    fn options(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(self.0.path())
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a test that failed may still hold a file.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_keeps_what_came_and_goes_on_with_room() {
    let Some(mount) = Mount::new("size=4m") else {
        eprintln!("skipped: no file system may be mounted here");
        return;
    };
    let place = Place::new(Body::formula(8 * MIB, 1));
    // The disk says there is room, as one does that others fill meanwhile.
    let config = HubConfig {
        cache_dir: mount.0.path().join("hub"),
        disk_free: Arc::new(|_: &Path| None),
        ..place.config()
    };
    let error = fetch(config.clone(), &[WEIGHTS]).await.unwrap_err();
    assert_eq!(error.kind(), "disk_full", "{error}");
    assert!(super::found(mount.0.path(), WEIGHTS).is_none());
    mount.options("size=20m");
    place.hub.forget_requests();
    assert!(place.is_whole(&fetch(config, &[WEIGHTS]).await.unwrap()));
    assert!(place.hub.served() < 6 * MIB, "{} served", place.hub.served());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_may_only_be_read_is_told() {
    let Some(mount) = Mount::new("size=4m") else {
        eprintln!("skipped: no file system may be mounted here");
        return;
    };
    mount.options("ro");
    let place = Place::tiny();
    let config = HubConfig {
        cache_dir: mount.0.path().join("hub"),
        ..place.config()
    };
    let error = fetch(config, &[WEIGHTS]).await.unwrap_err();
    assert_eq!(error.kind(), "permission", "{error}");
    assert!(error.to_string().contains(mount.0.path().to_str().unwrap()), "{error}");
}

#[cfg(unix)]
#[test]
fn a_folder_of_somebody_else_is_told() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::tiny();
    let folder = place.home.path().join("hub");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    let mut job = Job::new(&place.hub, place.home.path());
    // The superuser may write everywhere: then somebody else is asked to.
    if folder.metadata().unwrap().uid() == 0 {
        job.user = Some(65_534);
    }
    let Ok(running) = job.try_start() else {
        eprintln!("skipped: another user may not run this program here");
        return;
    };
    let (kind, words) = running.end().error.expect("it may not write there");
    assert_eq!(kind, "permission", "{words}");
    assert!(words.contains(folder.to_str().unwrap()), "{words}");
    assert!(words.contains("HF_HOME"), "a way out: {words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_is_a_file_is_told() {
    let place = Place::tiny();
    std::fs::write(place.home.path().join("hub"), "not a folder").unwrap();
    let error = place.fetch().await.unwrap_err();
    assert!(["io", "permission"].contains(&error.kind()), "{error}");
    assert!(error.to_string().contains("hub"), "{error}");
}
