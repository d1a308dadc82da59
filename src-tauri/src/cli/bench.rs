//! `slipstream bench`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueEnum;
use models::{Calibration, Engine, Exactness, LoadRequest, SamplingParams};

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
    // What cannot be written is said now, and not when everything has been measured.
    let mut files = Files::open(arguments)?;
    let runtime = super::runtime()?;
    let engine = Engine::start();
    let stop = Arc::new(Stop::default());
    runtime.spawn(watch_for_interrupts(stop.clone()));
    let request = LoadRequest {
        // As in the window: what passes cost is told, and is what automatic depth begins with.
        calibration: Calibration::On {
            conditions: crate::power::power_mode(),
        },
        ..arguments.pair.load_request()?
    };
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
    give(&mut files, &report, &regressions)?;
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
        "[{at}/{all}] {}, {}, repetition {}: {} tokens, {}",
        run.prompt.as_deref().unwrap_or_default(),
        bench::name(run.speculation),
        run.repetition,
        run.tokens,
        run.tokens_per_second
            .map_or_else(|| "too short for a rate".to_owned(), |rate| format!("{rate:.1} tok/s")),
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
        let before = store.benches_before(report, id).await?;
        store.close().await;
        Ok::<_, crate::store::Error>(before)
    };
    match kept.await {
        Ok(before) => bench::regressions(&before, report),
        Err(error) => {
            output::note(&format!("slipstream: the report could not be kept: {error}"));
            Vec::new()
        }
    }
}

/// The files that the report goes to.
struct Files {
    json: Option<Output>,
    markdown: Option<Output>,
}

struct Output {
    path: PathBuf,
    file: File,
}

impl Files {
    fn open(arguments: &Arguments) -> Result<Self, AppError> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
        Ok(Files {
            json: open(&arguments.json)?,
            markdown: open(&arguments.markdown)?,
        })
    }
}

impl Output {
    /// What an earlier report left there stays until there is a new one.
    fn open(path: &Path) -> Result<Self, AppError> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        Ok(Output {
            path: path.to_owned(),
            file: file.map_err(|error| unusable(path, &error))?,
        })
    }

    fn write(&mut self, text: &str) -> Result<(), AppError> {
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(|error| unusable(&self.path, &error))
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> AppError {
    Error::Input {
        path: path.display().to_string(),
        message: error.to_string(),
    }
    .into()
}

/// The report for people comes first: whatever fails behind it, it is told.
fn give(files: &mut Files, report: &BenchReport, regressions: &[Regression]) -> Result<(), AppError> {
    let text = bench::markdown(report, regressions);
    let on_screen = || output::line(text.trim_end()).map_err(AppError::from);
    let told = match &mut files.markdown {
        Some(file) => file.write(&text).or_else(|error| on_screen().and(Err(error))),
        None => on_screen(),
    };
    let raw = match &mut files.json {
        Some(output) => output.write(&format!("{:#}\n", bench::json(report))),
        None => Ok(()),
    };
    for line in bench::cut(report) {
        output::note(&line);
    }
    for one in regressions {
        output::note(&format!("worse than the last time: {}", bench::regression_line(one)));
    }
    output::note(&bench::verdict(report));
    told.and(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_tried_first_and_keeps_what_it_has_until_there_is_more() {
        let dir = tempfile::TempDir::new().unwrap();
        let error = Output::open(&dir.path().join("no/such/folder.json")).err().unwrap();
        assert!(error.message.contains("no/such/folder.json"), "{error}");
        let path = dir.path().join("report.json");
        std::fs::write(&path, "what an earlier one said").unwrap();
        let mut output = Output::open(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "what an earlier one said");
        output.write("new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    }
}
