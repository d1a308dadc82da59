//! Counting what a generation did.

use std::time::Instant;

use super::alarm::{Positions, Tail, count, poor_head};
use super::speculating::Plan;
use super::{Acceptance, Exactness, GenerationStats, SpeculationState, SpeculationStats, Thought};
use crate::generate::{Round, read_at};

/// Counts rounds and times. Decode time runs from the first token to the last; reading the prompt is apart.
pub(super) struct Figures {
    start: Instant,
    prefill: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
    prompt_tokens: usize,
    cached_tokens: usize,
    exactness: Exactness,
    /// Tokens computed, an end token included.
    given: usize,
    plan: Plan,
    accept: Acceptance,
    wiring: Option<String>,
    drafted: usize,
    accepted: usize,
    drafted_per_round: Vec<usize>,
    accepted_per_round: Vec<usize>,
    positions: Positions,
    /// What earlier replies showed of this head; `None` where its drafts say nothing about it.
    before: Option<Positions>,
    /// Rounds without drafts, the first token's included.
    plain_rounds: usize,
    tail: Tail,
}

impl Figures {
    /// `start` is when the request came; reading the prompt starts now.
    pub(super) fn new(start: Instant, prompt_tokens: usize, plan: Plan, exactness: Exactness) -> Self {
        Self {
            start,
            prefill: Instant::now(),
            first: None,
            last: None,
            prompt_tokens,
            cached_tokens: 0,
            exactness,
            given: 0,
            plan,
            accept: Acceptance::default(),
            wiring: None,
            drafted: 0,
            accepted: 0,
            drafted_per_round: Vec::new(),
            accepted_per_round: Vec::new(),
            positions: Positions::new(),
            before: None,
            plain_rounds: 0,
            tail: Tail::default(),
        }
    }

    /// Notes when a draft is kept.
    pub(super) fn accepting(&mut self, accept: Acceptance) {
        self.accept = accept;
    }

    /// Notes how the drafter is wired, where there is a choice.
    pub(super) fn wired(&mut self, wiring: Option<String>) {
        self.wiring = wiring;
    }

    /// The head is judged by its drafts in this reply and in those before.
    pub(super) fn judging(&mut self, before: Positions) {
        self.before = Some(before);
    }

    /// Notes how much of the prompt did not have to be read.
    pub(super) fn cached(&mut self, tokens: usize) {
        self.cached_tokens = tokens;
    }

    /// Counts a round of which the first `kept` tokens count. How long after the one before it was read, in milliseconds.
    pub(super) fn add(&mut self, round: &Round, kept: usize) -> Option<f64> {
        let took = self.clock();
        self.count(round, kept);
        took
    }

    /// Times are those of the reads: what is made of a round's tokens afterwards is in nobody's rate.
    fn clock(&mut self) -> Option<f64> {
        let now = read_at().unwrap_or_else(Instant::now);
        self.first.get_or_insert(now);
        let before = self.last.replace(now);
        before.map(|before| now.saturating_duration_since(before).as_secs_f64() * 1e3)
    }

    fn count(&mut self, round: &Round, kept: usize) {
        self.given += kept;
        let accepted = round.accepted.min(kept);
        // Drafts behind the end were neither right nor wrong: nobody looked.
        let drafted = if round.accepted >= kept { kept } else { round.drafted };
        self.tail
            .add(&round.tokens[..kept.min(round.tokens.len())], drafted, accepted);
        if round.drafted == 0 {
            self.plain_rounds += 1;
            return;
        }
        self.drafted += drafted;
        self.accepted += accepted;
        self.drafted_per_round.push(drafted);
        self.accepted_per_round.push(accepted);
        count(&mut self.positions, drafted, accepted);
    }

    /// The figures up to now, for a reply of `tokens` tokens.
    pub(super) fn stats(&self, tokens: usize, thought: Thought) -> GenerationStats {
        let ms = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
        let ttft_ms = self.first.map_or(0.0, |t| ms(self.start, t));
        let decode_ms = self.first.zip(self.last).map_or(0.0, |(a, b)| ms(a, b));
        let after_first = self.given.saturating_sub(1) as f64;
        GenerationStats {
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            tokens,
            prefill_ms: self.first.map_or(0.0, |t| ms(self.prefill, t)),
            ttft_ms,
            decode_ms,
            decode_tokens_per_second: if decode_ms > 0.0 {
                after_first / decode_ms * 1e3
            } else {
                0.0
            },
            thought,
            speculation: self.speculation(),
        }
    }

    fn alarm(&self) -> Option<String> {
        let poor = self
            .before
            .as_ref()
            .and_then(|before| poor_head(before, &self.positions));
        poor.or_else(|| self.tail.looping())
    }

    fn speculation(&self) -> SpeculationStats {
        let ratio = |a: usize, b: usize| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        let accepted = self.accepted;
        let state = self.plan.state();
        let enabled = !matches!(self.plan, Plan::Plain(_));
        let reason = match &state {
            SpeculationState::Off | SpeculationState::Unavailable { .. } => Some(state.sentence()),
            _ => self.alarm(),
        };
        let (rounds, plain_rounds) = if enabled {
            (self.accepted_per_round.len(), self.plain_rounds.saturating_sub(1))
        } else {
            (self.plain_rounds, 0)
        };
        SpeculationStats {
            enabled,
            reason,
            block_size: state.depth() + 1,
            state,
            exactness: self.exactness,
            accept: enabled.then_some(self.accept),
            wiring: self.wiring.clone(),
            rounds,
            plain_rounds,
            drafted: self.drafted,
            accepted,
            acceptance_rate: ratio(accepted, self.drafted),
            tokens_per_round: if enabled {
                ratio(self.given.saturating_sub(1), rounds + plain_rounds)
            } else {
                1.0
            },
            drafted_per_round: self.drafted_per_round.clone(),
            accepted_per_round: self.accepted_per_round.clone(),
            acceptance_by_position: self.positions.iter().map(|(p, k)| ratio(*k, *p)).collect(),
        }
    }
}
