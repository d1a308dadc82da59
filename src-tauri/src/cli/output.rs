//! Standard output and error: the only place that writes to them.

use std::io::{self, ErrorKind, Write};

use crate::ipc::{AppError, ExactnessChoice, Run};

/// Writes a line to standard error; there is nobody to tell if that fails.
pub(super) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes to standard error without a line end.
pub(super) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

/// Writes a line to standard output; a reader that went away is no failure.
pub(super) fn line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    quiet(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}

/// Writes `{"error": ...}` to standard output.
pub(super) fn error_json(error: &AppError) {
    let _ = line(&serde_json::json!({ "error": error }).to_string());
}

fn quiet(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Streams a reply to standard output, its thinking between tags.
pub(super) struct Text {
    dim: bool,
    thinking: bool,
    ends_line: bool,
    answer: usize,
    reasoning: usize,
}

impl Text {
    /// With `dim`, thinking is shown dimmed in place of tags.
    pub(super) fn new(dim: bool) -> Self {
        Text {
            dim,
            thinking: false,
            ends_line: true,
            answer: 0,
            reasoning: 0,
        }
    }

    /// Writes what is new.
    pub(super) fn push(&mut self, reasoning: &str, answer: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        self.reasoning += reasoning.len();
        self.answer += answer.len();
        if !reasoning.is_empty() {
            if !self.thinking {
                self.thinking = true;
                stdout.write_all(if self.dim { b"\x1b[2m" } else { b"<think>\n" })?;
            }
            stdout.write_all(reasoning.as_bytes())?;
            self.ends_line = reasoning.ends_with('\n');
        }
        if !answer.is_empty() {
            self.end_thinking(&mut stdout)?;
            stdout.write_all(answer.as_bytes())?;
            self.ends_line = answer.ends_with('\n');
        }
        stdout.flush()
    }

    /// Writes what the whole texts have beyond what was written, and ends the line.
    pub(super) fn finish(&mut self, reasoning: &str, answer: &str) -> io::Result<()> {
        let rest = |whole: &str, written: usize| whole.get(written..).unwrap_or_default().to_owned();
        let (reasoning, answer) = (rest(reasoning, self.reasoning), rest(answer, self.answer));
        self.push(&reasoning, &answer)?;
        let mut stdout = io::stdout().lock();
        self.end_thinking(&mut stdout)?;
        if !self.ends_line {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    }

    fn end_thinking(&mut self, stdout: &mut impl Write) -> io::Result<()> {
        if std::mem::take(&mut self.thinking) {
            if !self.ends_line {
                stdout.write_all(b"\n")?;
            }
            stdout.write_all(if self.dim { b"\x1b[0m" } else { b"</think>\n\n" })?;
            self.ends_line = true;
        }
        Ok(())
    }
}

/// One line of figures.
pub(super) fn figures(run: &Run) -> String {
    let mut parts = vec![
        format!("{} tokens", run.tokens),
        format!("{:.1} tok/s", run.tokens_per_second),
    ];
    if run.speculating {
        parts.push(format!("{:.2} tok/round", run.tokens_per_round));
        if run.drafted > 0 {
            parts.push(format!("{:.0} % accepted", 100.0 * run.acceptance_rate));
        }
        parts.push(run.sentence.clone());
        parts.extend(run.wiring.as_ref().map(|name| format!("wiring {name}")));
    }
    parts.push(format!("{:.2} s to first token", run.ttft_ms / 1000.0));
    match run.reason.as_deref() {
        Some(reason) if run.speculating => parts.push(reason.to_owned()),
        Some(reason) => parts.push(format!("no speculation: {reason}")),
        None => {}
    }
    if run.exactness == ExactnessChoice::Fast {
        parts.push(run.exactness_sentence.clone());
    }
    parts.push(format!("seed {}", run.seed));
    parts.join(" · ")
}
