use models::WiringTally;

use super::{Result, Store};
use crate::ipc::Run;

impl Store {
    /// What was measured of a pair's wirings. `drafter` is `None` for the target's own head.
    pub async fn wirings(&self, target: &str, drafter: Option<&str>) -> Result<Vec<WiringTally>> {
        let rows: Vec<(String, i64, i64, i64)> =
            sqlx::query_as("SELECT name, rounds, drafted, accepted FROM wirings WHERE target = ? AND drafter = ?")
                .bind(target)
                .bind(drafter.unwrap_or_default())
                .fetch_all(&self.pool)
                .await?;
        let size = |n: i64| usize::try_from(n).unwrap_or_default();
        let tally = |(name, rounds, drafted, accepted)| WiringTally {
            name,
            rounds: size(rounds),
            drafted: size(drafted),
            accepted: size(accepted),
        };
        Ok(rows.into_iter().map(tally).collect())
    }

    /// Adds what one reply measured, if its drafter had a choice of wirings.
    pub async fn add_wiring(&self, target: &str, drafter: Option<&str>, run: &Run) -> Result<()> {
        let Some(wiring) = &run.wiring else { return Ok(()) };
        sqlx::query(
            "INSERT INTO wirings (target, drafter, name, rounds, drafted, accepted) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (target, drafter, name) DO UPDATE SET rounds = rounds + excluded.rounds, \
             drafted = drafted + excluded.drafted, accepted = accepted + excluded.accepted",
        )
        .bind(target)
        .bind(drafter.unwrap_or_default())
        .bind(wiring)
        .bind(run.rounds)
        .bind(run.drafted)
        .bind(run.accepted)
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
