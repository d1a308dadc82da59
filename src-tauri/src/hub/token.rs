//! The access token: environment, keychain, file.

use std::path::Path;

use super::Secret;

/// The token to use, in the order of the hub's own clients.
#[must_use]
pub fn resolve(home: &Path) -> Option<Secret> {
    let _ = home;
    None
}
