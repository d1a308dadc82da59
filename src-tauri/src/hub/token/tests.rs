use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use super::*;

/// A keychain in memory, which can be out of order.
#[derive(Default)]
struct Fake {
    token: Mutex<Option<String>>,
    trouble: Mutex<Option<Trouble>>,
    asked: Mutex<usize>,
}

impl Fake {
    fn ask(&self) -> Result<(), Trouble> {
        *self.asked.lock().unwrap() += 1;
        self.trouble.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

impl Keychain for Fake {
    fn get(&self) -> Result<Option<String>, Trouble> {
        self.ask()?;
        Ok(self.token.lock().unwrap().clone())
    }

    fn set(&self, secret: &Secret) -> Result<(), Trouble> {
        self.ask()?;
        *self.token.lock().unwrap() = Some(secret.reveal().to_owned());
        Ok(())
    }

    fn delete(&self) -> Result<(), Trouble> {
        self.ask()?;
        *self.token.lock().unwrap() = None;
        Ok(())
    }
}

struct World {
    dir: tempfile::TempDir,
    keychain: Arc<Fake>,
}

impl World {
    fn new() -> Self {
        World {
            dir: tempfile::tempdir().unwrap(),
            keychain: Arc::default(),
        }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn home(&self) -> PathBuf {
        let home = self.dir.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        home
    }

    fn store(&self, variables: &[(&str, &str)]) -> TokenStore {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        TokenStore::with(Some(&self.data()), &self.home(), &variable, self.keychain.clone())
    }

    fn broken(&self, is_broken: bool) {
        let trouble = is_broken.then(|| Trouble::Refused("there is none".to_owned()));
        *self.keychain.trouble.lock().unwrap() = trouble;
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.data()).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn token(store: &TokenStore) -> Option<String> {
    store.current().map(|secret| secret.reveal().to_owned())
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_places_are_asked_in_their_order() {
    let world = World::new();
    let all = [("HF_TOKEN", "hf_env"), ("HUGGING_FACE_HUB_TOKEN", "hf_old")];
    std::fs::write(world.home().join("token"), "hf_shared\n").unwrap();
    world.store(&[]).set("hf_own").unwrap();

    assert_eq!(token(&world.store(&all)).as_deref(), Some("hf_env"));
    assert_eq!(
        world.store(&all).status().source,
        Some(TokenSource::Variable { name: "HF_TOKEN" })
    );
    assert_eq!(token(&world.store(&all[1..])).as_deref(), Some("hf_old"));
    assert_eq!(token(&world.store(&[("HF_TOKEN", "")])).as_deref(), Some("hf_own"));
    assert_eq!(world.store(&[]).status().source, Some(TokenSource::Keychain));
    world.store(&[]).clear().unwrap();
    assert_eq!(token(&world.store(&[])).as_deref(), Some("hf_shared"));
    assert_eq!(
        world.store(&[]).status().source,
        Some(TokenSource::Shared {
            path: world.home().join("token")
        })
    );
    let elsewhere = world.dir.path().join("elsewhere");
    std::fs::write(&elsewhere, "  hf_\r\nelsewhere \n").unwrap();
    let moved = world.store(&[("HF_TOKEN_PATH", elsewhere.to_str().unwrap())]);
    assert_eq!(token(&moved).as_deref(), Some("hf_elsewhere"));
    let user = world.dir.path().to_str().unwrap();
    let below = world.store(&[("HF_TOKEN_PATH", "~/elsewhere"), ("HOME", user)]);
    assert_eq!(token(&below).as_deref(), Some("hf_elsewhere"));
    std::fs::remove_file(world.home().join("token")).unwrap();
    assert_eq!(world.store(&[]).status(), TokenStatus::default());
}

#[test]
fn switched_off_nothing_is_used() {
    let world = World::new();
    world.store(&[]).set("hf_own").unwrap();
    for (value, is_off) in [
        ("1", true),
        ("true", true),
        ("Yes", true),
        ("on", true),
        ("0", false),
        ("", false),
    ] {
        let store = world.store(&[("HF_HUB_DISABLE_IMPLICIT_TOKEN", value), ("HF_TOKEN", "hf_env")]);
        assert_eq!(store.current().is_none(), is_off, "{value}");
        assert_eq!(store.status().switched_off, is_off, "{value}");
    }
}

#[test]
fn without_a_keychain_a_private_file_keeps_it() {
    let world = World::new();
    world.broken(true);
    assert_eq!(world.store(&[]).set(" hf_own\n").unwrap(), TokenSource::File);
    let path = world.data().join("hub-token");
    assert_eq!(
        (std::fs::read(&path).unwrap(), mode(&path)),
        (b"hf_own".to_vec(), 0o600)
    );
    assert_eq!(token(&world.store(&[])).as_deref(), Some("hf_own"));
    assert_eq!(world.store(&[]).status().source, Some(TokenSource::File));

    // Rights that something else gave are taken back, and a link there is not followed.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(world.store(&[]).current().is_some());
    assert_eq!(mode(&path), 0o600);
    let target = world.dir.path().join("target");
    std::fs::write(&target, "precious").unwrap();
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    std::os::unix::fs::symlink(&target, world.data().join("hub-token.new")).unwrap();
    world.store(&[]).set("hf_next").unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    assert_eq!(
        (token(&world.store(&[])).as_deref(), mode(&path)),
        (Some("hf_next"), 0o600)
    );

    assert_eq!(world.files(), ["hub-token"]);
    world.store(&[]).clear().unwrap();
    assert!(world.files().is_empty(), "{:?}", world.files());
}

#[test]
fn the_last_one_entered_counts_wherever_it_is() {
    let world = World::new();
    world.store(&[]).set("hf_first").unwrap();
    assert_eq!(world.files(), ["hub-token.keychain"]);
    world.broken(true);
    assert_eq!(world.store(&[]).set("hf_second").unwrap(), TokenSource::File);
    world.broken(false);
    assert_eq!(
        token(&world.store(&[])).as_deref(),
        Some("hf_second"),
        "the keychain has the first"
    );
    assert_eq!(world.store(&[]).set("hf_third").unwrap(), TokenSource::Keychain);
    assert_eq!(token(&world.store(&[])).as_deref(), Some("hf_third"));
    assert_eq!(world.files(), ["hub-token.keychain"], "no copy stays in a file");
}

#[test]
fn clearing_forgets_every_copy_or_says_so() {
    let world = World::new();
    world.store(&[]).set("hf_first").unwrap();
    world.broken(true);
    world.store(&[]).set("hf_second").unwrap();
    let failure = world.store(&[]).clear().unwrap_err();
    assert_eq!(failure.kind(), "token");
    assert!(failure.to_string().contains("there is none"), "{failure}");
    world.broken(false);
    world.store(&[]).clear().unwrap();
    assert_eq!(*world.keychain.token.lock().unwrap(), None);
    assert!(token(&world.store(&[])).is_none() && world.files().is_empty());
    world.store(&[]).clear().unwrap();
}

/// It may have taken the token after all.
#[test]
fn a_keychain_that_did_not_answer_is_cleared_too() {
    let world = World::new();
    *world.keychain.trouble.lock().unwrap() = Some(Trouble::Silent);
    assert_eq!(world.store(&[]).set("hf_own").unwrap(), TokenSource::File);
    *world.keychain.token.lock().unwrap() = Some("hf_own".to_owned());
    assert_eq!(world.store(&[]).clear().unwrap_err().kind(), "token");
    world.broken(false);
    world.store(&[]).clear().unwrap();
    assert_eq!(*world.keychain.token.lock().unwrap(), None);
}

#[test]
fn a_keychain_that_holds_nothing_of_ours_is_left_alone() {
    let world = World::new();
    *world.keychain.token.lock().unwrap() = Some("hf_other".to_owned());
    assert!(token(&world.store(&[])).is_none());
    world.store(&[]).clear().unwrap();
    assert_eq!(*world.keychain.asked.lock().unwrap(), 0);
}

#[test]
fn what_is_no_token_is_named_by_its_place_only() {
    let world = World::new();
    for text in ["", " \n", "hf_two words", "hf_\u{fc}", "hf_\u{0}", &"x".repeat(5000)] {
        let failure = world.store(&[]).set(text).unwrap_err();
        assert_eq!(failure.kind(), "token");
        assert!(
            !failure.to_string().contains("hf_") && failure.to_string().len() < 200,
            "{failure}"
        );
    }
    assert!(world.files().is_empty());
    std::fs::write(world.home().join("token"), b"hf_\xff\xfe").unwrap();
    let store = world.store(&[("HF_TOKEN", "hf_two words"), ("HUGGING_FACE_HUB_TOKEN", "hf_good")]);
    assert_eq!(token(&store).as_deref(), Some("hf_good"));
    assert_eq!(
        store.status().problems,
        ["`HF_TOKEN` holds something that is no access token"]
    );
    let status = world.store(&[]).status();
    assert_eq!((status.source, status.problems.len()), (None, 1));
    assert!(status.problems[0].ends_with("token` holds something that is no access token"));
}

#[test]
fn what_cannot_be_read_is_told_and_passed_over() {
    let world = World::new();
    std::fs::create_dir_all(world.home().join("token")).unwrap();
    world.store(&[]).set("hf_own").unwrap();
    world.broken(true);
    let status = world.store(&[]).status();
    assert_eq!(status.source, None);
    assert_eq!(status.problems[0], "the keychain cannot be read: there is none");
    assert!(
        status.problems[1].ends_with("cannot be read: it is not a file"),
        "{status:?}"
    );
    assert!(world.store(&[("HF_TOKEN_PATH", "/dev/zero")]).current().is_none());
    assert!(world.store(&[("HF_TOKEN", "hf_env")]).current().is_some());
}

/// Nothing that serializes, displays or debugs shows the token.
#[test]
fn a_token_cannot_be_shown_by_mistake() {
    struct Probe<T>(std::marker::PhantomData<T>);
    trait Hidden {
        const SHOWN: bool = false;
    }
    impl<T> Hidden for Probe<T> {}
    impl<T: std::fmt::Display> Probe<T> {
        const SHOWN: bool = true;
    }
    struct Wire<T>(std::marker::PhantomData<T>);
    trait Kept {
        const SENT: bool = false;
    }
    impl<T> Kept for Wire<T> {}
    impl<T: Serialize> Wire<T> {
        const SENT: bool = true;
    }
    const { assert!(Probe::<String>::SHOWN && !Probe::<Secret>::SHOWN) };
    const { assert!(Wire::<TokenStatus>::SENT && !Wire::<Secret>::SENT) };
    let world = World::new();
    world.broken(true);
    world.store(&[]).set("hf_own_1234567").unwrap();
    let store = world.store(&[]);
    let shown = format!(
        "{:?} {}",
        store.current(),
        serde_json::to_string(&store.status()).unwrap()
    );
    assert_eq!(
        shown,
        r#"Some(Secret(…)) {"source":{"kind":"file"},"switched_off":false,"problems":[]}"#
    );
}
