//! One measured run of a request.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use models::{
    Acceptance, Engine, Exactness, FinishReason, GenerateRequest, Generated, GenerationEvent, Loaded, Margin,
    SelfCheck, Sink, Speculation,
};

use super::conditions;
use super::stats::{median, sorted, spread};
use crate::ipc::{Conditions, ContextAcceptance, Cost, LocalModel, MeasuredRun, Setup, SideFigures, SpeculationChoice};
use crate::turn::{Stop, count};

/// Runs requests and answers what they leave open: the engine, or in tests one that is wrong on purpose.
pub trait Runner {
    /// As [`Engine::generate`].
    fn generate(&self, request: GenerateRequest, sink: Box<dyn Sink>) -> models::Result<Generated>;
    /// As [`Engine::margin`].
    fn margin(&self, request: GenerateRequest, before: Vec<u32>) -> models::Result<Margin>;
    /// As [`Engine::self_check`].
    fn self_check(&self) -> models::Result<SelfCheck>;
    /// As [`Engine::spell`].
    fn spell(&self, ids: Vec<u32>) -> models::Result<String>;
}

impl Runner for Engine {
    fn generate(&self, request: GenerateRequest, sink: Box<dyn Sink>) -> models::Result<Generated> {
        Engine::generate(self, request, sink)
    }

    fn margin(&self, request: GenerateRequest, before: Vec<u32>) -> models::Result<Margin> {
        Engine::margin(self, request, before)
    }

    fn self_check(&self) -> models::Result<SelfCheck> {
        Engine::self_check(self)
    }

    fn spell(&self, ids: Vec<u32>) -> models::Result<String> {
        Engine::spell(self, ids)
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What the person knows it as.
    pub model: &'a LocalModel,
    /// What the engine says of it.
    pub loaded: &'a Loaded,
}

impl Subject<'_> {
    /// Its surroundings, as they are now; those after are filled in by [`finish`].
    pub(super) fn setup(&self, exactness: Exactness) -> Setup {
        let loaded = self.loaded;
        Setup {
            started_at: conditions::now(),
            app_version: env!("CARGO_PKG_VERSION").to_owned(),
            mlx_version: models::mlx_version(),
            model: self.model.name.clone(),
            target: self.model.path.clone(),
            drafter: self.model.drafter_path.clone(),
            check_key: loaded.check_key.clone(),
            device: loaded.device.to_owned(),
            dtype: loaded.dtype.to_owned(),
            exactness: exactness.as_str().to_owned(),
            in_parts: self.in_parts(),
            before: conditions::read(),
            after: Conditions::default(),
        }
    }

    /// Operations that do not give a block the bits of single rows when they run at once.
    pub(super) fn in_parts(&self) -> Vec<String> {
        let checked = self.loaded.self_check.iter().flat_map(|check| &check.ops);
        checked.filter(|op| !op.is_native()).map(|op| op.op.clone()).collect()
    }
}

/// Notes the machine's state after the last run.
pub(super) fn finish(setup: &mut Setup) {
    setup.after = conditions::read();
}

/// One round, as it was seen to come.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Milliseconds since the round before; the first has none.
    ms: Option<f64>,
    drafted: usize,
    accepted: usize,
    /// Tokens of the sequence before it.
    length: usize,
}

/// A run and its rounds.
pub(super) struct Measured {
    pub(super) generated: Generated,
    rounds: Vec<Seen>,
}

impl Measured {
    /// Whether it ran to its own end.
    pub(super) fn is_whole(&self) -> bool {
        self.generated.finish != FinishReason::Cancelled
    }

    pub(super) fn record(
        &self,
        prompt: Option<&str>,
        speculation: SpeculationChoice,
        repetition: usize,
        order: usize,
    ) -> MeasuredRun {
        let stats = &self.generated.stats;
        let speculation_stats = &stats.speculation;
        MeasuredRun {
            prompt: prompt.map(str::to_owned),
            speculation,
            repetition: count(repetition),
            order: count(order),
            prompt_tokens: count(stats.prompt_tokens),
            tokens: count(stats.tokens),
            prefill_ms: stats.prefill_ms,
            ttft_ms: stats.ttft_ms,
            decode_ms: stats.decode_ms,
            tokens_per_second: stats.decode_tokens_per_second,
            rounds: count(speculation_stats.rounds),
            drafted: count(speculation_stats.drafted),
            accepted: count(speculation_stats.accepted),
        }
    }
}

/// The request with a side's speculation, alone with itself: nothing read before helps it, and the text is the target's.
pub(super) fn prepared(request: &GenerateRequest, speculation: Speculation) -> GenerateRequest {
    GenerateRequest {
        speculation,
        accept: Acceptance::Equality,
        fresh: true,
        ..request.clone()
    }
}

/// Hears a run's events on the engine's thread.
pub(super) type Hear = Box<dyn FnMut(&GenerationEvent) + Send>;

/// Runs a request and times its rounds; a stop takes hold within one of them.
pub(super) fn measure(
    runner: &dyn Runner,
    request: GenerateRequest,
    stop: &Arc<Stop>,
    mut hear: Hear,
) -> models::Result<Measured> {
    let rounds: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let (seen, stop) = (rounds.clone(), stop.clone());
    let mut last: Option<Instant> = None;
    let mut length = None;
    let sink = move |event: GenerationEvent| {
        if let GenerationEvent::Round { round, stats, .. } = &event {
            let now = Instant::now();
            let before = *length.get_or_insert(stats.prompt_tokens);
            length = Some(before + round.tokens.len());
            if round.said {
                // Nothing was drafted or chosen; the next round has its time in it.
                last = None;
                hear(&event);
                return flow(&stop);
            }
            let one = Seen {
                ms: last.map(|last| now.duration_since(last).as_secs_f64() * 1e3),
                drafted: round.drafted,
                accepted: round.accepted,
                length: before,
            };
            last = Some(now);
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        }
        hear(&event);
        flow(&stop)
    };
    let generated = runner.generate(request, Box::new(sink))?;
    let mut rounds = std::mem::take(&mut *rounds.lock().unwrap_or_else(PoisonError::into_inner));
    // The last one may have been cut by the end: its drafts behind that were neither right nor wrong.
    rounds.pop();
    Ok(Measured { generated, rounds })
}

fn flow(stop: &Stop) -> ControlFlow<()> {
    if stop.is_requested() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// What rounds cost by the number of their rows. Fewer than three are not told.
pub(super) fn costs<'a>(runs: impl Iterator<Item = &'a Measured>) -> Vec<Cost> {
    let mut by_rows: std::collections::BTreeMap<usize, Vec<f64>> = std::collections::BTreeMap::new();
    for round in runs.flat_map(|run| &run.rounds) {
        if let Some(ms) = round.ms {
            by_rows.entry(round.drafted + 1).or_default().push(ms);
        }
    }
    by_rows.retain(|_, times| times.len() >= 3);
    let middle = |times: &Vec<f64>| median(&sorted(times)).filter(|ms| *ms > 0.0);
    let single = by_rows.get(&1).and_then(middle);
    let all = by_rows.iter().filter_map(|(rows, times)| {
        let ms = middle(times)?;
        Some(Cost {
            rows: count(*rows),
            rounds: count(times.len()),
            ms,
            ratio: single.map(|single| ms / single),
        })
    });
    all.collect()
}

/// Acceptance by the length of the sequence, in steps that double.
pub(super) fn by_context<'a>(runs: impl Iterator<Item = &'a Measured>) -> Vec<ContextAcceptance> {
    let mut steps: Vec<ContextAcceptance> = Vec::new();
    for round in runs.flat_map(|run| &run.rounds).filter(|round| round.drafted > 0) {
        let to = (round.length + 1).next_power_of_two().max(128);
        let from = if to == 128 { 0 } else { to / 2 };
        let (from, to) = (count(from), count(to));
        let place = match steps.iter().position(|step| step.to == to) {
            Some(place) => place,
            None => {
                steps.push(ContextAcceptance {
                    from,
                    to,
                    drafted: 0,
                    accepted: 0,
                });
                steps.len() - 1
            }
        };
        if let Some(step) = steps.get_mut(place) {
            step.drafted += count(round.drafted);
            step.accepted += count(round.accepted);
        }
    }
    steps.sort_by_key(|step| step.from);
    steps
}

/// Rate, first token and total of one repetition, for the figures of a side.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) tokens_per_second: f64,
    pub(super) ttft_ms: f64,
    pub(super) total_ms: f64,
}

impl Times {
    /// Those of runs that belong together: rates by all tokens and all time.
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a Measured>) -> Self {
        let (mut tokens, mut decode_ms, mut ttft_ms, mut total_ms, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for run in runs {
            let stats = &run.generated.stats;
            tokens += stats.decode_tokens_per_second * stats.decode_ms / 1e3;
            decode_ms += stats.decode_ms;
            ttft_ms += stats.ttft_ms;
            total_ms += stats.ttft_ms + stats.decode_ms;
            n += 1.0;
        }
        // No runs give no numbers, which are left out later.
        Times {
            tokens_per_second: tokens / decode_ms * 1e3,
            ttft_ms: ttft_ms / n,
            total_ms,
        }
    }
}

/// The figures of one way to run: times a repetition, drafts over all runs.
pub(super) fn figures(speculation: SpeculationChoice, times: &[Times], runs: &[&Measured]) -> SideFigures {
    let of = |pick: fn(&Times) -> f64| spread(&times.iter().map(pick).collect::<Vec<_>>());
    let all = || {
        runs.iter()
            .flat_map(|run| &run.rounds)
            .filter(|round| round.drafted > 0)
    };
    let deepest = all().map(|round| round.drafted).max().unwrap_or_default();
    let shares = (0..deepest).map(|place| {
        let proposed = all().filter(|round| round.drafted > place).count();
        all().filter(|round| round.accepted > place).count() as f64 / proposed.max(1) as f64
    });
    let drafted: usize = all().map(|round| round.drafted).sum();
    let accepted: usize = all().map(|round| round.accepted).sum();
    // Of both kinds; the prompt's own token is in none.
    let rounds = runs
        .iter()
        .flat_map(|run| &run.rounds)
        .filter(|round| round.ms.is_some())
        .count();
    let ran = runs.first().map(|run| &run.generated.stats.speculation);
    SideFigures {
        speculation,
        speculating: ran.is_some_and(|stats| stats.enabled),
        reason: ran
            .filter(|stats| !stats.enabled)
            .and_then(|stats| stats.reason.clone()),
        tokens_per_second: of(|t| t.tokens_per_second),
        ttft_ms: of(|t| t.ttft_ms),
        total_ms: of(|t| t.total_ms),
        tokens_per_round: if rounds == 0 {
            1.0
        } else {
            (accepted + rounds) as f64 / rounds as f64
        },
        acceptance_rate: (drafted > 0).then(|| accepted as f64 / drafted as f64),
        acceptance_by_position: shares.collect(),
    }
}
