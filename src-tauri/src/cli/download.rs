//! `slipstream download`.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{INTERRUPTED, output};
use crate::error::Error;
use crate::hub::token::TokenStore;
use crate::hub::{CancelToken, Hub, HubConfig, PartRequest, Plan, Progress, RepoId};
use crate::ipc::AppError;
use crate::store::data_dir;
use crate::words::{bytes, duration};

/// How often a line of progress is written.
const LINE_EVERY: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The repository, `owner/name`, or the address of its page.
    #[arg(value_name = "REPO")]
    repository: String,
    /// Branch, tag or commit; without it the address's own, else `main`.
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Fetch files whose whole path matches; may be given more than once. Without it, what the loader needs.
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// Leave out files whose whole path matches; may be given more than once.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Fetch only the MTP tensors, out of the middle of the weight files.
    #[arg(long, conflicts_with_all = ["include", "exclude"])]
    head_only: bool,
    /// Write JSON objects, one a line: `plan`, `progress`, then `done` or an error.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode, AppError> {
    let runtime = super::runtime()?;
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    match runtime.block_on(download(arguments, &cancel)) {
        Err(error) if error.kind == "cancelled" => {
            output::note(&format!("slipstream: {error}"));
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) => Err(error),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// As the environment says, with the token that was entered in the window where the environment has none.
async fn config() -> Result<HubConfig, AppError> {
    let mut config = HubConfig::from_env();
    if let Some(dir) = data_dir() {
        let tokens = TokenStore::new(&dir, &config.home);
        // The keychain may ask the person.
        config.token = tokio::task::spawn_blocking(move || tokens.current())
            .await
            .map_err(Error::from)?;
    }
    Ok(config)
}

async fn download(arguments: Arguments, cancel: &CancelToken) -> Result<(), AppError> {
    let json = arguments.json;
    let (repo, named) = RepoId::parse(&arguments.repository)?;
    let hub = Hub::new(config().await?)?;
    let request = PartRequest {
        repo,
        revision: arguments.revision.or(named),
        branch: None,
        include: arguments.include,
        exclude: arguments.exclude,
        head_only: arguments.head_only,
    };
    let plan = hub.plan(&[request], cancel).await?;
    tell_plan(&plan, json)?;
    let lines = Mutex::new(Lines::default());
    let tell = |progress: Progress| {
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.tell(&progress, json);
    };
    let parts = hub.download(&plan, &tell, cancel).await?;
    for part in parts {
        let dir = part.dir.display().to_string();
        output::line(&match json {
            true => serde_json::json!({
                "event": "done",
                "repo": part.repo,
                "commit": part.commit,
                "dir": dir,
                "files": part.files,
            })
            .to_string(),
            false => dir,
        })?;
    }
    Ok(())
}

fn tell_plan(plan: &Plan, json: bool) -> Result<(), AppError> {
    for part in &plan.parts {
        if json {
            let files = part.files.iter().map(|planned| {
                serde_json::json!({
                    "path": planned.file.path,
                    "size": planned.file.size,
                    "present": planned.present(),
                })
            });
            let event = serde_json::json!({
                "event": "plan",
                "repo": part.repo,
                "commit": part.commit,
                "files": files.collect::<Vec<_>>(),
                "total": part.total(),
                "present": part.present(),
                "diskFree": plan.disk_free,
            });
            output::line(&event.to_string())?;
        } else {
            output::note(&format!(
                "{} at {}: {} files, {}, {} of it here",
                part.repo,
                part.commit.get(..8).unwrap_or(&part.commit),
                part.files.len().max(usize::from(part.head.is_some())),
                bytes(part.total()),
                bytes(part.present()),
            ));
        }
    }
    Ok(())
}

/// What was last written of the progress.
#[derive(Default)]
struct Lines {
    at: Option<Instant>,
    last: String,
    reason: Option<String>,
}

impl Lines {
    fn tell(&mut self, progress: &Progress, json: bool) {
        let whole = progress.done >= progress.total;
        let text = progress.waiting.as_ref().map(|reason| reason.text());
        // A new reason to wait is told at once.
        let news = (text.is_some() && text != self.reason) || whole;
        self.reason.clone_from(&text);
        if !news && self.at.is_some_and(|at| at.elapsed() < LINE_EVERY) {
            return;
        }
        let line = match text {
            _ if json => {
                let event = serde_json::json!({
                    "event": "progress",
                    "done": progress.done,
                    "total": progress.total,
                    "speed": progress.speed,
                    "eta": progress.eta.map(|eta| eta.as_secs()),
                    "waiting": progress.waiting,
                    "files": progress.files,
                });
                event.to_string()
            }
            Some(text) => text,
            None => line(progress),
        };
        self.at = Some(Instant::now());
        if line == self.last {
            return;
        }
        if json {
            // A reader that went away does not stop the download.
            let _ = output::line(&line);
        } else {
            output::note(&line);
        }
        self.last = line;
    }
}

fn line(progress: &Progress) -> String {
    let mut parts = vec![format!("{} of {}", bytes(progress.done), bytes(progress.total))];
    parts.extend(progress.speed.map(|speed| format!("{}/s", bytes(speed as u64))));
    parts.extend(progress.eta.map(|eta| format!("{} left", duration(eta))));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_is_known() {
        let mut progress = Progress {
            done: 500,
            total: 2000,
            fetched: 500,
            speed: None,
            eta: None,
            waiting: None,
            files: Vec::new(),
        };
        assert_eq!(line(&progress), "500 B of 2.0 KB");
        progress.speed = Some(100.0);
        progress.eta = Some(Duration::from_secs(15));
        assert_eq!(line(&progress), "500 B of 2.0 KB · 100 B/s · 15 s left");
    }
}
