//! A download in a process of its own, which can be killed: this same program, with one test chosen.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use app::hub::{CancelToken, Hub, HubConfig, PartRequest, Secret};
use serde::{Deserialize, Serialize};
use tests::fake_hub::FakeHub;

use super::{REPO, WEIGHTS, patient};

/// Set in the child: the job as JSON.
const JOB: &str = "SLIPSTREAM_TEST_DOWNLOAD";

/// What a child is to fetch.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Job {
    pub endpoint: String,
    pub home: String,
    pub repo: String,
    pub include: Vec<String>,
    pub token: Option<String>,
    pub disk_free: Option<u64>,
    pub offline: bool,
    pub stall_ms: u64,
    /// Environment to set, a proxy for one.
    pub env: Vec<(String, String)>,
    /// Runs as this user, on Unix, where the superuser asks.
    #[serde(skip)]
    pub user: Option<u32>,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The folder.
    pub dir: Option<String>,
    /// Kind of the error and its words.
    pub error: Option<(String, String)>,
    /// Most memory the child ever had, in bytes; 0 where the system does not tell.
    pub memory: u64,
    /// Seconds the download took.
    pub seconds: f64,
}

impl Job {
    pub(super) fn new(hub: &FakeHub, home: &Path) -> Self {
        Job {
            endpoint: hub.url(),
            home: home.to_str().unwrap().into(),
            repo: REPO.into(),
            include: vec![WEIGHTS.into()],
            token: None,
            disk_free: None,
            offline: false,
            stall_ms: 1000,
            env: Vec::new(),
            user: None,
        }
    }

    pub(super) fn start(&self) -> Running {
        self.try_start().unwrap()
    }

    /// An error where this program may not be run by that user.
    pub(super) fn try_start(&self) -> std::io::Result<Running> {
        let out = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--exact", "hub::child::download_in_a_child", "--nocapture"])
            .env(JOB, serde_json::to_string(self)?)
            .env("SLIPSTREAM_TEST_OUT", out.path())
            .env_remove("SSL_CERT_FILE")
            .env_remove("REQUESTS_CA_BUNDLE")
            .env_remove("CURL_CA_BUNDLE")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        #[cfg(unix)]
        if let Some(user) = self.user {
            use std::os::unix::fs::{PermissionsExt, chown};
            use std::os::unix::process::CommandExt;
            chown(out.path(), Some(user), None)?;
            let readable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&self.home, readable)?;
            command.uid(user);
        }
        let child = command.spawn()?;
        Ok(Running { child, out })
    }
}

/// A child at work.
pub(super) struct Running {
    child: Child,
    out: tempfile::NamedTempFile,
}

impl Running {
    pub(super) fn end(mut self) -> Outcome {
        let status = self.child.wait().unwrap();
        let text = std::fs::read_to_string(self.out.path()).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("the child said {text:?} ({status}): {error}"))
    }

    /// At once and without a word.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// `VmHWM`, where the system has it.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        << 10
}

/// The child's part; nothing in an ordinary run.
#[test]
fn download_in_a_child() {
    let (Ok(job), Some(out)) = (std::env::var(JOB), std::env::var_os("SLIPSTREAM_TEST_OUT")) else {
        return;
    };
    let job: Job = serde_json::from_str(&job).unwrap();
    let mut config = patient(HubConfig::at(&job.endpoint, Path::new(&job.home)));
    config.token = job.token.as_deref().and_then(Secret::new);
    config.offline = job.offline;
    config.stall = Duration::from_millis(job.stall_ms);
    if let Some(free) = job.disk_free {
        config.disk_free = Arc::new(move |_: &Path| Some(free));
    }
    let part = PartRequest {
        repo: job.repo.parse().unwrap(),
        revision: None,
        branch: None,
        include: job.include,
        exclude: Vec::new(),
        head_only: false,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let began = std::time::Instant::now();
    let result = runtime.block_on(async {
        let (hub, cancel) = (Hub::new(config)?, CancelToken::new());
        let plan = hub.plan(&[part], &cancel).await?;
        hub.download(&plan, &|_| (), &cancel).await
    });
    let outcome = Outcome {
        dir: result
            .as_ref()
            .ok()
            .map(|parts| parts[0].dir.to_str().unwrap().to_owned()),
        error: result.err().map(|error| {
            (
                error.kind().to_owned(),
                format!("{error} {}", error.hint().unwrap_or_default()),
            )
        }),
        memory: most_memory(),
        seconds: began.elapsed().as_secs_f64(),
    };
    std::fs::write(out, serde_json::to_string(&outcome).unwrap()).unwrap();
}
