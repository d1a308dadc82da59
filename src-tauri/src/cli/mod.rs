//! The command line. It never touches the window system.

mod bench;
mod chat;
mod download;
mod extract;
mod generate;
mod inspect;
mod output;
mod pair;
mod prompt;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::READER_GONE;
use crate::ipc::AppError;

/// Ended by Ctrl-C, as shells count it.
const INTERRUPTED: u8 = 130;
/// A command line or request that makes no sense.
const USAGE: u8 = 2;

/// Chat with large language models on your own computer. Without a command it opens the window.
#[derive(Parser)]
#[command(name = "slipstream", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generates one text and ends.
    Generate(generate::Arguments),
    /// Tells what a checkpoint folder holds and what is wrong with it.
    Inspect(inspect::Arguments),
    /// Writes a checkpoint's MTP head to a drafter folder of its own.
    ExtractHead(extract::Arguments),
    /// Fetches a model, or a part of one, from the hub; what is there is not fetched again.
    Download(download::Arguments),
    /// Measures what speculation gains on this machine, over a set of prompts.
    Bench(bench::Arguments),
    /// Holds a conversation in the terminal; the history is the window's.
    Chat(chat::Arguments),
}

/// Runs the program: the window without arguments, else a command.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    // Finder may add a process serial number.
    if arguments
        .iter()
        .skip(1)
        .all(|argument| argument.to_string_lossy().starts_with("-psn_"))
    {
        return window();
    }
    let json = arguments.iter().any(|argument| argument == "--json");
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json),
    };
    match cli.command {
        Command::Generate(arguments) => ended(generate::run(arguments), json),
        Command::Inspect(arguments) => ended(inspect::run(&arguments), json),
        Command::ExtractHead(arguments) => ended(extract::run(&arguments), json),
        Command::Download(arguments) => ended(download::run(arguments), json),
        Command::Bench(arguments) => ended(bench::run(&arguments), json),
        Command::Chat(arguments) => ended(chat::run(arguments), json),
    }
}

fn window() -> ExitCode {
    let display = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !display("DISPLAY") && !display("WAYLAND_DISPLAY") {
        output::note(
            "slipstream: there is no display to open a window on\n  hint: `slipstream chat` talks in the terminal",
        );
        return ExitCode::FAILURE;
    }
    match crate::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&format!("slipstream: the window cannot be opened: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Help and version are asked for, everything else here is a mistake.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if error.use_stderr() && json {
        let text = error.render().to_string();
        let message = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        let hint = Some("run `slipstream --help`".to_owned());
        output::error_json(&AppError {
            kind: "usage".to_owned(),
            message,
            hint,
        });
    }
    // Where nobody reads there is nothing to tell.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

fn ended(result: Result<ExitCode, AppError>, json: bool) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) if error.kind == READER_GONE => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    if json {
        output::error_json(&error);
    }
    let hint = error
        .hint
        .as_deref()
        .map(|hint| format!("\n  hint: {hint}"))
        .unwrap_or_default();
    output::note(&format!("slipstream: {}{hint}", error.message));
    if error.kind == "usage" {
        ExitCode::from(USAGE)
    } else {
        ExitCode::FAILURE
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, AppError> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?)
}
