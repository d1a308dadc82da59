//! `slipstream inspect`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use super::output;
use crate::ipc::AppError;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The checkpoint folder.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Write one JSON object.
    #[arg(long)]
    json: bool,
}

/// Problems of the checkpoint are the answer, not a failure to give one.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, AppError> {
    let inspection = serde_json::json!(models::inspect(&arguments.dir)?);
    let text = if arguments.json {
        inspection.to_string()
    } else {
        in_words(&inspection)
    };
    output::line(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn in_words(inspection: &Value) -> String {
    let mtp = &inspection["mtp"];
    let head = match mtp["location"].as_str() {
        Some("own") => "in the model's own files",
        Some("stray") => "in a file that the index does not name",
        Some("subfolder") => "in the `mtp` folder inside",
        Some("drafter") => "this folder is one",
        _ => "none",
    };
    let mut lines = vec![
        format!("family        {}", word(&inspection["family"], "unknown")),
        format!("role          {}", word(&inspection["role"], "unknown")),
        format!("layers        {}", inspection["layers"]),
        format!("quantization  {}", word(&inspection["quantization"], "none")),
        format!("MTP head      {head} ({} tensors)", mtp["tensors"]),
        format!(
            "size          {:.1} MB",
            inspection["bytes"].as_f64().unwrap_or_default() / 1e6
        ),
    ];
    for file in list(&mtp["files"]) {
        lines.push(format!("  in          {}", word(file, "")));
    }
    if let wirings @ [_, _, ..] = list(&mtp["wirings"]) {
        let names: Vec<&str> = wirings.iter().map(|name| word(name, "")).collect();
        lines.push(format!("  wirings     {}", names.join(", ")));
    }
    for warning in list(&inspection["warnings"]) {
        lines.push(format!("warning       {}", word(warning, "")));
    }
    for problem in list(&inspection["problems"]) {
        lines.push(format!("problem       {}", word(&problem["message"], "")));
        if let Some(hint) = problem["hint"].as_str() {
            lines.push(format!("  hint        {hint}"));
        }
    }
    lines.join("\n")
}

fn word<'a>(value: &'a Value, otherwise: &'a str) -> &'a str {
    value.as_str().unwrap_or(otherwise)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
