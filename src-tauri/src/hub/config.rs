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
            disk_free: Arc::new(super::cache::disk_free),
        }
    }

    /// What the environment says, as to the hub's own clients: `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT`, `HF_TOKEN`,
    /// `HF_TOKEN_PATH`, `HF_HUB_OFFLINE`.
    #[must_use]
    pub fn from_env() -> Self {
        let mut config = HubConfig::from_variables(|name| std::env::var(name).ok());
        config.token = super::token::resolve(&config.home);
        config
    }

    /// All but the token.
    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let user = || {
            let folder = set("HOME").or_else(|| set("USERPROFILE"));
            PathBuf::from(folder.unwrap_or_else(|| ".".to_owned()))
        };
        let expand = |value: String| match value.strip_prefix("~/") {
            Some(rest) => user().join(rest),
            None => PathBuf::from(value),
        };
        let home = match (set("HF_HOME"), set("XDG_CACHE_HOME")) {
            (Some(home), _) => expand(home),
            (None, Some(cache)) => expand(cache).join("huggingface"),
            (None, None) => user().join(".cache").join("huggingface"),
        };
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        let mut config = HubConfig::at(&endpoint, &home);
        if let Some(cache) = set("HF_HUB_CACHE").or_else(|| set("HUGGINGFACE_HUB_CACHE")) {
            config.cache_dir = expand(cache);
        }
        config.offline = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].into_iter().any(|name| {
            set(name).is_some_and(|value| ["1", "on", "yes", "true"].contains(&value.to_ascii_lowercase().as_str()))
        });
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> HubConfig {
        HubConfig::from_variables(|name| {
            let pair = pairs.iter().find(|(key, _)| *key == name);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_moves_home_cache_and_endpoint() {
        let plain = with(&[("HOME", "/u")]);
        assert_eq!(plain.home, Path::new("/u/.cache/huggingface"));
        assert_eq!(plain.cache_dir, Path::new("/u/.cache/huggingface/hub"));
        assert_eq!(
            (plain.endpoint.as_str(), plain.offline),
            ("https://huggingface.co", false)
        );
        assert_eq!(
            with(&[("XDG_CACHE_HOME", "/x")]).cache_dir,
            Path::new("/x/huggingface/hub")
        );
        let both = with(&[("HF_HOME", "~/h"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/u")]);
        assert_eq!(both.cache_dir, Path::new("/u/h/hub"));
        let moved = with(&[
            ("HF_HOME", "/h"),
            ("HUGGINGFACE_HUB_CACHE", "/old"),
            ("HF_HUB_CACHE", "/new"),
        ]);
        assert_eq!(
            (moved.home.as_path(), moved.cache_dir.as_path()),
            (Path::new("/h"), Path::new("/new"))
        );
        assert_eq!(with(&[("HF_ENDPOINT", "http://hub:1/")]).endpoint, "http://hub:1");
        assert_eq!(with(&[("HF_ENDPOINT", "")]).endpoint, "https://huggingface.co");
        let offline = |value| with(&[("HF_HUB_OFFLINE", value)]).offline;
        assert!(offline("1") && offline("True") && !offline("0") && !offline(""));
    }

    #[test]
    fn a_secret_prints_as_dots() {
        let secret = Secret::new(" hf_secret\n").unwrap();
        assert_eq!(
            (secret.reveal(), format!("{secret:?}").as_str()),
            ("hf_secret", "Secret(…)")
        );
        assert!(Secret::new(" \n").is_none());
    }
}
