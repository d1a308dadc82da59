//! A reply that broke off goes on as if it had not.

use models::GenerateRequest;

use crate::error::Error;
use crate::ipc::{KvChoice, Run, Thought, TurnOptions};
use crate::store::{Begun, Continued};

/// Sampling as it was; speculation and the token limit, which change no word of the text, as they are asked for now.
pub(super) fn options(continued: Option<&Continued>, asked: &TurnOptions) -> TurnOptions {
    match continued {
        Some(continued) => TurnOptions {
            speculation: asked.speculation,
            max_tokens: asked.max_tokens,
            ..continued.made.options.clone()
        },
        None => asked.clone(),
    }
}

/// Adds what there is of the reply. Ids of another model mean something else, and keys and values held otherwise lead
/// elsewhere.
pub(super) fn prepare(begun: &Begun, model: &str, kv: KvChoice, request: &mut GenerateRequest) -> Result<(), Error> {
    if let Some(continued) = &begun.continued {
        if continued.made.model != model {
            return Err(Error::OtherModel {
                model: continued.made.model.clone(),
            });
        }
        if continued.made.kv != kv {
            return Err(Error::OtherKv {
                held: continued.made.kv.words(),
            });
        }
        request.continued = continued.tokens.clone();
    }
    Ok(())
}

/// The figures of a reply's two parts as one. Its tokens are counted whole by the engine.
pub(super) fn joined(before: &Run, now: Run) -> Run {
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    let decode_ms = before.decode_ms + now.decode_ms;
    let (rounds, drafted) = (before.rounds + now.rounds, before.drafted + now.drafted);
    let accepted = before.accepted + now.accepted;
    let timed = before.tokens_per_second * before.decode_ms + now.tokens_per_second * now.decode_ms;
    let all_rounds = |run: &Run| f64::from(run.rounds + run.plain_rounds);
    let in_rounds = before.tokens_per_round * all_rounds(before) + now.tokens_per_round * all_rounds(&now);
    let positions = before
        .acceptance_by_position
        .len()
        .max(now.acceptance_by_position.len());
    let by_position = |at: usize| {
        let [a, b] = [before, &now].map(|run| position(run, at));
        ratio(a.0 + b.0, a.1 + b.1)
    };
    Run {
        speculating: before.speculating || now.speculating,
        block_size: before.block_size.max(now.block_size),
        prefill_ms: before.prefill_ms,
        ttft_ms: before.ttft_ms,
        decode_ms,
        tokens_per_second: ratio(timed, decode_ms),
        rounds,
        plain_rounds: before.plain_rounds + now.plain_rounds,
        drafted,
        accepted,
        acceptance_rate: ratio(f64::from(accepted), f64::from(drafted)),
        tokens_per_round: ratio(in_rounds, all_rounds(before) + all_rounds(&now)),
        acceptance_by_position: (0..positions).map(by_position).collect(),
        accepted_per_round: [before.accepted_per_round.as_slice(), &now.accepted_per_round].concat(),
        drafted_per_round: [before.drafted_per_round.as_slice(), &now.drafted_per_round].concat(),
        ..now
    }
}

/// The thinking of a reply's two parts as one. Its tokens are counted whole by the engine, its time is not.
pub(super) fn thought(before: Option<&Thought>, now: Thought) -> Thought {
    match before {
        Some(before) => Thought {
            ms: before.ms + now.ms,
            ended: before.ended.clone().or(now.ended),
            ..now
        },
        None => now,
    }
}

/// Drafts kept and made at a position, as far as the shares tell.
fn position(run: &Run, at: usize) -> (f64, f64) {
    let kept = run.accepted_per_round.iter().filter(|&&n| n as usize > at).count() as f64;
    match run.acceptance_by_position.get(at) {
        Some(share) if *share > 0.0 => (kept, kept / share),
        Some(_) => (0.0, f64::from(run.rounds)),
        None => (0.0, 0.0),
    }
}
