//! A benchmark as text to paste: Markdown for people, JSON with the raw numbers for programs.
//!
//! The JSON is described by `assets/bench/report.schema.json`; a change of it needs a new version there.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::regression::name;
use super::summary::REPORT_VERSION;
use super::words::{against, cut, reason, verdict};
use crate::ipc::{Arm, BenchReport, BenchTexts, Conditions, OpenBench, Regression, SpeculationChoice, Spread};

/// The report for programs. Names are written as on the command line: in snake case. Of folders only the last name is told.
#[must_use]
pub fn json(report: &BenchReport) -> Value {
    let mut shown = report.clone();
    shown.version = REPORT_VERSION;
    for path in std::iter::once(&mut shown.setup.target).chain(&mut shown.setup.drafter) {
        *path = file_name(path).to_owned();
    }
    snake_keys(serde_json::json!(shown))
}

/// Both, to be copied.
#[must_use]
pub fn texts(open: &OpenBench) -> BenchTexts {
    BenchTexts {
        markdown: markdown(&open.report, &open.regressions),
        json: format!("{:#}", json(&open.report)),
    }
}

fn snake_keys(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (snake(&key), snake_keys(value)))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(snake_keys).collect()),
        other => other,
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The report for people: the machine and its load, the medians with their range, the raw numbers.
#[must_use]
pub fn markdown(report: &BenchReport, regressions: &[Regression]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, report, regressions);
    out
}

fn write_all(out: &mut String, report: &BenchReport, regressions: &[Regression]) -> std::fmt::Result {
    let setup = &report.setup;
    writeln!(out, "## Slipstream benchmark: {}\n", setup.model)?;
    writeln!(out, "**{}**\n", verdict(report))?;
    if report.stopped {
        writeln!(out, "Stopped before the end: only what was measured is told.\n")?;
    }
    writeln!(out, "| | |\n|---|---|")?;
    for (name, value) in facts(report) {
        writeln!(out, "| {name} | {value} |")?;
    }
    writeln!(out, "\n### Speed\n")?;
    writeln!(
        out,
        "| | tokens/s, median (min to max) | against off (what the noise allows) | first token, ms | tokens/round | accepted | by position |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for arm in &report.arms {
        let figures = &arm.figures;
        writeln!(
            out,
            "| {} | {} | {} | {} | {:.2} | {} | {} |",
            name(figures.speculation),
            range(figures.tokens_per_second.as_ref(), 1),
            arm.speedup.as_ref().map_or_else(|| "–".to_owned(), against),
            range(figures.ttft_ms.as_ref(), 0),
            figures.tokens_per_round,
            figures
                .acceptance_rate
                .map_or_else(|| "–".to_owned(), |rate| format!("{rate:.3}")),
            shares(&figures.acceptance_by_position),
        )?;
    }
    for line in cut(report) {
        writeln!(out, "\n{line}.")?;
    }
    write_exactness(out, report)?;
    write_passes(out, report)?;
    write_costs(out, report)?;
    write_contexts(out, &report.arms)?;
    write_prompts(out, report)?;
    if !regressions.is_empty() {
        writeln!(out, "\n### Worse than the last time on this machine\n")?;
        for one in regressions {
            writeln!(out, "- {}", regression_line(one))?;
        }
    }
    writeln!(
        out,
        "\n### Raw numbers\n\nTokens/s, run by run, in the order of the repetitions:\n"
    )?;
    for prompt in &report.prompts {
        let values = prompt.tokens_per_second.iter().flat_map(|spread| &spread.values);
        let values: Vec<String> = values.map(|value| format!("{value:.2}")).collect();
        writeln!(
            out,
            "- {}, {}: {}",
            prompt.prompt,
            name(prompt.speculation),
            values.join(", ")
        )?;
    }
    Ok(())
}

/// One line on what became worse.
#[must_use]
pub fn regression_line(one: &Regression) -> String {
    let digits = if one.before < 2.0 { 3 } else { 1 };
    let (before, after) = (one.before, one.after);
    let interval = one
        .ratio
        .as_ref()
        .map(|ratio| format!(" ({})", against(ratio)))
        .unwrap_or_default();
    let changes = match one.changes.as_slice() {
        [] => "nothing else is known to have changed".to_owned(),
        changes => format!("changed since: {}", changes.join(", ")),
    };
    format!(
        "{}: {before:.digits$} → {after:.digits$}{interval}; {changes}",
        one.what
    )
}

fn facts(report: &BenchReport) -> Vec<(&'static str, String)> {
    let setup = &report.setup;
    let (before, after) = (&setup.before, &setup.after);
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not readable".to_owned());
    let cores = before.cores.map(|n| format!(", {n} logical cores")).unwrap_or_default();
    let mut facts = vec![
        ("chip", format!("{}{cores}", text(&before.chip))),
        (
            "memory",
            before.memory_bytes.map_or_else(|| "not readable".to_owned(), gib),
        ),
        ("system", text(&before.os)),
    ];
    facts.extend(before.gpu.clone().map(|gpu| ("graphics", gpu)));
    facts.extend([
        ("device, precision", format!("{}, {}", setup.device, setup.dtype)),
        (
            "Slipstream, MLX",
            format!("{}, {}", setup.app_version, setup.mlx_version),
        ),
        (
            "drafter",
            setup
                .drafter
                .as_deref()
                .map_or("the model's own head, if any", file_name)
                .to_owned(),
        ),
        ("mode", setup.exactness.clone()),
        (
            "power",
            format!("{}, mode {}", text(&before.power_source), text(&before.power_mode)),
        ),
        (
            "heat, before and after",
            format!("{}; {}", text(&before.thermal), text(&after.thermal)),
        ),
        ("load, before and after", format!("{}; {}", load(before), load(after))),
        (
            "swap used, before and after",
            format!("{}; {}", swap(before), swap(after)),
        ),
        (
            "runs",
            format!(
                "{} prompts, {} repetitions interleaved, at most {} tokens, temperature {}, seed {}",
                report.prompt_ids.len(),
                report.repetitions,
                report.max_tokens,
                report.temperature,
                report.seed
            ),
        ),
    ]);
    let warm_ups: Vec<String> = report.arms.iter().filter(|arm| arm.warm_ups > 0).map(warmed).collect();
    if !warm_ups.is_empty() {
        facts.push(("warm-ups before", warm_ups.join(", ")));
    }
    if !setup.in_parts.is_empty() {
        facts.push(("operations run in parts", setup.in_parts.join("; ")));
    }
    facts
}

fn warmed(arm: &Arm) -> String {
    let settled = if arm.settled { "" } else { " (its time did not settle)" };
    format!("{} {}{settled}", name(arm.figures.speculation), arm.warm_ups)
}

/// Folders are the person's own business.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn gib(bytes: f64) -> String {
    format!("{:.1} GiB", bytes / f64::from(1 << 30))
}

fn load(conditions: &Conditions) -> String {
    let text = |[one, five, fifteen]: [f64; 3]| format!("{one:.2} {five:.2} {fifteen:.2}");
    conditions.load.map_or_else(|| "not readable".to_owned(), text)
}

fn swap(conditions: &Conditions) -> String {
    conditions
        .swap_used_bytes
        .map_or_else(|| "not readable".to_owned(), gib)
}

fn range(spread: Option<&Spread>, digits: usize) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |s| format!("{:.digits$} ({:.digits$} to {:.digits$})", s.median, s.min, s.max),
    )
}

fn shares(shares: &[f64]) -> String {
    let all: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
    if all.is_empty() {
        "–".to_owned()
    } else {
        all.join(" ")
    }
}

fn write_exactness(out: &mut String, report: &BenchReport) -> std::fmt::Result {
    writeln!(out, "\n### Exactness\n")?;
    for arm in report
        .arms
        .iter()
        .filter(|arm| arm.figures.speculation != SpeculationChoice::Off)
    {
        let name = name(arm.figures.speculation);
        match arm.differing.as_slice() {
            _ if !arm.figures.speculating => writeln!(out, "- {name} did not speculate: {}", reason(arm))?,
            [] if arm.checked_tokens == 0 => writeln!(out, "- {name}: nothing was compared")?,
            [] => writeln!(out, "- {name}: identical to off, {} tokens checked", arm.checked_tokens)?,
            differing => writeln!(out, "- {name}: NOT identical to off on {}", differing.join(", "))?,
        }
    }
    // Where plain decoding does not repeat itself, the rest says nothing.
    for off in report
        .arms
        .iter()
        .filter(|arm| arm.figures.speculation == SpeculationChoice::Off)
    {
        if !off.differing.is_empty() {
            writeln!(out, "- off does not repeat itself on {}", off.differing.join(", "))?;
        }
    }
    Ok(())
}

fn write_passes(out: &mut String, report: &BenchReport) -> std::fmt::Result {
    if report.passes.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n### The target's forward pass alone\n\nOver K tokens, as measured when the pair was loaded.\n\n\
         | K | ms, median | T(K)/T(1) |\n|---|---|---|"
    )?;
    for pass in &report.passes {
        writeln!(out, "| {} | {:.2} | {:.2} |", pass.rows, pass.ms, pass.ratio)?;
    }
    if let Some(ms) = report.draft_ms {
        writeln!(out, "\nOne step of the drafter: {ms:.2} ms.")?;
    }
    Ok(())
}

fn write_costs(out: &mut String, report: &BenchReport) -> std::fmt::Result {
    if report.costs.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n### Cost of a whole round\n\nDrafting, the check of K tokens and the choices; K = 1 are the rounds of off.\n\n| K | ms, median | T(K)/T(1) | rounds |\n|---|---|---|---|"
    )?;
    for cost in &report.costs {
        let ratio = cost.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        writeln!(out, "| {} | {:.2} | {ratio} | {} |", cost.rows, cost.ms, cost.rounds)?;
    }
    Ok(())
}

fn write_contexts(out: &mut String, arms: &[Arm]) -> std::fmt::Result {
    if arms.iter().all(|arm| arm.acceptance_by_context.is_empty()) {
        return Ok(());
    }
    writeln!(
        out,
        "\n### Acceptance by length of the sequence\n\n| | tokens | kept | proposed |\n|---|---|---|---|"
    )?;
    for arm in arms {
        for step in &arm.acceptance_by_context {
            let name = name(arm.figures.speculation);
            writeln!(
                out,
                "| {name} | {} to {} | {} | {} |",
                step.from, step.to, step.accepted, step.drafted
            )?;
        }
    }
    Ok(())
}

fn write_prompts(out: &mut String, report: &BenchReport) -> std::fmt::Result {
    writeln!(
        out,
        "\n### Prompt by prompt\n\n| prompt | | tokens/s | against off | accepted |\n|---|---|---|---|---|"
    )?;
    for prompt in &report.prompts {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            prompt.prompt,
            name(prompt.speculation),
            range(prompt.tokens_per_second.as_ref(), 1),
            prompt.speedup.as_ref().map_or_else(|| "–".to_owned(), against),
            prompt
                .acceptance_rate
                .map_or_else(|| "–".to_owned(), |rate| format!("{rate:.3}")),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_in_snake_case_at_every_depth() {
        let value = serde_json::json!({ "tokensPerSecond": [{ "ttftMs": 1 }], "runs": { "checkKey": "aB" } });
        assert_eq!(
            snake_keys(value),
            serde_json::json!({ "tokens_per_second": [{ "ttft_ms": 1 }], "runs": { "check_key": "aB" } })
        );
    }
}
