//! Where checkpoints are, whatever their version. In the hub's cache a folder is of one commit
//! (`models--owner--name/snapshots/COMMIT`), and after an update the same model is in another.

use crate::ipc::Setup;

const SNAPSHOTS: &str = "/snapshots/";
/// As much of a commit as is told.
const SHORT: usize = 7;

/// A checkpoint's folder without its commit: what stays the same when it is updated.
#[must_use]
pub fn place(path: &str) -> String {
    match split(path) {
        Some((repository, _, inside)) => format!("{repository}{SNAPSHOTS}*{inside}"),
        None => path.to_owned(),
    }
}

/// What the folders of all versions of a checkpoint begin with.
#[must_use]
pub fn shared(path: &str) -> &str {
    match path.rfind(SNAPSHOTS) {
        Some(at) => path.get(..at + SNAPSHOTS.len()).unwrap_or(path),
        None => path,
    }
}

/// Repository, commit and what follows it, with its slash.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let (repository, rest) = path.rsplit_once(SNAPSHOTS)?;
    let (commit, inside) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (!commit.is_empty()).then_some((repository, commit, inside))
}

/// Commits that are others than then, in words.
pub(super) fn moved(was: &Setup, target: &str, drafter: Option<&str>) -> Vec<String> {
    let change = |what: &str, was: &str, is: &str| {
        let ((.., was, _), (.., is, _)) = (split(was)?, split(is)?);
        let short = |commit: &str| commit.chars().take(SHORT).collect::<String>();
        (was != is).then(|| format!("{what} {} → {}", short(was), short(is)))
    };
    let of_drafter = was.drafter.as_deref().zip(drafter);
    change("the model's commit", &was.target, target)
        .into_iter()
        .chain(of_drafter.and_then(|(was, is)| change("the head's commit", was, is)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_checkpoint_have_one_place() {
        let hub = |commit: &str, inside: &str| format!("/hub/models--a--b/snapshots/{commit}{inside}");
        assert_eq!(place(&hub("1f", "")), place(&hub("2e", "")));
        assert_eq!(place(&hub("1f", "/mtp")), place(&hub("2e", "/mtp")));
        assert_ne!(place(&hub("1f", "/mtp")), place(&hub("1f", "")));
        assert_eq!(
            (place("/models/b"), shared("/models/b")),
            ("/models/b".to_owned(), "/models/b")
        );
        assert_eq!(shared(&hub("1f", "/mtp")), "/hub/models--a--b/snapshots/");
    }
}
