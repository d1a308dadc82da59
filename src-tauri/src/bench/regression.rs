//! What became worse between two benchmarks of the same pair on the same machine.

use crate::ipc::{Arm, BenchReport, Call, Circumstances, Regression, SpeculationChoice};

use super::place::moved;
use super::stats;

/// At fixed block sizes acceptance depends on chance only where sampling does; less of a loss than this is none.
const ACCEPTANCE_LOSS: f64 = 0.02;

/// Compares each arm with the newest of the earlier reports that has it. They come newest first; those that ran something
/// else have nothing to compare.
#[must_use]
pub fn regressions(before: &[BenchReport], after: &BenchReport) -> Vec<Regression> {
    let mut found = Vec::new();
    for now in &after.arms {
        let with_it = before
            .iter()
            .filter(|earlier| comparable(earlier, after))
            .find_map(|earlier| {
                let mut arms = earlier.arms.iter();
                let then = arms.find(|arm| arm.figures.speculation == now.figures.speculation)?;
                Some((earlier, then))
            });
        if let Some((earlier, then)) = with_it {
            found.extend(of_arm(then, now, &changes(earlier, after)));
        }
    }
    found
}

/// Whether two reports measured the same, whole, and in the same way: another format may have timed otherwise.
#[must_use]
pub fn comparable(before: &BenchReport, after: &BenchReport) -> bool {
    before.version == after.version
        && !before.stopped
        && !after.stopped
        && before.prompt_ids == after.prompt_ids
        && before.max_tokens == after.max_tokens
        && before.temperature == after.temperature
        && before.setup.exactness == after.setup.exactness
}

fn of_arm(then: &Arm, now: &Arm, changes: &[String]) -> Vec<Regression> {
    let name = name(now.figures.speculation);
    let mut found = Vec::new();
    let mut add = |what: String, before: f64, after: f64, ratio| {
        found.push(Regression {
            what,
            before,
            after,
            ratio,
            changes: changes.to_vec(),
        });
    };
    if let (Some(was), Some(is)) = (&then.figures.tokens_per_second, &now.figures.tokens_per_second)
        && let Some(ratio) = stats::ratio(is, was).filter(|ratio| ratio.call == Call::Lower)
    {
        add(format!("tokens/s, {name}"), was.median, is.median, Some(ratio));
    }
    if let (Some(was), Some(is)) = (&then.figures.ttft_ms, &now.figures.ttft_ms)
        && let Some(ratio) = stats::ratio(is, was).filter(|ratio| ratio.call == Call::Higher)
    {
        add(
            format!("ms to the first token, {name}"),
            was.median,
            is.median,
            Some(ratio),
        );
    }
    // Automatic depth follows the clock, and acceptance the depth.
    let is_fixed = now.figures.speculation != SpeculationChoice::Auto;
    if let (Some(was), Some(is)) = (then.figures.acceptance_rate, now.figures.acceptance_rate)
        && is_fixed
        && is < was - ACCEPTANCE_LOSS
    {
        add(format!("acceptance, {name}"), was, is, None);
    }
    if now.differing.len() > then.differing.len() {
        let (was, is) = (then.differing.len(), now.differing.len());
        add(
            format!("prompts with another text, {name}"),
            was as f64,
            is as f64,
            None,
        );
    }
    found
}

/// What differs of versions, precision and power. A precision that is not known is no other.
pub(super) fn changed(was: &Circumstances, is: &Circumstances) -> Vec<String> {
    let mut changes = Changes::default();
    changes.note("app", &was.app_version, &is.app_version);
    changes.note("MLX", &was.mlx_version, &is.mlx_version);
    if let (Some(was), Some(is)) = (&was.dtype, &is.dtype) {
        changes.note("precision", was, is);
    }
    changes.note("power mode", known(&was.power_mode), known(&is.power_mode));
    changes.note("power", known(&was.power_source), known(&is.power_source));
    changes.0
}

#[derive(Default)]
struct Changes(Vec<String>);

impl Changes {
    fn note(&mut self, what: &str, was: &str, is: &str) {
        if was != is {
            self.0.push(format!("{what} {was} → {is}"));
        }
    }
}

fn known(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("unknown")
}

/// What differs between the two besides the numbers.
fn changes(before: &BenchReport, after: &BenchReport) -> Vec<String> {
    let (was, is) = (&before.setup, &after.setup);
    let mut noted = Changes(changed(&was.into(), &is.into()));
    noted.note("system", known(&was.before.os), known(&is.before.os));
    let packed = |key: &str| {
        let part = key.split(", ").find(|part| part.starts_with("keys and values in"));
        part.unwrap_or("keys and values as they are").to_owned()
    };
    noted.note("cache", &packed(&was.check_key), &packed(&is.check_key));
    let mut changes = noted.0;
    let fingerprint = |key: &str| key.rsplit(", ").next().unwrap_or_default().to_owned();
    let commits = moved(was, &is.target, is.drafter.as_deref());
    if !commits.is_empty() {
        changes.extend(commits);
    } else if fingerprint(&was.check_key) != fingerprint(&is.check_key) {
        changes.push("the model's files".to_owned());
    }
    let load = |report: &BenchReport| report.setup.before.load.map_or(0.0, |load| load[0]);
    if load(after) > load(before) + 1.0 {
        changes.push(format!("load before {:.1} → {:.1}", load(before), load(after)));
    }
    changes
}

/// `off`, `auto` or `block 3`.
#[must_use]
pub fn name(choice: SpeculationChoice) -> String {
    match choice {
        SpeculationChoice::Off => "off".to_owned(),
        SpeculationChoice::Auto => "auto".to_owned(),
        SpeculationChoice::Block { size } => format!("block {size}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::{Conditions, Setup, SideFigures, Winner};

    fn report(rates: &[f64], acceptance: f64) -> BenchReport {
        let arm = Arm {
            figures: SideFigures {
                speculation: SpeculationChoice::Block { size: 3 },
                asked: Vec::new(),
                speculating: true,
                reason: None,
                tokens_per_second: stats::spread(rates),
                ttft_ms: stats::spread(&[50.0, 51.0, 49.0, 50.0, 50.0]),
                total_ms: None,
                tokens_per_round: 2.0,
                acceptance_rate: Some(acceptance),
                acceptance_by_position: vec![acceptance],
            },
            speedup: None,
            warm_ups: 2,
            settled: true,
            acceptance_by_context: Vec::new(),
            checked_tokens: 10,
            differing: Vec::new(),
        };
        BenchReport {
            version: 1,
            setup: Setup {
                started_at: 0.0,
                app_version: "1.0.0".to_owned(),
                mlx_version: "0.32.0".to_owned(),
                model: "m".to_owned(),
                target: "/m".to_owned(),
                drafter: None,
                check_key: "cpu, MLX, float32, 00ff".to_owned(),
                device: "cpu".to_owned(),
                dtype: "float32".to_owned(),
                exactness: "exact".to_owned(),
                in_parts: Vec::new(),
                before: Conditions::default(),
                after: Conditions::default(),
            },
            prompt_ids: vec!["a".to_owned()],
            repetitions: 5,
            max_tokens: 100,
            temperature: 0.0,
            seed: 0.0,
            stopped: false,
            winner: Winner::Unknown,
            arms: vec![arm],
            prompts: Vec::new(),
            costs: Vec::new(),
            passes: Vec::new(),
            draft_ms: None,
            runs: Vec::new(),
        }
    }

    const USUAL: [f64; 5] = [40.0, 40.5, 39.8, 40.1, 40.2];
    const SLOWER: [f64; 5] = [30.0, 30.2, 29.9, 30.1, 30.3];

    fn since(before: &BenchReport, after: &BenchReport) -> Vec<Regression> {
        regressions(std::slice::from_ref(before), after)
    }

    #[test]
    fn an_arm_is_held_against_the_newest_report_that_has_it() {
        let (mut last, before) = (report(&USUAL, 0.6), report(&USUAL, 0.6));
        last.arms[0].figures.speculation = SpeculationChoice::Auto;
        let found = regressions(&[last.clone(), before.clone()], &report(&SLOWER, 0.6));
        assert_eq!(
            (found.len(), found[0].before),
            (1, 40.1),
            "the last one ran something else"
        );
        let newest = report(&SLOWER, 0.6);
        assert_eq!(regressions(&[newest, last, before], &report(&SLOWER, 0.6)), []);
    }

    #[test]
    fn another_commit_is_a_change() {
        let (mut before, mut after) = (report(&USUAL, 0.6), report(&SLOWER, 0.6));
        before.setup.target = "/hub/models--a--b/snapshots/0123456789".to_owned();
        after.setup.target = "/hub/models--a--b/snapshots/abcdef0123".to_owned();
        after.setup.check_key = "cpu, MLX, float32, 00fe".to_owned();
        assert_eq!(
            since(&before, &after)[0].changes,
            ["the model's commit 0123456 → abcdef0"]
        );
        before.version = 1;
        after.version = 2;
        assert_eq!(since(&before, &after), [], "timed otherwise");
    }

    #[test]
    fn packed_keys_and_values_are_no_other_files() {
        let before = report(&[100.0, 101.0, 99.0, 100.0, 100.0], 0.8);
        let mut after = report(&[80.0, 81.0, 79.0, 80.0, 80.0], 0.8);
        after.setup.check_key = "cpu, MLX, float32, keys and values in 8 bits, 00ff".to_owned();
        let found = since(&before, &after);
        let change = "cache keys and values as they are → keys and values in 8 bits";
        assert!(
            !found.is_empty() && found.iter().all(|r| r.changes == [change]),
            "{found:?}"
        );
        after.stopped = true;
        assert_eq!(since(&before, &after), []);
    }

    #[test]
    fn a_slower_update_is_pointed_out_with_its_numbers() {
        let before = report(&USUAL, 0.6);
        let mut after = report(&SLOWER, 0.6);
        after.setup.mlx_version = "0.33.0".to_owned();
        let found = since(&before, &after);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].what.as_str(), found[0].before, found[0].after),
            ("tokens/s, block 3", 40.1, 30.1)
        );
        assert_eq!(found[0].changes, ["MLX 0.32.0 → 0.33.0"]);
        assert!(found[0].ratio.as_ref().unwrap().high.unwrap() < 0.8);
    }

    #[test]
    fn noise_and_gains_are_no_regressions() {
        assert!(since(&report(&USUAL, 0.6), &report(&[39.7, 40.4, 40.0, 39.9, 40.3], 0.59)).is_empty());
        assert!(since(&report(&SLOWER, 0.6), &report(&USUAL, 0.7)).is_empty());
        assert!(
            since(&report(&[40.0], 0.6), &report(&[20.0], 0.6)).is_empty(),
            "one run tells nothing"
        );
    }

    #[test]
    fn lost_acceptance_and_lost_exactness_are_pointed_out() {
        let found = since(&report(&USUAL, 0.6), &report(&USUAL, 0.5));
        assert_eq!(found[0].what, "acceptance, block 3");
        let mut after = report(&USUAL, 0.6);
        after.arms[0].differing.push("a".to_owned());
        assert_eq!(
            since(&report(&USUAL, 0.6), &after)[0].what,
            "prompts with another text, block 3"
        );
    }

    #[test]
    fn what_ran_otherwise_is_not_compared() {
        let mut other = report(&SLOWER, 0.1);
        other.max_tokens = 50;
        assert!(since(&report(&USUAL, 0.6), &other).is_empty());
        let mut other = report(&SLOWER, 0.1);
        other.prompt_ids.push("b".to_owned());
        assert!(since(&report(&USUAL, 0.6), &other).is_empty());
    }
}
