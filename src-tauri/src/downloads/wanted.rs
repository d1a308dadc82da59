//! What is asked for, compared.

use crate::hub::{HubError, PartRequest, Plan, RepoId};
use crate::ipc::Wanted;

/// The hub's form of what is wanted.
pub(super) fn requests(wanted: &Wanted) -> Result<Vec<PartRequest>, HubError> {
    let parts = wanted.parts.iter().map(|part| {
        let (repo, in_address) = RepoId::parse(&part.repo)?;
        Ok(PartRequest {
            repo,
            revision: part
                .revision
                .clone()
                .filter(|revision| !revision.is_empty())
                .or(in_address),
            branch: part.asked.clone(),
            include: part.include.clone(),
            exclude: part.exclude.clone(),
            head_only: part.head_only,
        })
    });
    parts.collect()
}

/// With the commits that the plan found: target and drafter stay as they were at that moment.
pub(super) fn pinned(mut wanted: Wanted, plan: &Plan) -> Wanted {
    for (part, planned) in wanted.parts.iter_mut().zip(&plan.parts) {
        part.repo = planned.repo.to_string();
        part.asked = Some(planned.revision.clone()).filter(|asked| *asked != planned.commit);
        part.revision = Some(planned.commit.clone());
    }
    wanted
}

/// Whether both ask for the same; a commit and the branch it was found by may differ.
pub(super) fn same(a: &Wanted, b: &Wanted) -> bool {
    let key = |wanted: &Wanted| -> Vec<_> {
        let parts = wanted.parts.iter();
        parts
            .map(|part| {
                (
                    repo_name(&part.repo),
                    part.include.clone(),
                    part.exclude.clone(),
                    part.head_only,
                )
            })
            .collect()
    };
    key(a) == key(b)
}

pub(super) fn repo_name(text: &str) -> String {
    RepoId::parse(text).map_or_else(|_| text.to_owned(), |(repo, _)| repo.to_string())
}

/// Whether a download of `known` is one of `asked`: the same parts, and no other revision is asked for by name.
pub(super) fn same_revisions(known: &Wanted, asked: &Wanted) -> bool {
    let revisions = |wanted: &Wanted| -> Option<Vec<Option<String>>> {
        let parts = requests(wanted).ok()?;
        Some(parts.into_iter().map(|part| part.revision).collect())
    };
    let (Some(known), Some(asked)) = (revisions(known), revisions(asked)) else {
        return false;
    };
    known
        .iter()
        .zip(&asked)
        .all(|(known, asked)| asked.is_none() || asked == known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::WantedPart;

    fn wanted(repo: &str, revision: Option<&str>) -> Wanted {
        Wanted {
            name: "n".to_owned(),
            parts: vec![WantedPart {
                repo: repo.to_owned(),
                revision: revision.map(str::to_owned),
                ..WantedPart::default()
            }],
        }
    }

    #[test]
    fn another_revision_counts_only_where_one_is_asked_for() {
        let known = wanted("o/n", Some("abc"));
        assert!(same(&known, &wanted("https://huggingface.co/o/n/tree/v2", None)));
        assert!(!same(&known, &wanted("o/m", None)));
        assert!(
            same_revisions(&known, &wanted("o/n", None)),
            "it goes on as it was pinned"
        );
        assert!(same_revisions(&known, &wanted("o/n", Some(""))));
        assert!(same_revisions(&known, &wanted("o/n", Some("abc"))));
        assert!(!same_revisions(&known, &wanted("o/n", Some("v2"))));
        assert!(!same_revisions(
            &known,
            &wanted("https://huggingface.co/o/n/tree/v2", None)
        ));
    }
}
