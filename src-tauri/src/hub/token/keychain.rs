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

/// The system's own.
pub(super) struct System;

impl Keychain for System {
    fn get(&self) -> Result<Option<String>, Trouble> {
        within(PATIENCE, || match entry()?.get_password() {
            Ok(text) => Ok(Some(text)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(e) => Err(cause(&e)),
        })
    }

    fn set(&self, secret: &Secret) -> Result<(), Trouble> {
        let secret = secret.clone();
        within(PATIENCE, move || {
            entry()?.set_password(secret.reveal()).map_err(|e| cause(&e))
        })
    }

    fn delete(&self) -> Result<(), Trouble> {
        within(PATIENCE, || match entry()?.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(e) => Err(cause(&e)),
        })
    }
}

fn entry() -> Result<keyring::Entry, Trouble> {
    keyring::Entry::new(SERVICE, ACCOUNT).map_err(|e| cause(&e))
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
    use std::time::Instant;

    use super::*;

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
