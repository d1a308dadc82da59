//! The state of loading as the window shows it.

use models::{DrafterState, Exactness, exactness_sentence};

use super::{Ready, State};
use crate::ipc::{ModelStatus, RowCost, SamplingDefaults, Speculating};
use crate::turn::count;

impl From<&State> for ModelStatus {
    fn from(state: &State) -> Self {
        match state {
            State::None => ModelStatus::None,
            State::Loading(model) => ModelStatus::Loading { model: model.clone() },
            State::Failed(model, error) => ModelStatus::Failed {
                model: model.clone(),
                error: error.clone(),
            },
            State::Ready(ready) => described(ready),
        }
    }
}

fn described(ready: &Ready) -> ModelStatus {
    let Ready {
        model,
        loaded,
        mismatch,
        kv,
        ..
    } = ready;
    let (speculating, speculation_note, block_size) = match (&loaded.drafter, mismatch) {
        (DrafterState::Ready { source, block_size }, None) => (Speculating::Ready, source.clone(), *block_size),
        // The model's own head took over.
        (DrafterState::Ready { source, block_size }, Some(error)) => {
            let note = format!("{source}; not the one that was asked for: {}", error.message);
            (Speculating::Ready, note, *block_size)
        }
        (DrafterState::Unavailable { .. }, Some(error)) => (Speculating::Mismatch, error.message.clone(), 1),
        (DrafterState::Unavailable { reason }, None) => (Speculating::Unavailable, reason.clone(), 1),
    };
    let check = loaded.self_check.as_ref();
    let apart = check
        .into_iter()
        .flat_map(|c| c.ops.iter().filter(|op| !op.is_native()));
    let costs = loaded.costs.as_ref();
    let rows = costs.into_iter().flat_map(|c| {
        c.verify_ms.iter().map(|&(rows, ms)| RowCost {
            rows: count(rows),
            ms,
            ratio: c.ratio(rows),
        })
    });
    ModelStatus::Ready {
        model: model.clone(),
        family: loaded.family.clone(),
        can_speculate: speculating == Speculating::Ready,
        speculating,
        speculation_note,
        exactness_note: exactness_sentence(check, Exactness::Exact),
        in_parts: apart.map(|op| op.op.clone()).collect(),
        exact_block: check.map_or(1, |check| count(check.block)),
        auto_depth: count(loaded.auto_depth),
        costs: rows.collect(),
        draft_ms: costs.map(|costs| costs.draft_ms),
        default_block_size: count(block_size),
        can_think: loaded.can_think,
        context: count(loaded.context),
        device: loaded.device.to_owned(),
        dtype: loaded.dtype.to_owned(),
        load_ms: loaded.load_ms,
        memory_bytes: loaded.memory_bytes as f64,
        kv: *kv,
        warnings: loaded.warnings.clone(),
        defaults: SamplingDefaults {
            temperature: as_written(loaded.defaults.temperature),
            top_p: as_written(loaded.defaults.top_p),
            top_k: count(loaded.defaults.top_k),
            min_p: as_written(loaded.defaults.min_p),
        },
    }
}

/// 0.7 stays 0.7 and does not become 0.699999988079071.
fn as_written(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| value.into())
}
