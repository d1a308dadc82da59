//! `slipstream bench`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use models::{Engine, Exactness, SamplingParams};

use super::generate::Mode;
use super::pair::Pair;
use super::{INTERRUPTED, output};
use crate::bench::{self, BenchPlan, Subject};
use crate::error::Error;
use crate::ipc::{
    AppError, BenchEvent, BenchReport, LocalModel, MeasuredRun, PromptKind, Regression, SpeculationChoice,
};
use crate::library::{Assets, BUILTIN};
use crate::store::{Store, data_dir};
use crate::turn::Stop;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pair: Pair,
    /// Kinds of prompts, with commas between them; without it all of them.
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    prompts: Vec<Kind>,
    /// What to measure, with commas between: off, auto, block sizes from 2 to 16. Off is always among them.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = super::chat::speculation, default_value = "off,2,3,4,5,6,7,8,auto")]
    block_sizes: Vec<SpeculationChoice>,
    /// Runs of each prompt with each block size. With fewer than three no winner is called.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    repetitions: u32,
    /// Most tokens of a run.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(2..))]
    max_tokens: u32,
    /// Whether speculation leaves the text alone, or everything runs as fast as it can.
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    exactness: Mode,
    /// Write the report with all raw numbers to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report for people to this file, and not to standard output.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Code,
    Facts,
    Prose,
    List,
    Rewrite,
    Long,
    Predictable,
    Unpredictable,
}

impl From<Kind> for PromptKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Code => PromptKind::Code,
            Kind::Facts => PromptKind::Facts,
            Kind::Prose => PromptKind::Prose,
            Kind::List => PromptKind::List,
            Kind::Rewrite => PromptKind::Rewrite,
            Kind::Long => PromptKind::Long,
            Kind::Predictable => PromptKind::Predictable,
            Kind::Unpredictable => PromptKind::Unpredictable,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, AppError> {
    let runtime = super::runtime()?;
    let engine = Engine::start();
    let stop = Arc::new(Stop::default());
    runtime.spawn(watch_for_interrupts(stop.clone()));
    let request = arguments.pair.load_request()?;
    let model = describe(arguments, request.drafter.as_deref())?;
    let loaded = engine.load(request)?;
    let kinds: Vec<PromptKind> = arguments.prompts.iter().copied().map(PromptKind::from).collect();
    let plan = BenchPlan {
        prompts: bench::prompts(&kinds),
        arms: arguments.block_sizes.clone(),
        repetitions: arguments.repetitions as usize,
        max_tokens: arguments.max_tokens as usize,
        sampling: SamplingParams::default(),
        exactness: match arguments.exactness {
            Mode::Exact => Exactness::Exact,
            Mode::Fast => Exactness::Fast,
        },
    };
    let subject = Subject {
        model: &model,
        loaded: &loaded,
    };
    let report = bench::bench(&engine, subject, &plan, &stop, &progress())?;
    let regressions = runtime.block_on(keep(&report));
    give(arguments, &report, &regressions)?;
    Ok(if report.stopped {
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

fn describe(arguments: &Arguments, drafter: Option<&Path>) -> Result<LocalModel, AppError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let path = arguments.pair.model.as_deref().map_or_else(|| BUILTIN.to_owned(), text);
    let mut model = Assets::find(None).describe(&path, None)?;
    // What is loaded and not what usually goes with it.
    model.drafter_path = drafter.map(|path| text(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned())));
    Ok(model)
}

/// The first Ctrl-C ends the run that is under way and lets what there is be told; the second ends the program.
async fn watch_for_interrupts(stop: Arc<Stop>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        if stop.is_requested() {
            std::process::exit(INTERRUPTED.into());
        }
        stop.request();
    }
}

fn progress() -> impl Fn(BenchEvent) {
    let all = std::cell::Cell::new(0);
    let at = std::cell::Cell::new(0);
    move |event| match event {
        BenchEvent::Started { runs, model } => {
            all.set(runs);
            output::note(&format!("{model}: {runs} runs"));
        }
        BenchEvent::Run { done, .. } => at.set(done + 1),
        BenchEvent::Measured { run } => output::note(&told(&run, at.get(), all.get())),
        // They belong to the window; here the report is returned.
        BenchEvent::Done { .. } | BenchEvent::Failed { .. } => {}
    }
}

fn told(run: &MeasuredRun, at: u32, all: u32) -> String {
    format!(
        "[{at}/{all}] {}, {}, repetition {}: {} tokens, {:.1} tok/s",
        run.prompt.as_deref().unwrap_or_default(),
        bench::name(run.speculation),
        run.repetition,
        run.tokens,
        run.tokens_per_second
    )
}

/// Keeps the report where the window's are, and tells what became worse since the last one. Without a history there is
/// still the report.
async fn keep(report: &BenchReport) -> Vec<Regression> {
    let Some(dir) = data_dir() else { return Vec::new() };
    let kept = async {
        let store = Store::open(&dir).await?;
        let id = if report.runs.is_empty() {
            None
        } else {
            Some(store.add_bench(report).await?)
        };
        let before = store.bench_before(report, id).await?;
        store.close().await;
        Ok::<_, crate::store::Error>(before)
    };
    match kept.await {
        Ok(before) => before
            .map(|before| bench::regressions(&before, report))
            .unwrap_or_default(),
        Err(error) => {
            output::note(&format!("slipstream: the report could not be kept: {error}"));
            Vec::new()
        }
    }
}

fn give(arguments: &Arguments, report: &BenchReport, regressions: &[Regression]) -> Result<(), AppError> {
    if let Some(path) = &arguments.json {
        write(path, &format!("{:#}\n", bench::json(report)))?;
    }
    let text = bench::markdown(report, regressions);
    match &arguments.markdown {
        Some(path) => write(path, &text)?,
        None => output::line(text.trim_end())?,
    }
    for one in regressions {
        output::note(&format!("worse than the last time: {}", bench::regression_line(one)));
    }
    output::note(&bench::verdict(report));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), AppError> {
    std::fs::write(path, text).map_err(|error| {
        Error::Input {
            path: path.display().to_string(),
            message: error.to_string(),
        }
        .into()
    })
}
