//! The system's keychain: Keychain Services on a Mac, the Secret Service on Linux, where there may be none.

use std::sync::mpsc;
use std::time::Duration;

use super::Secret;

const SERVICE: &str = "chat.slipstream.app";
const ACCOUNT: &str = "hub access token";
/// A keychain may ask the person to unlock it; one that nobody answers for must not hold the app.
const PATIENCE: Duration = Duration::from_secs(60);

/// What went wrong; nothing of the token is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// Asked, and it may still do what it was asked for.
    #[error("it does not answer")]
    Silent,
    /// It did not.
    #[error("{0}")]
    Refused(String),
}

/// Keeps one token.
pub(super) trait Keychain: Send + Sync {
    /// The token, if there is one.
    fn get(&self) -> Result<Option<String>, Trouble>;
    /// Keeps a token in place of the one before.
    fn set(&self, secret: &Secret) -> Result<(), Trouble>;
    /// Forgets the token, if there is one.
    fn delete(&self) -> Result<(), Trouble>;
}

/// One of the system's.
pub(super) struct System {
    entry: fn() -> keyring::Result<keyring::Entry>,
}

impl System {
    /// The one that the system has for this.
    pub(super) fn own() -> Self {
        System {
            entry: || keyring::Entry::new(SERVICE, ACCOUNT),
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(keyring::Entry) -> keyring::Result<T> + Send + 'static,
    ) -> Result<Option<T>, Trouble> {
        let entry = self.entry;
        within(PATIENCE, move || match entry().and_then(what) {
            Ok(found) => Ok(Some(found)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(e) => Err(cause(&e)),
        })
    }
}

impl Keychain for System {
    fn get(&self) -> Result<Option<String>, Trouble> {
        self.ask(|entry| entry.get_password())
    }

    fn set(&self, secret: &Secret) -> Result<(), Trouble> {
        let secret = secret.clone();
        let kept = self.ask(move |entry| entry.set_password(secret.reveal()))?;
        kept.ok_or_else(|| Trouble::Refused("what it holds cannot be used".to_owned()))
    }

    fn delete(&self) -> Result<(), Trouble> {
        self.ask(|entry| entry.delete_credential()).map(drop)
    }
}

/// Some of the library's errors carry the stored bytes.
fn cause(error: &keyring::Error) -> Trouble {
    Trouble::Refused(match error {
        keyring::Error::NoDefaultStore => "there is none".to_owned(),
        keyring::Error::NoStorageAccess(_) => "access was refused".to_owned(),
        keyring::Error::PlatformFailure(e) => e.to_string(),
        _ => "what it holds cannot be used".to_owned(),
    })
}

/// On a thread of its own: Linux' keychain is reached by a runtime that must not start inside another one.
fn within<T: Send + 'static>(
    patience: Duration,
    ask: impl FnOnce() -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let (answer, answered) = mpsc::channel();
    let asking = std::thread::Builder::new()
        .name("keychain".to_owned())
        // Nobody listens any more after a timeout.
        .spawn(move || drop(answer.send(ask())));
    asking.map_err(|e| Trouble::Refused(e.to_string()))?;
    answered.recv_timeout(patience).unwrap_or(Err(Trouble::Silent))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};
    use std::time::Instant;

    use keyring_core::api::CredentialStoreApi;

    use super::*;

    /// The library's own store in memory, in place of the system's: all else is the way a token really goes.
    #[test]
    fn a_keychain_that_accepts_keeps_the_token_until_it_is_deleted() {
        static STORE: LazyLock<Arc<keyring_core::mock::Store>> =
            LazyLock::new(|| keyring_core::mock::Store::new().unwrap());
        let entry = || {
            let inner = STORE.build(SERVICE, ACCOUNT, None)?;
            Ok(keyring::Entry { inner })
        };
        let keychain = System { entry };
        assert_eq!(keychain.get(), Ok(None));
        for text in ["hf_first", "hf_second"] {
            keychain.set(&Secret::new(text).unwrap()).unwrap();
            assert_eq!(keychain.get().unwrap().as_deref(), Some(text));
        }
        let inner = STORE.build(SERVICE, ACCOUNT, None).unwrap();
        let credential: &keyring_core::mock::Cred = inner.as_any().downcast_ref().unwrap();
        credential.set_error(keyring::Error::NoStorageAccess("locked".into()));
        assert_eq!(
            keychain.get(),
            Err(Trouble::Refused("access was refused".to_owned())),
            "and it may refuse meanwhile"
        );
        keychain.delete().unwrap();
        assert_eq!(keychain.get(), Ok(None));
        keychain.delete().unwrap();
    }

    #[test]
    fn a_keychain_that_does_not_answer_is_given_up() {
        let begun = Instant::now();
        let silent = within(Duration::from_millis(50), || {
            std::thread::sleep(Duration::from_secs(30));
            Ok(())
        });
        assert_eq!(silent, Err(Trouble::Silent));
        assert!(begun.elapsed() < Duration::from_secs(10));
        let lost: Result<(), Trouble> = within(Duration::from_secs(30), || panic!("as a library might"));
        assert_eq!(lost, Err(Trouble::Silent));
        assert_eq!(within(Duration::from_secs(30), || Ok(7)), Ok(7));
    }

    #[test]
    fn errors_that_carry_the_token_do_not_tell_it() {
        let holds = keyring::Error::BadEncoding(b"hf_secret".to_vec());
        let text = cause(&holds).to_string();
        assert_eq!(text, "what it holds cannot be used");
    }
}
