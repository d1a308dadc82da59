//! A runner for tests whose clock is made up: what a model says in no time.

use std::sync::Arc;

use models::{
    ControllerState, DrafterState, Error, Exactness, FinishReason, GenerateRequest, Generated, GenerationEvent,
    GenerationStats, Loaded, Margin, Prompt, RoundStats, SamplingParams, SelfCheck, Sink, Speculation,
    SpeculationState,
};

use super::BenchPlan;
use super::run::{self, Measured, Runner, Subject};
use crate::ipc::{Arm, BenchReport, Call, LocalModel, PromptKind, Ratio, SideFigures, SpeculationChoice};

/// A round of plain decoding. Its last one takes next to nothing.
pub(super) const PLAIN_MS: f64 = 10.0;
/// A round with drafts, whatever its size; all of them are right.
pub(super) const ROUND_MS: f64 = 16.0;
/// Why there is no head, where there is none.
pub(super) const NO_HEAD: &str = "the model has no head";

/// Automatic depth makes no drafts here.
pub(super) struct Fake {
    pub(super) head: bool,
    /// Most tokens of a block.
    pub(super) exact: usize,
    pub(super) model: LocalModel,
    pub(super) loaded: Loaded,
}

impl Default for Fake {
    fn default() -> Self {
        Fake {
            head: true,
            exact: 16,
            model: LocalModel {
                id: "m".to_owned(),
                name: "M".to_owned(),
                path: "/m".to_owned(),
                drafter_path: None,
                note: None,
                bytes: 1.0,
            },
            loaded: loaded(),
        }
    }
}

impl Fake {
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            model: &self.model,
            loaded: &self.loaded,
        }
    }

    pub(super) fn measured(&self, speculation: SpeculationChoice, tokens: usize) -> Measured {
        let request = GenerateRequest {
            max_tokens: Some(tokens),
            ..GenerateRequest::new(Prompt::Raw(String::new()))
        };
        let request = run::prepared(&request, crate::turn::speculation(speculation));
        run::measure(self, request, &Arc::default(), Box::new(|_| ())).unwrap()
    }
}

impl Runner for Fake {
    fn generate(&self, request: GenerateRequest, mut sink: Box<dyn Sink>) -> models::Result<Generated> {
        let all = request.max_tokens.unwrap_or(40);
        let mut stats = GenerationStats {
            prompt_tokens: 4,
            ttft_ms: 5.0,
            ..GenerationStats::default()
        };
        let ran = &mut stats.speculation;
        ran.enabled = self.head && request.speculation != Speculation::Off;
        let block = match request.speculation {
            Speculation::Block(size) if ran.enabled => size.min(self.exact),
            _ => 1,
        };
        ran.state = match request.speculation {
            Speculation::Off => SpeculationState::Off,
            _ if !self.head => SpeculationState::Unavailable {
                reason: NO_HEAD.to_owned(),
            },
            Speculation::Block(_) => SpeculationState::Fixed {
                depth: block - 1,
                why: String::new(),
            },
            _ => SpeculationState::Auto(ControllerState::Parked {
                depth: 1,
                acceptance: 0.1,
                cost_ratio: 2.0,
                speedup: 0.5,
                is_measured: true,
            }),
        };
        ran.reason = (!self.head && request.speculation != Speculation::Off).then(|| NO_HEAD.to_owned());
        let mut tokens: Vec<u32> = Vec::new();
        while tokens.len() < all {
            let is_first = tokens.is_empty();
            let n = if is_first { 1 } else { block.min(all - tokens.len()) };
            let first = tokens.len() as u32;
            let new: Vec<u32> = (first..first + n as u32).collect();
            tokens.extend(&new);
            let ms = match block {
                1 if tokens.len() == all => 0.01,
                1 => PLAIN_MS,
                _ => ROUND_MS,
            };
            let drafts = if is_first { 0 } else { n - 1 };
            stats.tokens = tokens.len();
            stats.decode_ms += if is_first { 0.0 } else { ms };
            stats.speculation.drafted += drafts;
            let _ = sink.event(GenerationEvent::Round {
                reasoning: String::new(),
                answer: String::new(),
                round: RoundStats {
                    drafted: drafts,
                    accepted: drafts,
                    kept: n,
                    tokens: new,
                    ms: (!is_first).then_some(ms),
                    ..RoundStats::default()
                },
                stats: stats.clone(),
            });
        }
        Ok(Generated {
            text: format!("{} tokens", tokens.len()),
            tokens,
            reasoning: String::new(),
            answer: String::new(),
            late: Vec::new(),
            thinking_used_budget: false,
            finish: FinishReason::Stop,
            stats,
        })
    }

    fn margin(&self, _: GenerateRequest, _: Vec<u32>) -> models::Result<Margin> {
        Err(Error::NotLoaded)
    }

    fn self_check(&self) -> models::Result<SelfCheck> {
        Err(Error::NotLoaded)
    }

    fn spell(&self, ids: Vec<u32>) -> models::Result<String> {
        Ok(format!("{ids:?}"))
    }
}

fn loaded() -> Loaded {
    Loaded {
        family: "m".to_owned(),
        target: "/m".into(),
        drafter: DrafterState::Unavailable {
            reason: NO_HEAD.to_owned(),
        },
        context: 2048,
        can_chat: false,
        can_think: false,
        defaults: SamplingParams::default(),
        device: "cpu",
        dtype: "float32",
        load_ms: 1.0,
        memory_bytes: 1,
        wirings: Vec::new(),
        self_check: None,
        check_key: "cpu, MLX, float32, 00ff".to_owned(),
        costs: None,
        costs_key: String::new(),
        auto_depth: 0,
        warnings: Vec::new(),
    }
}

/// A short report on off, block 2 and block 8 that calls nothing.
pub(super) fn report() -> BenchReport {
    let plan = BenchPlan {
        prompts: super::prompts(&[PromptKind::Predictable]),
        arms: vec![
            SpeculationChoice::Block { size: 2 },
            SpeculationChoice::Block { size: 8 },
        ],
        repetitions: 1,
        max_tokens: 40,
        sampling: SamplingParams::default(),
        exactness: Exactness::Exact,
    };
    let fake = Fake::default();
    super::bench(&fake, fake.subject(), &plan, &Arc::default(), &|_| ()).unwrap()
}

/// An arm that was measured to be so much against off, with shares of drafts accepted.
pub(super) fn arm(speculation: SpeculationChoice, call: Option<(f64, Call)>, shares: &[f64]) -> Arm {
    Arm {
        figures: SideFigures {
            speculation,
            asked: Vec::new(),
            speculating: true,
            reason: None,
            tokens_per_second: None,
            ttft_ms: None,
            total_ms: None,
            tokens_per_round: 2.0,
            acceptance_rate: None,
            acceptance_by_position: shares.to_vec(),
        },
        speedup: call.map(|(value, call)| Ratio {
            value,
            low: None,
            high: None,
            call,
        }),
        warm_ups: 2,
        settled: true,
        acceptance_by_context: Vec::new(),
        checked_tokens: 1,
        differing: Vec::new(),
    }
}
