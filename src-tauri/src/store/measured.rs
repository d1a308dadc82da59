use models::{Loaded, Measured};
use serde::{Serialize, de::DeserializeOwned};

use super::{Result, Store, now};

/// Entries of each kind that are kept: updates leave some behind that no key finds again.
const KEPT: i64 = 200;

impl Store {
    /// What earlier loads measured on this machine. What cannot be read is measured anew.
    pub async fn measured(&self) -> Result<Measured> {
        Ok(Measured {
            self_checks: self.measured_of("self_check").await?,
            costs: self.measured_of("costs").await?,
        })
    }

    /// Keeps what a load measured.
    pub async fn keep_measured(&self, loaded: &Loaded) -> Result<()> {
        if let Some(check) = &loaded.self_check {
            self.keep_one("self_check", &loaded.check_key, check).await?;
        }
        if let Some(costs) = &loaded.costs {
            self.keep_one("costs", &loaded.costs_key, costs).await?;
        }
        Ok(())
    }

    /// Forgets a self-check that does not hold any more: the next load measures it anew.
    pub async fn forget_self_check(&self, key: &str) -> Result<()> {
        sqlx::query("DELETE FROM measured WHERE kind = 'self_check' AND key = ?")
            .bind(key)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    async fn measured_of<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<(String, T)>> {
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT key, value FROM measured WHERE kind = ?")
            .bind(kind)
            .fetch_all(&self.pool)
            .await?;
        let read = |(key, value): (String, String)| Some((key, serde_json::from_str(&value).ok()?));
        Ok(rows.into_iter().filter_map(read).collect())
    }

    async fn keep_one<T: Serialize>(&self, kind: &str, key: &str, value: &T) -> Result<()> {
        let value = serde_json::to_string(value).unwrap_or_default();
        sqlx::query(
            "INSERT INTO measured (kind, key, value, measured_at) VALUES (?, ?, ?, ?) \
             ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, measured_at = excluded.measured_at",
        )
        .bind(kind)
        .bind(key)
        .bind(value)
        .bind(now())
        .execute(&self.pool)
        .await?;
        sqlx::query(
            "DELETE FROM measured WHERE kind = ? AND key NOT IN \
             (SELECT key FROM measured WHERE kind = ? ORDER BY measured_at DESC LIMIT ?)",
        )
        .bind(kind)
        .bind(kind)
        .bind(KEPT)
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
