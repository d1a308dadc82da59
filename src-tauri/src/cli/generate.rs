//! `slipstream generate`.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use models::{
    Acceptance, Calibration, DrafterState, Engine, Exactness, FinishReason, GenerateRequest, Generated,
    GenerationEvent, LoadRequest, Loaded, SamplingParams, Speculation, ThinkingEnd, exactness_sentence,
};

use super::pair::{Kind, Pair};
use super::{INTERRUPTED, output, prompt::Source};
use crate::ipc::AppError;
use crate::turn::{fresh_seed, run_of};

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pair: Pair,
    /// Tokens verified a round, the target's own included: from 2 to 16, or `auto` for as many as pay by what is measured;
    /// without it the drafter's default.
    #[arg(long, value_name = "K", value_parser = block_size)]
    draft_block_size: Option<BlockSize>,
    /// How the drafter is wired, where its model leaves a choice (`inspect` lists them); without it the engine chooses.
    #[arg(long, value_name = "NAME")]
    draft_wiring: Option<String>,
    /// When a draft is kept: when it is the model's own choice (the text is that without speculation), or by chance (more
    /// are kept; other text of the same distribution).
    #[arg(long, value_enum, default_value_t, value_name = "RULE")]
    accept: Rule,
    /// Whether speculation leaves the text alone (operations whose rows depend on their neighbours on this device run in
    /// parts), or everything runs as fast as it can.
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    exactness: Mode,
    #[command(flatten)]
    source: Source,
    /// Take the text as it is, without the chat template.
    #[arg(long)]
    raw: bool,
    /// Generate on past end tokens.
    #[arg(long)]
    ignore_eos: bool,
    /// Most tokens to generate; without it, until the text ends or the context is full.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// 0 takes the most likely token. This and the other sampling options default to the checkpoint's own.
    #[arg(long, value_name = "T", value_parser = between::<0, 100>, allow_negative_numbers = true)]
    temp: Option<f32>,
    /// Keep the most likely tokens up to this mass; off at 1.
    #[arg(long, value_name = "P", value_parser = between::<0, 1>, allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Keep this many tokens; off at 0.
    #[arg(long, value_name = "K")]
    top_k: Option<u32>,
    /// Keep tokens at least this share as likely as the best; off at 0.
    #[arg(long, value_name = "P", value_parser = between::<0, 1>, allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Weaken tokens already there by this factor; off at 1.
    #[arg(long, value_name = "X", value_parser = between::<0, 100>, allow_negative_numbers = true)]
    repetition_penalty: Option<f32>,
    /// Subtract this from the logits of tokens already there; off at 0.
    #[arg(long, value_name = "X", value_parser = between::<-100, 100>, allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Subtract this for each time a token is already there; off at 0.
    #[arg(long, value_name = "X", value_parser = between::<-100, 100>, allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Fixes all randomness; without it a fresh one.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// A text that ends the reply; may be given more than once.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// The template's thinking switch; without it the template decides.
    #[arg(long, value_enum)]
    thinking: Option<Switch>,
    /// After this many tokens of thinking the model is made to answer.
    #[arg(long, value_name = "N")]
    thinking_budget: Option<u32>,
    /// Write one JSON object in place of the text.
    #[arg(long)]
    json: bool,
}

/// Said where a budget was asked for in vain.
pub(super) const NO_THINKING: &str = "this model has no thinking that could be ended: the thinking budget does nothing";

#[derive(Clone, Copy)]
enum BlockSize {
    Auto,
    Fixed(u8),
}

fn block_size(text: &str) -> Result<BlockSize, String> {
    match text.parse::<u8>() {
        Ok(size) if (2..=16).contains(&size) => Ok(BlockSize::Fixed(size)),
        _ if text == "auto" => Ok(BlockSize::Auto),
        _ => Err("auto or a number from 2 to 16 is needed".to_owned()),
    }
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Rule {
    #[default]
    Equality,
    Rejection,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum Mode {
    #[default]
    Exact,
    Fast,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// A finite number in a range.
pub(super) fn between<const LOW: i16, const HIGH: i16>(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (f32::from(LOW)..=f32::from(HIGH)).contains(&value) => Ok(value),
        _ => Err(format!("a number from {LOW} to {HIGH} is needed")),
    }
}

/// What the sink has to say when the generation has ended.
struct Progress {
    text: output::Text,
    failed: Option<std::io::Error>,
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode, AppError> {
    let prompt = arguments.source.read(arguments.raw)?;
    let runtime = super::runtime()?;
    let engine = Engine::start();
    let stop = Arc::new(AtomicBool::new(false));
    let generating = Arc::new(AtomicBool::new(false));
    runtime.spawn(watch_for_interrupts(stop.clone(), generating.clone()));

    let calibration = match arguments.draft_block_size {
        Some(BlockSize::Auto) => Calibration::On {
            conditions: crate::power::power_mode(),
        },
        _ => Calibration::Off,
    };
    let loaded = engine.load(LoadRequest {
        calibration,
        ..arguments.pair.load_request()?
    })?;
    let request = arguments.request(prompt, &loaded);
    if arguments.thinking_budget.is_some() && !loaded.can_think {
        output::note(NO_THINKING);
    }
    let seed = request.sampling.seed;
    let progress = Arc::new(Mutex::new(Progress {
        text: output::Text::new(false),
        failed: None,
    }));
    let sink = sink(stop.clone(), progress.clone(), arguments.json);
    generating.store(true, Ordering::Release);
    let generated = engine.generate(request, Box::new(sink))?;
    generating.store(false, Ordering::Release);

    if arguments.json {
        output::line(&report(&loaded, &generated).to_string())?;
    } else {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.failed.take().map_or(Ok(()), Err)?;
        progress.text.finish(&generated.reasoning, &generated.answer)?;
        output::note(&output::figures(&run_of(
            "",
            loaded.self_check.as_ref(),
            &generated.stats,
            seed,
        )));
    }
    Ok(if generated.finish == FinishReason::Cancelled {
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

impl Arguments {
    fn request(&self, prompt: models::Prompt, loaded: &Loaded) -> GenerateRequest {
        let defaults = &loaded.defaults;
        GenerateRequest {
            sampling: SamplingParams {
                temperature: self.temp.unwrap_or(defaults.temperature),
                top_p: self.top_p.unwrap_or(defaults.top_p),
                top_k: self.top_k.map_or(defaults.top_k, |value| value as usize),
                min_p: self.min_p.unwrap_or(defaults.min_p),
                repetition_penalty: self.repetition_penalty.unwrap_or(defaults.repetition_penalty),
                presence_penalty: self.presence_penalty.unwrap_or(defaults.presence_penalty),
                frequency_penalty: self.frequency_penalty.unwrap_or(defaults.frequency_penalty),
                seed: self.seed.unwrap_or_else(fresh_seed),
                ..defaults.clone()
            },
            max_tokens: self.max_tokens.map(|tokens| tokens as usize),
            stop: self.stop.clone(),
            ignore_eos: self.ignore_eos,
            speculation: match (self.pair.draft_kind, self.draft_block_size) {
                (Kind::None, _) => Speculation::Off,
                (_, Some(BlockSize::Fixed(size))) => Speculation::Block(size.into()),
                (_, Some(BlockSize::Auto)) => Speculation::Auto,
                // The head's own, so that one run can be told again.
                (_, None) => match &loaded.drafter {
                    DrafterState::Ready { block_size, .. } => Speculation::Block(*block_size),
                    DrafterState::Unavailable { .. } => Speculation::Auto,
                },
            },
            // Nothing comes after it that could go on from what was read.
            fresh: true,
            accept: match self.accept {
                Rule::Equality => Acceptance::Equality,
                Rule::Rejection => Acceptance::Rejection,
            },
            exactness: match self.exactness {
                Mode::Exact => Exactness::Exact,
                Mode::Fast => Exactness::Fast,
            },
            wiring: self.draft_wiring.clone(),
            thinking: self.thinking.map(|switch| switch == Switch::On),
            thinking_budget: self.thinking_budget.map(|tokens| tokens as usize),
            ..GenerateRequest::new(prompt)
        }
    }
}

/// The first Ctrl-C ends a generation and lets what there is be printed; else it ends the program.
async fn watch_for_interrupts(stop: Arc<AtomicBool>, generating: Arc<AtomicBool>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        if stop.swap(true, Ordering::AcqRel) || !generating.load(Ordering::Acquire) {
            std::process::exit(INTERRUPTED.into());
        }
    }
}

fn sink(
    stop: Arc<AtomicBool>,
    progress: Arc<Mutex<Progress>>,
    json: bool,
) -> impl FnMut(GenerationEvent) -> ControlFlow<()> + Send {
    move |event| {
        if let GenerationEvent::Round { reasoning, answer, .. } = event
            && !json
        {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = progress.text.push(&reasoning, &answer) {
                progress.failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        if stop.load(Ordering::Acquire) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn report(loaded: &Loaded, generated: &Generated) -> serde_json::Value {
    let stats = &generated.stats;
    let speculation = &stats.speculation;
    // What exact mode does not run as it is on this device.
    let checked = loaded.self_check.iter().flat_map(|check| &check.ops);
    let in_parts: Vec<&str> = checked.filter(|v| !v.is_native()).map(|v| v.op.as_str()).collect();
    let mut report = serde_json::json!({
        "prompt_tokens": stats.prompt_tokens,
        "tokens": generated.tokens,
        "text": generated.text,
        "finish_reason": generated.finish.as_str(),
        "thinking": {
            "tokens": stats.thought.tokens,
            "ms": stats.thought.ms,
            "ended": stats.thought.ended.map(ThinkingEnd::as_str),
        },
        "timings": {
            "load_ms": loaded.load_ms,
            "prefill_ms": stats.prefill_ms,
            "ttft_ms": stats.ttft_ms,
            "decode_ms": stats.decode_ms,
            "decode_tokens_per_second": stats.decode_tokens_per_second,
        },
        "speculation": {
            "enabled": speculation.enabled,
            "state": speculation.state.name(),
            "sentence": speculation.state.sentence(),
            "reason": speculation.reason,
            "exactness": speculation.exactness.as_str(),
            "exactness_sentence": exactness_sentence(loaded.self_check.as_ref(), speculation.exactness),
            "in_parts": in_parts,
            "block_size": speculation.block_size,
            "accept": speculation.accept.map(Acceptance::as_str),
            "rounds": speculation.rounds,
            "plain_rounds": speculation.plain_rounds,
            "drafted": speculation.drafted,
            "accepted": speculation.accepted,
            "acceptance_rate": speculation.acceptance_rate,
            "tokens_per_round": speculation.tokens_per_round,
            "drafted_per_round": speculation.drafted_per_round,
            "accepted_per_round": speculation.accepted_per_round,
            "acceptance_by_position": speculation.acceptance_by_position,
        },
    });
    if let Some(wiring) = &speculation.wiring {
        report["speculation"]["wiring"] = wiring.as_str().into();
    }
    report
}
