//! Where the hub and its cache are, and how patient to be.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Tells the free bytes of the disk that a path is on, where that can be read.
pub type DiskFree = Arc<dyn Fn(&Path) -> Option<u64> + Send + Sync>;

/// A token. It prints as dots, wherever it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A token without the blanks around it; nothing if nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Secret(text.to_owned()))
    }

    /// The token itself, for a request or the keychain.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How to reach the hub. `HubConfig::at` gives defaults, `from_env` what the environment says.
#[derive(Clone)]
pub struct HubConfig {
    /// The hub's address, without a slash at the end.
    pub endpoint: String,
    /// The cache: `models--owner--name` folders.
    pub cache_dir: PathBuf,
    /// The folder of the cache and the token file.
    pub home: PathBuf,
    /// The access token.
    pub token: Option<Secret>,
    /// Never touches the network.
    pub offline: bool,
    /// Files at a time.
    pub concurrency: usize,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long an answer's first byte, or no byte at all, may take.
    pub stall: Duration,
    /// Bytes a second below which a connection is given up, measured over `floor_window`; 0 for none.
    pub floor: u64,
    /// Over how long the floor is measured.
    pub floor_window: Duration,
    /// Failures in a row, without a new byte between, after which a file is given up. Waiting for the network is not counted.
    pub retries: u32,
    /// The first wait between two tries; it doubles.
    pub backoff: Duration,
    /// The longest of these waits.
    pub backoff_max: Duration,
    /// The longest wait that a hub may ask for; longer ones are an error.
    pub max_wait: Duration,
    /// How long to wait for a network that is gone.
    pub network_wait: Duration,
    /// What the requests say they come from.
    pub user_agent: String,
    /// Asks the disk.
    pub disk_free: DiskFree,
}

impl HubConfig {
    /// The defaults for a hub and a home folder; no token.
    #[must_use]
    pub fn at(endpoint: &str, home: &Path) -> Self {
        HubConfig {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            cache_dir: home.join("hub"),
            home: home.to_owned(),
            token: None,
            offline: false,
            concurrency: 4,
            connect_timeout: Duration::from_secs(10),
            stall: Duration::from_secs(20),
            floor: 1024,
            floor_window: Duration::from_secs(60),
            retries: 5,
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            max_wait: Duration::from_secs(10 * 60),
            network_wait: Duration::from_secs(24 * 60 * 60),
            user_agent: format!("slipstream/{}", env!("CARGO_PKG_VERSION")),
            disk_free: Arc::new(|_path| None),
        }
    }

    /// What the environment says, as for the hub's own clients: `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`, `HF_TOKEN`,
    /// `HF_TOKEN_PATH`, `HF_HUB_OFFLINE`.
    #[must_use]
    pub fn from_env() -> Self {
        HubConfig::at("https://huggingface.co", Path::new("."))
    }
}
