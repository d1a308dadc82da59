use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Row, sqlite::SqliteRow};

use super::{Error, Result, Store, chats, id, messages::json, now};
use crate::bench::{Estimate, PairHistory, comparable, conditions::machine_key, place, shared};
use crate::ipc::{Agreement, Arm, BenchReport, Call, Comparison, Measurement, Setup, SpeculationChoice, Winner};

/// Longer lists are for nobody's eyes.
const LISTED: i64 = 200;
/// The last ones of a pair that are looked through: older ones say nothing of the machine as it is.
const RECENT: i64 = 20;

/// What was measured.
#[derive(Clone, Copy)]
enum Kind {
    Comparison,
    Benchmark,
    /// One reply with automatic depth.
    Reply,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Comparison => "comparison",
            Kind::Benchmark => "benchmark",
            Kind::Reply => "reply",
        }
    }
}

/// What a measurement is found by.
struct Label<'a> {
    machine: &'a str,
    target: &'a str,
    drafter: Option<&'a str>,
    model: &'a str,
    app_version: &'a str,
    mlx_version: &'a str,
    /// The chat whose words it holds; it goes with it.
    chat_id: Option<i32>,
}

impl Store {
    /// Keeps a comparison, as long as the chat that it was made from is kept.
    pub async fn add_comparison(&self, comparison: &Comparison) -> Result<i32> {
        let identical = match &comparison.agreement {
            // Plain decoding compared with itself says nothing of speculation.
            Agreement::Identical { .. } if !comparison.on.speculating => None,
            Agreement::Identical { .. } => Some(true),
            Agreement::Different { .. } => Some(false),
            Agreement::Unknown => None,
        };
        let told = comparison.speedup.as_ref();
        let speedup = told.filter(|ratio| matches!(ratio.call, Call::Higher | Call::Lower));
        let speedup = speedup.map(|ratio| ratio.value);
        let chat_id = match comparison.message_id {
            Some(message_id) => Some(self.chat_of(message_id).await?),
            None => None,
        };
        self.keep_run(
            (Kind::Comparison, chat_id),
            &comparison.setup,
            identical,
            speedup,
            comparison,
        )
        .await
    }

    /// Keeps a benchmark.
    pub async fn add_bench(&self, report: &BenchReport) -> Result<i32> {
        // Plain decoding compared with itself says nothing of speculation.
        let is_on = |arm: &Arm| arm.figures.speculation != SpeculationChoice::Off && arm.figures.speculating;
        let checked = report.arms.iter().any(|arm| is_on(arm) && arm.checked_tokens > 0);
        let identical = checked.then(|| report.arms.iter().all(|arm| arm.differing.is_empty()));
        let speedup = match &report.winner {
            Winner::Fastest { ratio, .. } => Some(ratio.value),
            Winner::Off | Winner::Noise | Winner::Unknown => None,
        };
        self.keep_run((Kind::Benchmark, None), &report.setup, identical, speedup, report)
            .await
    }

    /// Keeps what automatic depth found out in a reply of a pair, and forgets what it did long ago.
    pub async fn add_estimate(
        &self,
        machine: &str,
        target: &str,
        drafter: Option<&str>,
        estimate: &Estimate,
    ) -> Result<()> {
        let label = Label {
            machine,
            target,
            drafter,
            model: "",
            app_version: &estimate.under.app_version,
            mlx_version: &estimate.under.mlx_version,
            chat_id: None,
        };
        self.keep(Kind::Reply, &label, None, None, estimate).await?;
        sqlx::query(
            "DELETE FROM measurements WHERE kind = ?1 AND machine = ?2 AND target = ?3 AND drafter = ?4 AND id NOT IN \
             (SELECT id FROM measurements WHERE kind = ?1 AND machine = ?2 AND target = ?3 AND drafter = ?4 \
             ORDER BY id DESC LIMIT ?5)",
        )
        .bind(Kind::Reply.name())
        .bind(machine)
        .bind(target)
        .bind(drafter.unwrap_or_default())
        .bind(RECENT)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Kept comparisons, the newest first.
    pub async fn comparisons(&self) -> Result<Vec<Measurement>> {
        self.kept(Kind::Comparison).await
    }

    /// Kept benchmarks, the newest first.
    pub async fn benches(&self) -> Result<Vec<Measurement>> {
        self.kept(Kind::Benchmark).await
    }

    /// A kept comparison.
    pub async fn comparison(&self, id: i32) -> Result<Comparison> {
        self.result(Kind::Comparison, id).await
    }

    /// A kept benchmark.
    pub async fn bench(&self, id: i32) -> Result<BenchReport> {
        self.result(Kind::Benchmark, id).await
    }

    /// Removes a comparison or benchmark with all its words and numbers.
    pub async fn remove_measurement(&self, id: i32) -> Result<()> {
        let removed = sqlx::query("DELETE FROM measurements WHERE id = ? AND kind <> ?")
            .bind(id)
            .bind(Kind::Reply.name())
            .execute(&self.pool)
            .await?;
        if removed.rows_affected() == 0 {
            return Err(Error::NoMeasurement(id));
        }
        self.shrink_log().await
    }

    /// The last whole benchmarks of the same pair, in whatever version, on the same machine before the kept one with this id;
    /// the newest first.
    pub async fn benches_before(&self, report: &BenchReport, before: Option<i32>) -> Result<Vec<BenchReport>> {
        let setup = &report.setup;
        let rows: Vec<(i64, String, String)> = sqlx::query_as(
            "SELECT id, target, drafter FROM measurements WHERE machine = ? AND kind = ? AND id < ? ORDER BY id DESC",
        )
        .bind(machine_key(&setup.before, &setup.device))
        .bind(Kind::Benchmark.name())
        .bind(before.unwrap_or(i32::MAX))
        .fetch_all(&self.pool)
        .await?;
        let pair = (
            place(&setup.target),
            place(setup.drafter.as_deref().unwrap_or_default()),
        );
        let of_pair = rows
            .into_iter()
            .filter(|(_, target, drafter)| (place(target), place(drafter)) == pair);
        let mut found = Vec::new();
        for (row, ..) in of_pair.take(RECENT as usize) {
            // One that an older version wrote in another form says nothing here, nor does one that was stopped.
            let earlier: Result<BenchReport> = self.result(Kind::Benchmark, id(row)?).await;
            found.extend(earlier.ok().filter(|earlier| comparable(earlier, report)));
        }
        Ok(found)
    }

    /// What was measured on a machine of each pair, or of all versions of one target.
    pub async fn measured_pairs(&self, machine: &str, target: Option<&str>) -> Result<Vec<PairHistory>> {
        let rows: Vec<(String, String, String, String)> = sqlx::query_as(
            "SELECT kind, target, drafter, result FROM (SELECT *, row_number() OVER \
             (PARTITION BY kind, target, drafter ORDER BY id DESC) AS place FROM measurements \
             WHERE machine = ?1 AND kind <> ?2 AND (?3 IS NULL OR substr(target, 1, length(?3)) = ?3)) WHERE place <= ?4 ORDER BY id DESC",
        )
        .bind(machine)
        .bind(Kind::Comparison.name())
        .bind(target.map(shared))
        .bind(RECENT)
        .fetch_all(&self.pool)
        .await?;
        let mut pairs: Vec<PairHistory> = Vec::new();
        for (kind, target, drafter, result) in rows {
            let drafter = Some(drafter).filter(|path| !path.is_empty());
            let place = match pairs.iter().position(|p| p.target == target && p.drafter == drafter) {
                Some(place) => place,
                None => {
                    pairs.push(PairHistory {
                        target,
                        drafter,
                        ..PairHistory::default()
                    });
                    pairs.len() - 1
                }
            };
            let Some(pair) = pairs.get_mut(place) else { continue };
            // What an older version wrote in another form says nothing here.
            if kind == Kind::Benchmark.name() {
                pair.benches.extend(json(&result));
            } else {
                pair.replies.extend(json(&result));
            }
        }
        Ok(pairs)
    }

    async fn keep_run(
        &self,
        (kind, chat_id): (Kind, Option<i32>),
        setup: &Setup,
        identical: Option<bool>,
        speedup: Option<f64>,
        result: &impl Serialize,
    ) -> Result<i32> {
        let machine = machine_key(&setup.before, &setup.device);
        let label = Label {
            machine: &machine,
            target: &setup.target,
            drafter: setup.drafter.as_deref(),
            model: &setup.model,
            app_version: &setup.app_version,
            mlx_version: &setup.mlx_version,
            chat_id,
        };
        self.keep(kind, &label, identical, speedup, result).await
    }

    async fn keep(
        &self,
        kind: Kind,
        label: &Label<'_>,
        identical: Option<bool>,
        speedup: Option<f64>,
        result: &impl Serialize,
    ) -> Result<i32> {
        let done = sqlx::query(
            "INSERT INTO measurements (kind, created_at, machine, target, drafter, model, app_version, mlx_version, \
             chat_id, identical, speedup, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(kind.name())
        .bind(now())
        .bind(label.machine)
        .bind(label.target)
        .bind(label.drafter.unwrap_or_default())
        .bind(label.model)
        .bind(label.app_version)
        .bind(label.mlx_version)
        .bind(label.chat_id)
        .bind(identical)
        .bind(speedup)
        .bind(serde_json::json!(result).to_string())
        .execute(&self.pool)
        .await?;
        id(done.last_insert_rowid())
    }

    async fn kept(&self, kind: Kind) -> Result<Vec<Measurement>> {
        sqlx::query(
            "SELECT id, created_at, model, app_version, mlx_version, identical, speedup FROM measurements \
             WHERE kind = ? ORDER BY id DESC LIMIT ?",
        )
        .bind(kind.name())
        .bind(LISTED)
        .fetch_all(&self.pool)
        .await?
        .iter()
        .map(measurement)
        .collect()
    }

    async fn result<T: DeserializeOwned>(&self, kind: Kind, id: i32) -> Result<T> {
        let text: Option<String> = sqlx::query_scalar("SELECT result FROM measurements WHERE kind = ? AND id = ?")
            .bind(kind.name())
            .bind(id)
            .fetch_optional(&self.pool)
            .await?;
        json(&text.ok_or(Error::NoMeasurement(id))?)
    }
}

fn measurement(row: &SqliteRow) -> Result<Measurement> {
    Ok(Measurement {
        id: row.try_get("id")?,
        created_at: chats::millis(row.try_get("created_at")?),
        model: row.try_get("model")?,
        app_version: row.try_get("app_version")?,
        mlx_version: row.try_get("mlx_version")?,
        identical: row.try_get("identical")?,
        speedup: row.try_get("speedup")?,
    })
}
