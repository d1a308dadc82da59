//! The hub against a fake one on loopback: every way a download can break, and what is kept.

mod cancel;
mod cases;
mod certificates;
mod child;
mod disk;
mod faults;
mod interop;
mod jobs;
mod kill;
mod large;
mod network;
mod protocol;
mod refusals;
mod sharing;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use app::hub::{CancelToken, Hub, HubConfig, HubError, PartRequest, Progress, Secret};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tests::fake_hub::{Body, FakeHub, File, Repo, hex};

const REPO: &str = "tiny-org/tiny-model";
const WEIGHTS: &str = "model.safetensors";
const MIB: u64 = 1 << 20;
/// Long enough for a busy machine, short enough to be noticed.
const SOON: Duration = Duration::from_secs(20);

/// A hub with one repository, and a home folder to download to.
struct Place {
    hub: FakeHub,
    home: TempDir,
    /// The large file's bytes.
    body: Body,
}

impl Place {
    fn new(body: Body) -> Self {
        let files = [
            File::small("config.json", "{\"model_type\": \"tiny\"}\n"),
            File::large(WEIGHTS, body.clone()),
        ];
        Place {
            hub: FakeHub::with(Repo::new(REPO, files)),
            home: TempDir::new().unwrap(),
            body,
        }
    }

    /// A mebibyte, as in the cases.
    fn tiny() -> Self {
        Self::new(Body::formula(MIB, 1))
    }

    /// Short waits.
    fn config(&self) -> HubConfig {
        patient(HubConfig::at(&self.hub.url(), self.home.path()))
    }

    fn with_token(&self, token: &str) -> HubConfig {
        HubConfig {
            token: Secret::new(token),
            ..self.config()
        }
    }

    /// Only the large file, with the usual settings.
    async fn fetch(&self) -> Result<PathBuf, HubError> {
        fetch(self.config(), &[WEIGHTS]).await
    }

    fn repo_dir(&self) -> PathBuf {
        self.home.path().join("hub/models--tiny-org--tiny-model")
    }

    /// Where the large file's bytes lie once they are whole.
    fn blob(&self) -> PathBuf {
        self.repo_dir().join("blobs").join(self.body.sha256())
    }

    /// Whether the file can be found, under any of its names.
    fn is_absent(&self) -> bool {
        !self.blob().exists() && found(&self.repo_dir().join("snapshots"), WEIGHTS).is_none()
    }

    fn is_whole(&self, dir: &Path) -> bool {
        hash(&dir.join(WEIGHTS)) == self.body.sha256()
    }

    /// Bytes kept of an unfinished file.
    fn kept(&self) -> u64 {
        files(&self.repo_dir().join("blobs"))
            .iter()
            .filter(|path| path.to_string_lossy().ends_with("-part"))
            .map(|path| path.metadata().unwrap().len())
            .sum()
    }
}

/// Waits that suit loopback.
fn patient(config: HubConfig) -> HubConfig {
    HubConfig {
        connect_timeout: Duration::from_secs(2),
        stall: Duration::from_secs(1),
        floor: 0,
        floor_window: Duration::from_millis(600),
        retries: 4,
        backoff: Duration::from_millis(20),
        backoff_max: Duration::from_millis(100),
        network_wait: Duration::from_secs(10),
        ..config
    }
}

fn request(include: &[&str]) -> PartRequest {
    PartRequest {
        repo: REPO.parse().unwrap(),
        revision: None,
        branch: None,
        include: include.iter().map(|&pattern| pattern.into()).collect(),
        exclude: Vec::new(),
        head_only: false,
    }
}

/// Plans and downloads; the folder.
async fn fetch(config: HubConfig, include: &[&str]) -> Result<PathBuf, HubError> {
    fetch_watched(config, include, &|_| (), &CancelToken::new()).await
}

async fn fetch_watched(
    config: HubConfig,
    include: &[&str],
    progress: &(dyn Fn(Progress) + Send + Sync),
    cancel: &CancelToken,
) -> Result<PathBuf, HubError> {
    let hub = Hub::new(config)?;
    let work = async {
        let plan = hub.plan(&[request(include)], cancel).await?;
        hub.download(&plan, progress, cancel).await
    };
    let mut parts = tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("a download that never ends")?;
    Ok(parts.remove(0).dir)
}

/// What a download told, to be looked at afterwards.
#[derive(Default)]
struct Told(Mutex<Vec<Progress>>);

impl Told {
    fn take(&self) -> impl Fn(Progress) + Send + Sync + '_ {
        |progress| self.0.lock().unwrap().push(progress)
    }

    fn all(&self) -> Vec<Progress> {
        self.0.lock().unwrap().clone()
    }
}

/// SHA-256 of a file, in hex.
fn hash(path: &Path) -> String {
    let mut file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = std::io::Read::read(&mut file, &mut buffer).unwrap();
        if n == 0 {
            return hex(&hash.finalize());
        }
        hash.update(&buffer[..n]);
    }
}

/// All files below a folder, links among them.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

/// A file of this path below a folder of snapshots.
fn found(snapshots: &Path, path: &str) -> Option<PathBuf> {
    files(snapshots).into_iter().find(|file| file.ends_with(path))
}

/// The error's words, as a person sees them.
fn words(error: &HubError) -> String {
    format!("{error}\n{}\n{error:?}", error.hint().unwrap_or_default())
}
