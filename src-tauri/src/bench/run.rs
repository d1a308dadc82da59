//! One measured run of a request.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use models::{
    Acceptance, Engine, Exactness, FinishReason, GenerateRequest, Generated, GenerationEvent, Loaded, Margin,
    SelfCheck, Sink, Speculation, SpeculationState,
};

use super::conditions;
use crate::ipc::{Conditions, LocalModel, MeasuredRun, RowCost, Setup, SpeculationChoice};
use crate::turn::{Stop, count};

/// Timed rounds, and tokens in them, below which a run has no rate: one interval that is off would be most of it.
const FEWEST_ROUNDS: usize = 4;
const FEWEST_TOKENS: usize = 8;
/// Tokens of a warm-up: enough for every kernel to have run.
const WARM_UP_TOKENS: usize = 16;
/// Most warm-ups of one way to run.
const MOST_WARM_UPS: usize = 4;
/// Two warm-ups in a row that differ by less than this share are of a machine that is warm.
const SETTLED: f64 = 0.2;

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

    /// What the target's pass alone costs, as the load measured it.
    pub(super) fn passes(&self) -> Vec<RowCost> {
        let rows = self.loaded.costs.as_ref().map_or(&[][..], |costs| &costs.verify_ms);
        let single = rows.iter().find(|(rows, ms)| *rows == 1 && *ms > 0.0);
        let cost = |&(rows, ms): &(usize, f64)| {
            let (_, single) = single?;
            Some(RowCost {
                rows: count(rows),
                ms,
                ratio: ms / single,
            })
        };
        rows.iter().filter_map(cost).collect()
    }
}

/// Notes the machine's state after the last run.
pub(super) fn finish(setup: &mut Setup) {
    setup.after = conditions::read();
}

/// One round, as it was seen to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Milliseconds since the round before; the first has none.
    pub(super) ms: Option<f64>,
    pub(super) tokens: usize,
    pub(super) drafted: usize,
    pub(super) accepted: usize,
    /// Tokens of the sequence before it.
    pub(super) length: usize,
}

/// A run and its rounds.
pub(super) struct Measured {
    pub(super) generated: Generated,
    pub(super) rounds: Vec<Seen>,
}

impl Measured {
    /// Whether it ran to its own end.
    pub(super) fn is_whole(&self) -> bool {
        self.generated.finish != FinishReason::Cancelled
    }

    /// Tokens of its timed rounds and their milliseconds; nothing where there are too few to make a rate of. The first
    /// round is the prompt's, and the last one may be short: plain decoding queues no step behind it.
    pub(super) fn timed(&self) -> Option<(f64, f64)> {
        let timed = || self.rounds.iter().filter_map(|round| Some((round.tokens, round.ms?)));
        let tokens: usize = timed().map(|(tokens, _)| tokens).sum();
        let ms: f64 = timed().map(|(_, ms)| ms).sum();
        let is_enough = timed().count() >= FEWEST_ROUNDS && tokens >= FEWEST_TOKENS && ms > 0.0;
        is_enough.then_some((tokens as f64, ms))
    }

    /// Whether it has a rate.
    pub(super) fn has_rate(&self) -> bool {
        self.timed().is_some()
    }

    /// The way that ran: a block is told by the size that it had.
    pub(super) fn ran(&self, asked: SpeculationChoice) -> SpeculationChoice {
        match (asked, &self.generated.stats.speculation.state) {
            (SpeculationChoice::Block { .. }, SpeculationState::Fixed { depth, .. }) => {
                SpeculationChoice::Block { size: count(depth + 1) }
            }
            (asked, _) => asked,
        }
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
            speculation: self.ran(speculation),
            repetition: count(repetition),
            order: count(order),
            prompt_tokens: count(stats.prompt_tokens),
            tokens: count(stats.tokens),
            prefill_ms: stats.prefill_ms,
            ttft_ms: stats.ttft_ms,
            decode_ms: stats.decode_ms,
            tokens_per_second: self.timed().map(|(tokens, ms)| tokens / ms * 1e3),
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
    let mut is_after_said = false;
    let mut length = None;
    let sink = move |event: GenerationEvent| {
        if let GenerationEvent::Round { round, stats, .. } = &event {
            let before = *length.get_or_insert(stats.prompt_tokens);
            length = Some(before + round.tokens.len());
            if round.said {
                // Nothing was drafted or chosen; the next round has its time in it.
                is_after_said = true;
                hear(&event);
                return flow(&stop);
            }
            let one = Seen {
                ms: round.ms.filter(|_| !std::mem::take(&mut is_after_said)),
                tokens: round.tokens.len(),
                drafted: round.drafted,
                accepted: round.accepted,
                length: before,
            };
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

/// What it took to warm the machine up for one way to run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WarmUp {
    pub(super) runs: usize,
    pub(super) settled: bool,
}

/// The same short run again until two in a row take about the same time. The last one is returned too.
pub(super) fn warm_up(
    request: &GenerateRequest,
    mut once: impl FnMut(GenerateRequest) -> models::Result<Measured>,
) -> models::Result<(WarmUp, Option<Measured>)> {
    let mut done = WarmUp::default();
    let mut last: Option<Measured> = None;
    while done.runs < MOST_WARM_UPS && !done.settled {
        let mut request = request.clone();
        request.max_tokens = Some(request.max_tokens.map_or(WARM_UP_TOKENS, |n| n.min(WARM_UP_TOKENS)));
        let now = once(request)?;
        done.runs += 1;
        let stopped = !now.is_whole();
        let ms = |run: &Measured| run.generated.stats.ttft_ms + run.generated.stats.decode_ms;
        done.settled = last
            .as_ref()
            .is_some_and(|last| (ms(last) - ms(&now)).abs() <= SETTLED * ms(last).max(ms(&now)));
        last = Some(now);
        if stopped {
            break;
        }
    }
    Ok((done, last))
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    #[test]
    fn a_machine_is_warm_when_two_runs_in_a_row_take_the_same_time() {
        let request = GenerateRequest::new(models::Prompt::Raw(String::new()));
        let warm = |totals: &[f64]| {
            let mut left = totals.iter();
            let (done, last) = warm_up(&request, |request| {
                assert_eq!(request.max_tokens, Some(WARM_UP_TOKENS));
                let mut run = Fake::default().measured(SpeculationChoice::Off, 16);
                run.generated.stats.ttft_ms = 0.0;
                run.generated.stats.decode_ms = *left.next().unwrap();
                Ok(run)
            })
            .unwrap();
            assert!(last.is_some());
            (done.runs, done.settled)
        };
        assert_eq!(warm(&[100.0, 90.0]), (2, true));
        assert_eq!(warm(&[300.0, 90.0, 100.0]), (3, true));
        assert_eq!(warm(&[300.0, 90.0, 200.0, 100.0]), (4, false));
    }
}
