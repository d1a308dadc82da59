use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Row, sqlite::SqliteRow};

use super::{Error, Result, Store, chats, id, messages::json, now};
use crate::bench::{comparable, conditions::machine_key};
use crate::ipc::{Agreement, Arm, BenchReport, Call, Comparison, Measurement, Setup, SpeculationChoice, Winner};

/// Longer lists are for nobody's eyes.
const LISTED: i64 = 200;

/// The two kinds of measurements, by their tables.
#[derive(Clone, Copy)]
enum Table {
    Comparisons,
    Benches,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Comparisons => "comparisons",
            Table::Benches => "benches",
        }
    }
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
        self.keep(Table::Comparisons, &comparison.setup, identical, speedup, comparison)
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
        self.keep(Table::Benches, &report.setup, identical, speedup, report)
            .await
    }

    /// Kept comparisons, the newest first.
    pub async fn comparisons(&self) -> Result<Vec<Measurement>> {
        self.kept(Table::Comparisons).await
    }

    /// Kept benchmarks, the newest first.
    pub async fn benches(&self) -> Result<Vec<Measurement>> {
        self.kept(Table::Benches).await
    }

    /// A kept comparison.
    pub async fn comparison(&self, id: i32) -> Result<Comparison> {
        self.result(Table::Comparisons, id).await
    }

    /// A kept benchmark.
    pub async fn bench(&self, id: i32) -> Result<BenchReport> {
        self.result(Table::Benches, id).await
    }

    /// The last whole benchmark of the same pair on the same machine, before the kept one with this id.
    pub async fn bench_before(&self, report: &BenchReport, before: Option<i32>) -> Result<Option<BenchReport>> {
        let setup = &report.setup;
        let rows: Vec<String> = sqlx::query_scalar(
            "SELECT result FROM benches WHERE machine = ? AND target = ? AND drafter = ? AND id < ? \
             ORDER BY id DESC LIMIT 20",
        )
        .bind(machine_key(&setup.before, &setup.device))
        .bind(&setup.target)
        .bind(setup.drafter.as_deref().unwrap_or_default())
        .bind(before.unwrap_or(i32::MAX))
        .fetch_all(&self.pool)
        .await?;
        // One that an older version wrote in another form says nothing here, nor does one that was stopped.
        let known = rows.iter().filter_map(|text| json::<BenchReport>(text).ok());
        Ok(known.into_iter().find(|earlier| comparable(earlier, report)))
    }

    async fn keep(
        &self,
        table: Table,
        setup: &Setup,
        identical: Option<bool>,
        speedup: Option<f64>,
        result: &impl Serialize,
    ) -> Result<i32> {
        let query = sqlx::AssertSqlSafe(format!(
            "INSERT INTO {} (created_at, machine, target, drafter, model, app_version, mlx_version, identical, speedup, \
             result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            table.name()
        ));
        let done = sqlx::query(query)
            .bind(now())
            .bind(machine_key(&setup.before, &setup.device))
            .bind(&setup.target)
            .bind(setup.drafter.as_deref().unwrap_or_default())
            .bind(&setup.model)
            .bind(&setup.app_version)
            .bind(&setup.mlx_version)
            .bind(identical)
            .bind(speedup)
            .bind(serde_json::json!(result).to_string())
            .execute(&self.pool)
            .await?;
        id(done.last_insert_rowid())
    }

    async fn kept(&self, table: Table) -> Result<Vec<Measurement>> {
        let query = sqlx::AssertSqlSafe(format!(
            "SELECT id, created_at, model, app_version, mlx_version, identical, speedup FROM {} ORDER BY id DESC LIMIT ?",
            table.name()
        ));
        sqlx::query(query)
            .bind(LISTED)
            .fetch_all(&self.pool)
            .await?
            .iter()
            .map(measurement)
            .collect()
    }

    async fn result<T: DeserializeOwned>(&self, table: Table, id: i32) -> Result<T> {
        let query = sqlx::AssertSqlSafe(format!("SELECT result FROM {} WHERE id = ?", table.name()));
        let text: Option<String> = sqlx::query_scalar(query).bind(id).fetch_optional(&self.pool).await?;
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
