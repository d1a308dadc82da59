//! What a benchmark says, in sentences.

use super::regression::name;
use crate::ipc::{Arm, BenchReport, Call, Ratio, SpeculationChoice, Winner};

/// What may be said in one sentence.
#[must_use]
pub fn verdict(report: &BenchReport) -> String {
    match &report.winner {
        Winner::Fastest { speculation, ratio } => format!(
            "{} gives {} the tokens/s of no speculation.",
            capital(&name(*speculation)),
            against(ratio)
        ),
        Winner::Off => "No speculation is fastest here.".to_owned(),
        Winner::Noise => match slower(report).as_slice() {
            [] => "No winner: the differences are within the noise.".to_owned(),
            [one] => format!("Nothing is faster than off beyond the noise; {one} is slower."),
            many => format!(
                "Nothing is faster than off beyond the noise; {} are slower.",
                listed(many)
            ),
        },
        Winner::Unknown => match unmeasured(report) {
            Some(Unmeasured::Plain(reason)) => format!("No winner: nothing speculated: {reason}."),
            Some(Unmeasured::Short) => "No winner: the replies are too short to measure a rate.".to_owned(),
            None => "No winner: there are too few measurements.".to_owned(),
        },
    }
}

/// Arms that are slower than none beyond the noise.
fn slower(report: &BenchReport) -> Vec<String> {
    let is_slower = |arm: &&Arm| arm.speedup.as_ref().is_some_and(|ratio| ratio.call == Call::Lower);
    let arms = report.arms.iter().filter(is_slower);
    arms.map(|arm| name(arm.figures.speculation)).collect()
}

/// Why there is nothing to compare, beside too few repetitions.
enum Unmeasured {
    /// No arm speculated, and why.
    Plain(String),
    /// No arm has a rate.
    Short,
}

fn unmeasured(report: &BenchReport) -> Option<Unmeasured> {
    let on: Vec<&Arm> = report.arms.iter().filter(|arm| is_on(arm)).collect();
    let first = on.first()?;
    if report.runs.is_empty() {
        return None;
    }
    if on.iter().all(|arm| !arm.figures.speculating) {
        return Some(Unmeasured::Plain(reason(first).to_owned()));
    }
    let has_rate = |arm: &Arm| arm.figures.tokens_per_second.is_some();
    (!report.arms.iter().any(has_rate)).then_some(Unmeasured::Short)
}

fn is_on(arm: &Arm) -> bool {
    arm.figures.speculation != SpeculationChoice::Off
}

/// Why an arm did not speculate, without the full stop.
pub(super) fn reason(arm: &Arm) -> &str {
    let reason = arm.figures.reason.as_deref().unwrap_or("it gave no reason");
    reason.trim_end_matches('.')
}

/// Block sizes that were cut, each in a sentence without its full stop.
#[must_use]
pub fn cut(report: &BenchReport) -> Vec<String> {
    let arms = report.arms.iter().filter(|arm| !arm.figures.asked.is_empty());
    arms.map(|arm| {
        let asked: Vec<String> = arm.figures.asked.iter().map(|asked| name(*asked)).collect();
        let ran = name(arm.figures.speculation);
        capital(&format!("{} ran as {ran}, the most that is exact here", listed(&asked)))
    })
    .collect()
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A ratio and what the noise leaves of it.
#[must_use]
pub fn against(ratio: &Ratio) -> String {
    let interval = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!(" ({low:.2} to {high:.2})"),
        _ => String::new(),
    };
    let call = match ratio.call {
        Call::Higher | Call::Lower => "",
        Call::Noise => ", within the noise",
        Call::TooFew => ", too few runs to tell",
    };
    format!("{:.2}x{interval}{call}", ratio.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_says_when_it_says_nothing() {
        let ratio = |call, low| Ratio {
            value: 1.5,
            low,
            high: low.map(|low| low + 0.2),
            call,
        };
        assert_eq!(against(&ratio(Call::Higher, Some(1.4))), "1.50x (1.40 to 1.60)");
        assert_eq!(
            against(&ratio(Call::Noise, Some(0.9))),
            "1.50x (0.90 to 1.10), within the noise"
        );
        assert_eq!(against(&ratio(Call::TooFew, None)), "1.50x, too few runs to tell");
    }

    #[test]
    fn what_is_slower_is_named_where_nothing_is_faster() {
        let mut report = crate::bench::fake::report();
        report.winner = Winner::Noise;
        assert_eq!(verdict(&report), "No winner: the differences are within the noise.");
        let slow = Some(Ratio {
            value: 0.7,
            low: Some(0.65),
            high: Some(0.75),
            call: Call::Lower,
        });
        report.arms[2].speedup = slow.clone();
        assert_eq!(
            verdict(&report),
            "Nothing is faster than off beyond the noise; block 8 is slower."
        );
        report.arms[1].speedup = slow;
        assert_eq!(
            verdict(&report),
            "Nothing is faster than off beyond the noise; block 2 and block 8 are slower."
        );
    }
}
