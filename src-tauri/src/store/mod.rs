//! History and settings in one SQLite file. Several processes may use it at the same time: the
//! window and a terminal chat.

mod bench;
mod branches;
mod chats;
mod error;
mod measured;
mod messages;
mod origin;
mod owner;
mod reply;
mod runs;
mod search;
mod settings;
mod transfer;
mod trash;
mod turns;
mod wirings;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, Transaction, migrate::MigrateError};

pub use error::{Error, Result};
pub use reply::{Begun, Continued, Ending, Made, Resume};
pub use settings::RememberedModel;

use owner::Owner;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// How long one process waits for another's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The open database; clones share it.
#[derive(Clone)]
pub struct Store {
    pool: SqlitePool,
    owner: std::sync::Arc<Owner>,
}

impl Store {
    /// Opens `history.db` in `dir`, makes it if it is not there, and marks replies that a dead
    /// process left unfinished.
    pub async fn open(dir: &Path) -> Result<Self> {
        let dir = dir.to_owned();
        let (owner, guard) = {
            let dir = dir.clone();
            blocking(move || -> Result<_> {
                std::fs::create_dir_all(&dir).map_err(|source| Error::folder(&dir, source))?;
                // One process at a time sets up: migrations of two would collide, and a lock file
                // just made must not look abandoned.
                let guard = owner::setup_lock(&dir)?;
                Ok((Owner::new(&dir)?, guard))
            })
            .await?
        };
        let options = SqliteConnectOptions::new()
            .filename(dir.join("history.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A commit is on disk when it returns: a message outlives a power cut too.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            // A deleted chat is gone from the file, not only from sight.
            .pragma("secure_delete", "on")
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_with(options)
            .await?;
        let store = Store {
            pool,
            owner: std::sync::Arc::new(owner),
        };
        MIGRATIONS.run(&store.pool).await.map_err(|error| match error {
            MigrateError::VersionMissing(found) => Error::Newer {
                path: dir.join("history.db"),
                found,
            },
            other => Error::Migration(other),
        })?;
        store.mark_interrupted().await?;
        store.purge_old().await?;
        store.owner.clear_abandoned();
        drop(guard);
        Ok(store)
    }

    /// Closes all connections; what is stored is on disk already.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A transaction that may write: it takes the write lock at once, since upgrading a read one
    /// fails when another process wrote in between.
    async fn write(&self) -> Result<Transaction<'static, Sqlite>> {
        Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?)
    }
}

/// The environment variable that names another data folder.
pub const DATA_DIR: &str = "SLIPSTREAM_DATA_DIR";

/// The data folder: that of [`DATA_DIR`], else the platform's own place for this app.
#[must_use]
pub fn data_dir() -> Option<PathBuf> {
    match std::env::var_os(DATA_DIR) {
        Some(dir) if !dir.is_empty() => Some(PathBuf::from(dir)),
        _ => dirs::data_dir().map(|dir| dir.join(crate::IDENTIFIER)),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::Task(error.to_string())))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn id(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::Damaged {
        what: format!("id {value} is out of range"),
    })
}
