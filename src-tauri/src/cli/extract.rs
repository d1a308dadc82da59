//! `slipstream extract-head`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output;
use crate::ipc::AppError;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The checkpoint that holds the head.
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// The drafter folder to make.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Write one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, AppError> {
    let extracted = models::extract_head(&arguments.source, &arguments.to)?;
    let text = if arguments.json {
        serde_json::json!(extracted).to_string()
    } else {
        format!(
            "{} MTP tensors ({:.1} MB) from {} are in {}",
            extracted.tensors,
            extracted.bytes as f64 / 1e6,
            extracted.from.join(", "),
            extracted.dir.display()
        )
    };
    output::line(&text)?;
    Ok(ExitCode::SUCCESS)
}
