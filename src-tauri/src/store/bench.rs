use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Row, sqlite::SqliteRow};

use super::{Error, Result, Store, chats, id, messages::json, now};
use crate::bench::{Estimate, PairHistory, comparable, conditions::machine_key};
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
}

impl Store {
    /// Keeps a comparison.
    pub async fn add_comparison(&self, comparison: &Comparison) -> Result<i32> {
        let identical = match &comparison.agreement {
            Agreement::Identical { .. } => Some(true),
            Agreement::Different { .. } => Some(false),
            Agreement::Unknown => None,
        };
        let told = comparison.speedup.as_ref();
        let speedup = told.filter(|ratio| matches!(ratio.call, Call::Higher | Call::Lower));
        let speedup = speedup.map(|ratio| ratio.value);
        self.keep_run(Kind::Comparison, &comparison.setup, identical, speedup, comparison)
            .await
    }

    /// Keeps a benchmark.
    pub async fn add_bench(&self, report: &BenchReport) -> Result<i32> {
        // Plain decoding compared with itself says nothing of speculation.
        let is_on = |arm: &Arm| arm.figures.speculation != SpeculationChoice::Off;
        let checked = report.arms.iter().any(|arm| is_on(arm) && arm.checked_tokens > 0);
        let identical = checked.then(|| report.arms.iter().all(|arm| arm.differing.is_empty()));
        let speedup = match &report.winner {
            Winner::Fastest { ratio, .. } => Some(ratio.value),
            Winner::Off | Winner::Noise | Winner::Unknown => None,
        };
        self.keep_run(Kind::Benchmark, &report.setup, identical, speedup, report)
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

    /// The last whole benchmark of the same pair on the same machine, before the kept one with this id.
    pub async fn bench_before(&self, report: &BenchReport, before: Option<i32>) -> Result<Option<BenchReport>> {
        let setup = &report.setup;
        let rows: Vec<String> = sqlx::query_scalar(
            "SELECT result FROM measurements WHERE machine = ? AND kind = ? AND target = ? AND drafter = ? AND id < ? \
             ORDER BY id DESC LIMIT ?",
        )
        .bind(machine_key(&setup.before, &setup.device))
        .bind(Kind::Benchmark.name())
        .bind(&setup.target)
        .bind(setup.drafter.as_deref().unwrap_or_default())
        .bind(before.unwrap_or(i32::MAX))
        .bind(RECENT)
        .fetch_all(&self.pool)
        .await?;
        // One that an older version wrote in another form says nothing here, nor does one that was stopped.
        let known = rows.iter().filter_map(|text| json::<BenchReport>(text).ok());
        Ok(known.into_iter().find(|earlier| comparable(earlier, report)))
    }

    /// What was measured on a machine of each pair, or of one target.
    pub async fn measured_pairs(&self, machine: &str, target: Option<&str>) -> Result<Vec<PairHistory>> {
        let rows: Vec<(String, String, String, String)> = sqlx::query_as(
            "SELECT kind, target, drafter, result FROM (SELECT *, row_number() OVER \
             (PARTITION BY kind, target, drafter ORDER BY id DESC) AS place FROM measurements \
             WHERE machine = ?1 AND kind <> ?2 AND (?3 IS NULL OR target = ?3)) WHERE place <= ?4 ORDER BY id DESC",
        )
        .bind(machine)
        .bind(Kind::Comparison.name())
        .bind(target)
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
        kind: Kind,
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
             identical, speedup, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(kind.name())
        .bind(now())
        .bind(label.machine)
        .bind(label.target)
        .bind(label.drafter.unwrap_or_default())
        .bind(label.model)
        .bind(label.app_version)
        .bind(label.mlx_version)
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
