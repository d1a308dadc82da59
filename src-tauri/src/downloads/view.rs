//! The hub's words in the window's.

use std::path::Path;

use crate::hub::{FileState, Plan, PlanPart, Progress, SearchHit, WaitReason};
use crate::ipc::{
    AppError, DownloadPhase, DownloadPlan, Fetched, FoundRepo, LocalModel, ModelHealth, ModelRole, Need, PlannedFile,
    PlannedPart, WaitReason as Waits, Wanted,
};
use crate::library::Library;
use crate::{machine, offers};

pub(super) fn plan(id: &str, wanted: &Wanted, plan: &Plan, memory: Need) -> DownloadPlan {
    DownloadPlan {
        id: id.to_owned(),
        wanted: wanted.clone(),
        parts: plan.parts.iter().map(part).collect(),
        bytes: plan.total() as f64,
        there: plan.present() as f64,
        memory,
        disk: machine::fits_disk(Some(plan.to_fetch() as f64), plan.disk_free.map(|free| free as f64)),
    }
}

fn part(part: &PlanPart) -> PlannedPart {
    let mut files: Vec<PlannedFile> = part
        .files
        .iter()
        .map(|file| PlannedFile {
            path: file.file.path.clone(),
            bytes: file.file.size.unwrap_or_default() as f64,
            there: file.present() as f64,
        })
        .collect();
    if let Some(head) = &part.head {
        files.push(PlannedFile {
            path: "model.safetensors".to_owned(),
            bytes: head.total() as f64,
            there: head.present() as f64,
        });
    }
    PlannedPart {
        repo: part.repo.to_string(),
        commit: part.commit.clone(),
        head_only: part.head.is_some(),
        in_place_of: part.head.as_ref().map(|head| head.in_place_of() as f64),
        files,
    }
}

pub(super) fn files(plan: &Plan) -> u32 {
    let files: usize = plan
        .parts
        .iter()
        .map(|part| part.files.len() + usize::from(part.head.is_some()))
        .sum();
    u32::try_from(files).unwrap_or(u32::MAX)
}

pub(super) fn phase(progress: &Progress) -> DownloadPhase {
    if let Some(reason) = &progress.waiting {
        let (reason, seconds) = match reason {
            WaitReason::Network => (Waits::Network, None),
            WaitReason::RateLimit { seconds } => (Waits::Server, Some(*seconds as f64)),
            WaitReason::Server => (Waits::Server, None),
            WaitReason::OtherProcess => (Waits::Writer, None),
        };
        return DownloadPhase::Waiting { reason, seconds };
    }
    let is = |state: &FileState| progress.files.iter().any(|file| file.state == *state);
    if is(&FileState::Verifying) && !is(&FileState::Fetching) {
        DownloadPhase::Verifying
    } else {
        DownloadPhase::Transferring
    }
}

/// Files that are whole, and the one that is worked on.
pub(super) fn standing(progress: &Progress) -> (u32, Option<String>) {
    let whole = progress
        .files
        .iter()
        .filter(|file| file.state == FileState::Done)
        .count();
    let at_work = |file: &&crate::hub::FileProgress| matches!(file.state, FileState::Fetching | FileState::Verifying);
    let file = progress.files.iter().find(at_work).map(|file| file.path.clone());
    (u32::try_from(whole).unwrap_or(u32::MAX), file)
}

pub(super) fn found(hit: SearchHit) -> FoundRepo {
    FoundRepo {
        repo: hit.repo.to_string(),
        downloads: Some(hit.downloads as f64),
        gated: hit.gated,
        tags: hit.library.into_iter().chain(hit.tags).take(6).collect(),
    }
}

/// What came, as the loader judges it: a model that is downloaded loads. Where the person chose files, and not to chat
/// with them, they are what was asked for, whatever they make.
pub(super) async fn outcome(
    library: &Library,
    wanted: &Wanted,
    dirs: &[&Path],
    then_chat: bool,
) -> Result<DownloadPhase, AppError> {
    let done = |fetched| DownloadPhase::Done { model: None, fetched };
    let mut dirs = dirs.iter();
    let Some(target) = dirs.next() else {
        return Ok(done(Fetched::Files));
    };
    let target = library.look_at(target).await?;
    let chosen = wanted
        .parts
        .first()
        .is_some_and(|part| !part.include.is_empty() || !part.exclude.is_empty());
    if chosen && !then_chat && target.health != ModelHealth::Whole && !offers::is_catalogued(wanted) {
        return Ok(done(Fetched::Files));
    }
    let head = match dirs.next() {
        Some(dir) => Some(library.look_at(dir).await?),
        None => None,
    };
    for part in std::iter::once(&target).chain(&head) {
        if let Some(problem) = part.problems.first().filter(|_| part.health != ModelHealth::Whole) {
            return Err(problem.clone());
        }
    }
    if !matches!(target.role, ModelRole::Target | ModelRole::Both) {
        return Ok(done(match target.role {
            ModelRole::Drafter => Fetched::Head,
            _ => Fetched::Files,
        }));
    }
    let drafter = head.filter(|head| head.role == ModelRole::Drafter || head.role == ModelRole::Both);
    Ok(DownloadPhase::Done {
        model: Some(LocalModel {
            name: wanted.name.clone(),
            drafter_path: drafter.as_ref().map(|head| head.model.path.clone()),
            bytes: target.model.bytes + drafter.as_ref().map_or(0.0, |head| head.model.bytes),
            ..target.model
        }),
        fetched: Fetched::Model,
    })
}
