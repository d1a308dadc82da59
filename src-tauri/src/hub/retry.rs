//! When to try again, and when to give up. Pure but for its dice.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use super::{HubConfig, HubError};

/// New bytes after which earlier failures are forgiven; less could go on for ever on a connection that breaks at once.
const FORGIVEN_AFTER: u64 = 64 * 1024;
/// The longest pause between two looks for a network that is gone: asking costs nothing then.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long a file host may be out of reach while the hub is not.
const FILE_HOST_WAIT: Duration = Duration::from_secs(5 * 60);

/// How a try failed that may go well another time.
#[derive(Debug)]
pub(super) struct Miss {
    /// What to say if it never does.
    pub(super) error: HubError,
    /// How long the hub asks to wait.
    pub(super) wait: Option<Duration>,
    /// Who cannot be reached at all.
    pub(super) gone: Option<Gone>,
}

/// Who cannot be reached at all: the connection itself fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// The hub: then there is no network.
    Hub,
    /// A file host, while the hub answered a moment ago: the network may just have gone, or the host is blocked.
    FileHost,
}

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(super) struct Patience {
    failures: u32,
    moved: u64,
    gone_since: Option<Instant>,
    looks: u32,
}

impl Patience {
    /// So many bytes came; none is no news.
    pub(super) fn moved(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.gone_since = None;
        self.looks = 0;
        self.moved += bytes;
        if self.moved >= FORGIVEN_AFTER {
            self.moved = 0;
            self.failures = 0;
        }
    }

    /// How long to wait before the next try, or the error that ends it.
    pub(super) fn missed(&mut self, config: &HubConfig, miss: Miss) -> Result<Duration, HubError> {
        if let Some(gone) = miss.gone {
            let since = *self.gone_since.get_or_insert_with(Instant::now);
            let most = match gone {
                Gone::Hub => config.network_wait,
                Gone::FileHost => config.network_wait.min(FILE_HOST_WAIT),
            };
            if since.elapsed() >= most {
                return Err(miss.error);
            }
            let pause = backoff(config.backoff, config.backoff_max.min(LOOK_AGAIN), self.looks, dice());
            self.looks += 1;
            return Ok(pause);
        }
        self.gone_since = None;
        self.looks = 0;
        if self.failures >= config.retries {
            return Err(miss.error);
        }
        let pause = backoff(config.backoff, config.backoff_max, self.failures, dice());
        self.failures += 1;
        match miss.wait {
            Some(asked) if asked > config.max_wait => Err(HubError::RateLimited {
                seconds: asked.as_secs(),
            }),
            // Never earlier than asked, and not all clients at the same moment.
            Some(asked) => {
                Ok(asked + (asked / 20).min(Duration::from_secs(1)).mul_f64(dice()) + Duration::from_millis(5))
            }
            None => Ok(pause),
        }
    }
}

/// The wait after so many failures: doubled each time up to a limit, and between half of that and the whole by `dice`.
pub(super) fn backoff(base: Duration, most: Duration, failures: u32, dice: f64) -> Duration {
    let doubled = base.saturating_mul(2_u32.saturating_pow(failures));
    doubled.min(most).mul_f64(0.5 + dice / 2.0)
}

/// From 0 to 1. Spreads clients; nothing depends on its quality.
pub(super) fn dice() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    random as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config() -> HubConfig {
        HubConfig {
            retries: 3,
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(5),
            max_wait: Duration::from_secs(60),
            network_wait: Duration::from_secs(3600),
            ..HubConfig::at("http://hub", Path::new("/nowhere"))
        }
    }

    fn miss() -> Miss {
        Miss {
            error: HubError::Server {
                what: "f".to_owned(),
                status: 503,
            },
            wait: None,
            gone: None,
        }
    }

    fn away() -> Miss {
        let gone = Some(Gone::Hub);
        Miss { gone, ..miss() }
    }

    #[test]
    fn waits_double_up_to_a_limit_with_jitter() {
        let (base, most) = (Duration::from_secs(1), Duration::from_secs(5));
        let at = |n, dice| backoff(base, most, n, dice).as_secs_f64();
        assert_eq!([at(0, 1.0), at(1, 1.0), at(2, 1.0), at(3, 1.0)], [1.0, 2.0, 4.0, 5.0]);
        assert_eq!([at(0, 0.0), at(1, 0.0), at(40, 0.0)], [0.5, 1.0, 2.5]);
        let rolls: Vec<f64> = (0..50).map(|_| dice()).collect();
        assert!(rolls.iter().all(|roll| (0.0..=1.0).contains(roll)));
        assert!(rolls.iter().any(|roll| *roll < 0.5) && rolls.iter().any(|roll| *roll > 0.5));
    }

    #[test]
    fn failures_in_a_row_end_it_and_new_bytes_forgive_them() {
        let config = config();
        let mut patience = Patience::default();
        for _ in 0..3 {
            patience.missed(&config, miss()).unwrap();
        }
        assert_eq!(patience.missed(&config, miss()).unwrap_err().kind(), "server");
        patience.moved(1000);
        assert!(patience.missed(&config, miss()).is_err());
        patience.moved(FORGIVEN_AFTER);
        assert!(patience.missed(&config, miss()).is_ok());
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_unless_it_is_too_long() {
        let config = config();
        let asked = |seconds| {
            let wait = Some(Duration::from_secs(seconds));
            Patience::default().missed(&config, Miss { wait, ..miss() })
        };
        let pause = asked(40).unwrap();
        assert!((40.0..=41.1).contains(&pause.as_secs_f64()), "{pause:?}");
        assert_eq!(asked(61).unwrap_err(), HubError::RateLimited { seconds: 61 });
    }

    #[test]
    fn a_network_that_is_gone_is_waited_for_without_counting() {
        let config = config();
        let mut patience = Patience::default();
        for _ in 0..30 {
            let pause = patience.missed(&config, away()).unwrap();
            assert!(pause <= LOOK_AGAIN);
        }
        let short = HubConfig {
            network_wait: Duration::from_millis(20),
            ..config
        };
        let mut patience = Patience::default();
        assert!(patience.missed(&short, away()).is_ok());
        std::thread::sleep(Duration::from_millis(30));
        patience.moved(0);
        assert!(patience.missed(&short, away()).is_err(), "no byte came between");
        patience.moved(1);
        assert!(patience.missed(&short, away()).is_ok(), "one did");
    }
}
