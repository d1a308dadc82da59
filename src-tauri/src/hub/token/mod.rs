//! The access token: where it comes from, and keeping the person's own.
//!
//! In this order: `HF_TOKEN`, `HUGGING_FACE_HUB_TOKEN`; the app's own, from the system's keychain or, where there is
//! none, from a file that only its owner may read; the file that the hub's other tools share (`HF_TOKEN_PATH`, else
//! `token` in `HF_HOME`). `HF_HUB_DISABLE_IMPLICIT_TOKEN` switches all of them off, as it does for those tools.
//!
//! A token is a [`Secret`] from the moment it is read. Errors and problems name the place, never the content.

mod file;
mod keychain;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::{HubError, Secret};
use keychain::{Keychain, System, Trouble};

const VARIABLES: [&str; 2] = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];
const PATH_VARIABLE: &str = "HF_TOKEN_PATH";
const OFF_VARIABLE: &str = "HF_HUB_DISABLE_IMPLICIT_TOKEN";

/// The app's token, in its data folder.
const OWN: &str = "hub-token";
/// Says that the keychain may hold the token. Without it the keychain is left alone: asking may make it ask the person.
const MARK: &str = "hub-token.keychain";

/// Where a token comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TokenSource {
    /// The system's keychain.
    Keychain,
    /// A file in the app's data folder that only its owner may read.
    File,
    /// An environment variable.
    Variable {
        /// Which.
        name: &'static str,
    },
    /// The file that the hub's other tools share.
    Shared {
        /// Where it is.
        path: PathBuf,
    },
}

/// Whether there is a token, without a character of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TokenStatus {
    /// Where the token that is used comes from.
    pub source: Option<TokenSource>,
    /// `HF_HUB_DISABLE_IMPLICIT_TOKEN` is set: none is used.
    pub switched_off: bool,
    /// Places that hold something unusable, or cannot be read.
    pub problems: Vec<String>,
}

/// The token to use for a home folder of the hub's tools, as far as the environment and that folder tell.
#[must_use]
pub fn resolve(home: &Path) -> Option<Secret> {
    let variable = |name: &str| std::env::var_os(name);
    TokenStore::with(None, home, &variable, Arc::new(System::own())).current()
}

/// All places of the token. Every call looks anew, and may wait for the keychain: not for a thread that must not wait.
#[derive(Clone)]
pub struct TokenStore {
    /// The app's data folder.
    own: Option<PathBuf>,
    keychain: Arc<dyn Keychain>,
    variables: Vec<(&'static str, OsString)>,
    shared: PathBuf,
    switched_off: bool,
}

/// A token with its source, or what is wrong in that place; nothing where nothing is.
type Found = Option<Result<(Secret, TokenSource), String>>;

impl TokenStore {
    /// For the app's data folder and the home folder of the hub's tools. The environment is read now.
    #[must_use]
    pub fn new(data_dir: &Path, home: &Path) -> Self {
        let variable = |name: &str| std::env::var_os(name);
        Self::with(Some(data_dir), home, &variable, Arc::new(System::own()))
    }

    fn with(
        data_dir: Option<&Path>,
        home: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
        keychain: Arc<dyn Keychain>,
    ) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_true = |value: &OsString| {
            let value = value.to_string_lossy().to_ascii_uppercase();
            ["1", "ON", "YES", "TRUE"].contains(&value.as_str())
        };
        let shared = set(PATH_VARIABLE).map(PathBuf::from).map(|path| {
            let below = path.strip_prefix("~").ok().map(Path::to_path_buf);
            below
                .and_then(|below| Some(PathBuf::from(set("HOME")?).join(below)))
                .unwrap_or(path)
        });
        TokenStore {
            own: data_dir.map(Path::to_path_buf),
            keychain,
            variables: VARIABLES.iter().filter_map(|name| Some((*name, set(name)?))).collect(),
            shared: shared.unwrap_or_else(|| home.join("token")),
            switched_off: set(OFF_VARIABLE).as_ref().is_some_and(is_true),
        }
    }

    /// The token to use, if there is one.
    #[must_use]
    pub fn current(&self) -> Option<Secret> {
        self.look().0
    }

    /// Whether there is one and where it comes from.
    #[must_use]
    pub fn status(&self) -> TokenStatus {
        self.look().1
    }

    fn look(&self) -> (Option<Secret>, TokenStatus) {
        let mut status = TokenStatus {
            switched_off: self.switched_off,
            ..TokenStatus::default()
        };
        if self.switched_off {
            return (None, status);
        }
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| Self::of_variable(name, value));
        let own = [Self::of_file, Self::of_keychain, Self::of_shared];
        for found in variables.chain(own.into_iter().map(|place| place(self))) {
            match found {
                Some(Ok((secret, source))) => {
                    status.source = Some(source);
                    return (Some(secret), status);
                }
                Some(Err(problem)) => status.problems.push(problem),
                None => {}
            }
        }
        (None, status)
    }

    /// Before the keychain: this file is only there when the keychain could not take what was entered last.
    fn of_file(&self) -> Found {
        let path = self.own.as_ref()?.join(OWN);
        file::make_private(&path);
        let found = file::read(&path).transpose()?;
        let found = found.and_then(|text| usable(&text, &format!("`{}`", path.display())));
        found
            .transpose()
            .map(|found| found.map(|secret| (secret, TokenSource::File)))
    }

    fn of_keychain(&self) -> Found {
        if !self.own.as_ref()?.join(MARK).exists() {
            return None;
        }
        let found = self
            .keychain
            .get()
            .map_err(|e| format!("the keychain cannot be read: {e}"));
        let found = found.transpose()?.and_then(|text| usable(&text, "the keychain"));
        found
            .transpose()
            .map(|found| found.map(|secret| (secret, TokenSource::Keychain)))
    }

    fn of_variable(name: &'static str, value: &OsString) -> Found {
        // What is not text becomes a character that no token has.
        let found = usable(&value.to_string_lossy(), &format!("`{name}`"));
        found
            .transpose()
            .map(|found| found.map(|secret| (secret, TokenSource::Variable { name })))
    }

    fn of_shared(&self) -> Found {
        let path = &self.shared;
        let found = file::read(path).transpose()?;
        let found = found.and_then(|text| usable(&text, &format!("`{}`", path.display())));
        let source = || TokenSource::Shared { path: path.clone() };
        found.transpose().map(|found| found.map(|secret| (secret, source())))
    }

    /// Keeps a token, in the keychain or else in a private file, in place of one that was kept before. Says where it is.
    ///
    /// # Errors
    /// [`HubError::Token`] for a text that is no token, and where neither place takes it.
    pub fn set(&self, text: &str) -> Result<TokenSource, HubError> {
        let secret = usable(text, "what was entered")
            .and_then(|secret| secret.ok_or_else(|| "it is empty".to_owned()))
            .map_err(|message| HubError::Token { message })?;
        let (own, mark) = self.places()?;
        std::fs::create_dir_all(own.parent().unwrap_or(&own)).map_err(|e| failed(&own, &e))?;
        // First the mark: a token in the keychain must be found again, to be used and to be deleted.
        let was_marked = mark.exists();
        std::fs::write(&mark, "").map_err(|e| failed(&mark, &e))?;
        let Err(trouble) = self.keychain.set(&secret) else {
            file::remove(&own).map_err(|e| failed(&own, &e))?;
            return Ok(TokenSource::Keychain);
        };
        file::write(&own, &secret).map_err(|e| failed(&own, &e))?;
        if !was_marked && trouble != Trouble::Silent {
            file::remove(&mark).map_err(|e| failed(&mark, &e))?;
        }
        Ok(TokenSource::File)
    }

    /// Forgets the token that was kept. Those of variables and shared files stay, and are used then.
    ///
    /// # Errors
    /// [`HubError::Token`] when a place will not let go of it.
    pub fn clear(&self) -> Result<(), HubError> {
        let (own, mark) = self.places()?;
        file::remove(&own).map_err(|e| failed(&own, &e))?;
        if mark.exists() {
            self.keychain.delete().map_err(|e| HubError::Token {
                message: format!("the keychain does not delete it: {e}"),
            })?;
            file::remove(&mark).map_err(|e| failed(&mark, &e))?;
        }
        Ok(())
    }

    fn places(&self) -> Result<(PathBuf, PathBuf), HubError> {
        let dir = self.own.as_ref().ok_or_else(|| HubError::Token {
            message: "there is no folder for the app's data".to_owned(),
        })?;
        Ok((dir.join(OWN), dir.join(MARK)))
    }
}

/// A text as a token: without line ends and blanks around it, and of characters that a request can carry. Nothing if
/// nothing is left.
fn usable(text: &str, place: &str) -> Result<Option<Secret>, String> {
    let text = text.replace(['\r', '\n'], "");
    let text = text.trim();
    if text.len() > file::LONGEST || !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!("{place} holds something that is no access token"));
    }
    Ok(Secret::new(text))
}

fn failed(path: &Path, error: &std::io::Error) -> HubError {
    HubError::Token {
        message: format!("`{}`: {error}", path.display()),
    }
}
