use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

use super::{Result, messages::json};
use crate::ipc::{ExactnessChoice, Run};

pub(super) async fn insert(db: &mut SqliteConnection, message_id: i32, run: &Run) -> Result<()> {
    sqlx::query(
        "INSERT OR REPLACE INTO runs (message_id, model, speculating, reason, block_size, prompt_tokens, tokens, \
         prefill_ms, ttft_ms, decode_ms, tokens_per_second, rounds, drafted, accepted, acceptance_rate, \
         tokens_per_round, acceptance_by_position, accepted_per_round, seed, wiring, state, sentence, exactness, \
         exactness_sentence, plain_rounds, drafted_per_round) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(message_id)
    .bind(&run.model)
    .bind(run.speculating)
    .bind(&run.reason)
    .bind(run.block_size)
    .bind(run.prompt_tokens)
    .bind(run.tokens)
    .bind(run.prefill_ms)
    .bind(run.ttft_ms)
    .bind(run.decode_ms)
    .bind(run.tokens_per_second)
    .bind(run.rounds)
    .bind(run.drafted)
    .bind(run.accepted)
    .bind(run.acceptance_rate)
    .bind(run.tokens_per_round)
    .bind(serde_json::json!(run.acceptance_by_position).to_string())
    .bind(serde_json::json!(run.accepted_per_round).to_string())
    .bind(run.seed as i64)
    .bind(&run.wiring)
    .bind(&run.state)
    .bind(&run.sentence)
    .bind(run.exactness.as_str())
    .bind(&run.exactness_sentence)
    .bind(run.plain_rounds)
    .bind(serde_json::json!(run.drafted_per_round).to_string())
    .execute(db)
    .await?;
    Ok(())
}

pub(super) fn read(row: &SqliteRow) -> Result<Run> {
    Ok(Run {
        model: row.try_get("model")?,
        speculating: row.try_get("speculating")?,
        reason: row.try_get("reason")?,
        block_size: row.try_get("block_size")?,
        wiring: row.try_get("wiring")?,
        prompt_tokens: row.try_get("prompt_tokens")?,
        tokens: row.try_get("tokens")?,
        prefill_ms: row.try_get("prefill_ms")?,
        ttft_ms: row.try_get("ttft_ms")?,
        decode_ms: row.try_get("decode_ms")?,
        tokens_per_second: row.try_get("tokens_per_second")?,
        rounds: row.try_get("rounds")?,
        drafted: row.try_get("drafted")?,
        accepted: row.try_get("accepted")?,
        acceptance_rate: row.try_get("acceptance_rate")?,
        tokens_per_round: row.try_get("tokens_per_round")?,
        acceptance_by_position: json(row.try_get("acceptance_by_position")?)?,
        accepted_per_round: json(row.try_get("accepted_per_round")?)?,
        seed: row.try_get::<i64, _>("seed")? as f64,
        state: row.try_get("state")?,
        sentence: row.try_get("sentence")?,
        exactness: ExactnessChoice::read(row.try_get("exactness")?),
        exactness_sentence: row.try_get("exactness_sentence")?,
        plain_rounds: row.try_get("plain_rounds")?,
        drafted_per_round: json(row.try_get("drafted_per_round")?)?,
    })
}
