//! One request with speculation off and on, in turn, and what came of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use models::{Exactness, GenerateRequest, GenerationEvent, OpVerdict, SelfCheck, Speculation};

use super::figures::{self, Times, gain};
use super::run::{self, Hear, Measured, Runner, Subject};
use crate::ipc::{
    Agreement, CompareEvent, Comparison, Difference, MeasuredRun, ScoredToken, Side, SideFigures, SpeculationChoice,
};
use crate::turn::{Stop, count};

/// Least time between two deltas of a side.
const TELL_EVERY: Duration = Duration::from_millis(34);
/// Tokens shown on either side of a difference.
const SHOWN_TOKENS: usize = 24;

/// What is to be compared.
#[derive(Debug, Clone)]
pub struct ComparePlan {
    /// Both sides' request; its own speculation is replaced.
    pub request: GenerateRequest,
    /// Speculation of the side with it.
    pub speculation: SpeculationChoice,
    /// Measured runs a side.
    pub repetitions: usize,
    /// The message it was started from.
    pub message_id: Option<i32>,
    /// What it says, if it is a reply that ended by itself or at its limit.
    pub reply: Option<Reply>,
    /// The last message of the prompt, to be shown.
    pub prompt: String,
}

/// A reply as it is stored.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its thinking.
    pub reasoning: String,
    /// Its answer.
    pub answer: String,
    /// Whether it ended at the limit of tokens: run again it may go on.
    pub is_cut: bool,
}

impl Reply {
    /// Whether a run says the same, as far as both go: it may have fewer tokens to say it in.
    fn is_said_by(&self, run: &models::Generated) -> bool {
        let is_run_cut = run.finish == models::FinishReason::Length;
        let same = |stored: &str, said: &str, is_last: [bool; 2]| {
            let (stored, said) = (stored.trim(), said.trim());
            stored == said
                || self.is_cut && is_last[0] && said.starts_with(stored)
                || is_run_cut && is_last[1] && stored.starts_with(said)
        };
        // Only what comes last can have been cut.
        let is_last = [&self.answer, &run.answer].map(|answer| answer.trim().is_empty());
        same(&self.reasoning, &run.reasoning, is_last)
            && (same(&self.answer, &run.answer, [true; 2]) || is_run_cut && is_last[1])
    }
}

/// Hears what happens; called on the engine's thread too.
pub type Tell = Arc<dyn Fn(CompareEvent) + Send + Sync>;

/// Runs both sides, warm-ups of each first, then in an order that alternates.
///
/// # Errors
/// What the engine says of any run.
pub fn compare(
    runner: &dyn Runner,
    subject: Subject<'_>,
    plan: &ComparePlan,
    stop: &Arc<Stop>,
    tell: &Tell,
) -> models::Result<Comparison> {
    let mut setup = subject.setup(plan.request.exactness);
    tell(CompareEvent::Started {
        runs: count(2 + 2 * plan.repetitions),
        model: setup.model.clone(),
        prompt: plan.prompt.clone(),
    });
    let mut done: Vec<(Side, Measured)> = Vec::new();
    let mut records = Vec::new();
    for side in [Side::Off, Side::On].into_iter().filter(|_| !stop.is_requested()) {
        tell(CompareEvent::Run { side, repetition: 0 });
        let (hear, rest) = relay(side, tell.clone());
        // The first one is shown, the others say the same.
        let mut shown = Some(hear);
        run::warm_up(
            &run::prepared(&plan.request, wanted(side, plan.speculation)),
            |request| {
                let hear = shown.take().unwrap_or_else(|| Box::new(|_| ()));
                run::measure(runner, request, stop, hear)
            },
        )?;
        rest();
    }
    'all: for repetition in 1..=plan.repetitions {
        let order = if repetition % 2 == 0 {
            [Side::Off, Side::On]
        } else {
            [Side::On, Side::Off]
        };
        for side in order {
            if stop.is_requested() {
                break 'all;
            }
            tell(CompareEvent::Run {
                side,
                repetition: count(repetition),
            });
            let request = run::prepared(&plan.request, wanted(side, plan.speculation));
            let (hear, rest) = relay(side, tell.clone());
            let measured = run::measure(runner, request, stop, hear)?;
            rest();
            if !measured.is_whole() {
                continue;
            }
            let record = measured.record(None, choice(side, plan.speculation), repetition, records.len() + 1);
            tell(CompareEvent::Measured {
                side,
                run: record.clone(),
            });
            records.push(record);
            done.push((side, measured));
        }
    }
    let agreement = agreement(runner, subject, &plan.request, &done, stop)?;
    run::finish(&mut setup);
    Ok(comparison(plan, setup, &done, records, agreement, stop.is_requested()))
}

fn wanted(side: Side, on: SpeculationChoice) -> Speculation {
    crate::turn::speculation(choice(side, on))
}

fn choice(side: Side, on: SpeculationChoice) -> SpeculationChoice {
    match side {
        Side::Off => SpeculationChoice::Off,
        Side::On => on,
    }
}

/// What passes a run's events on, and what tells the text that is left when it is over.
fn relay(side: Side, tell: Tell) -> (Hear, impl FnOnce()) {
    #[derive(Default)]
    struct Untold {
        text: String,
        tokens: usize,
        rate: f64,
        at: Option<Instant>,
    }
    fn flush(untold: &mut Untold, side: Side, tell: &Tell) {
        if !untold.text.is_empty() {
            tell(CompareEvent::Delta {
                side,
                text: std::mem::take(&mut untold.text),
                tokens: count(untold.tokens),
                tokens_per_second: untold.rate,
            });
        }
        untold.at = Some(Instant::now());
    }
    let untold: Arc<Mutex<Untold>> = Arc::default();
    let (heard, told) = (untold.clone(), tell.clone());
    let hear = move |event: &GenerationEvent| {
        let mut untold = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = untold.at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
        match event {
            GenerationEvent::Prefill { done, total } if is_due || done == total => told(CompareEvent::Prefill {
                side,
                done: count(*done),
                total: count(*total),
            }),
            GenerationEvent::Prefill { .. } => {}
            GenerationEvent::Round {
                reasoning,
                answer,
                stats,
                ..
            } => {
                untold.text.push_str(reasoning);
                untold.text.push_str(answer);
                untold.tokens = stats.tokens;
                untold.rate = stats.decode_tokens_per_second;
                if is_due {
                    flush(&mut untold, side, &told);
                }
            }
        }
    };
    let rest = move || flush(&mut untold.lock().unwrap_or_else(PoisonError::into_inner), side, &tell);
    (Box::new(hear), rest)
}

/// Compares every run with the first one without speculation, plain ones first: if those do not repeat themselves,
/// nothing can be said of speculation.
fn agreement(
    runner: &dyn Runner,
    subject: Subject<'_>,
    request: &GenerateRequest,
    done: &[(Side, Measured)],
    stop: &Stop,
) -> models::Result<Agreement> {
    let of = |wanted: Side| done.iter().filter(move |(side, _)| *side == wanted).map(|(_, run)| run);
    let (Some(reference), Some(_)) = (of(Side::Off).next(), of(Side::On).next()) else {
        return Ok(Agreement::Unknown);
    };
    let expected = &reference.generated.tokens;
    let departs =
        |side| of(side).find_map(|run| first_difference(expected, &run.generated.tokens).map(|_| (side, run)));
    let Some((side, run)) = departs(Side::Off).or_else(|| departs(Side::On)) else {
        return Ok(Agreement::Identical {
            tokens: count(expected.len()),
            runs: count(done.len() - 1),
        });
    };
    let difference = explain(runner, subject, request, side, expected, &run.generated.tokens, stop)?;
    Ok(Agreement::Different {
        difference: Box::new(difference),
    })
}

/// The place of the first token that only one of them has.
fn first_difference(expected: &[u32], found: &[u32]) -> Option<usize> {
    if expected == found {
        return None;
    }
    Some(expected.iter().zip(found).take_while(|(a, b)| a == b).count())
}

fn explain(
    runner: &dyn Runner,
    subject: Subject<'_>,
    request: &GenerateRequest,
    side: Side,
    expected: &[u32],
    found: &[u32],
    stop: &Stop,
) -> models::Result<Difference> {
    let position = first_difference(expected, found).unwrap_or_default();
    let before = expected.get(..position).unwrap_or_default();
    let from = |ids: &[u32]| -> Vec<u32> { ids.iter().skip(position).take(SHOWN_TOKENS).copied().collect() };
    let (expected, found) = (from(expected), from(found));
    let tail = before
        .iter()
        .skip(position.saturating_sub(SHOWN_TOKENS))
        .copied()
        .collect();
    // The difference is told even where the scores behind it cannot be.
    // It reads everything up to there again: who stopped does not wait for that.
    let margin = match stop.is_requested() {
        true => None,
        false => runner.margin(request.clone(), before.to_vec()).ok(),
    };
    let recheck = recheck(runner, subject, request, side, stop);
    let of = |ids: &[u32]| margin.as_ref().zip(ids.first()).and_then(|(margin, id)| margin.of(*id));
    let (of_expected, of_found) = (of(&expected), of(&found));
    let apart = of_expected.as_ref().zip(of_found.as_ref());
    let scored = |one: &models::Scored| -> models::Result<ScoredToken> {
        Ok(ScoredToken {
            token: one.token,
            text: runner.spell(vec![one.token])?,
            logit: f64::from(one.logit),
        })
    };
    Ok(Difference {
        side,
        position: count(position),
        before: runner.spell(tail)?,
        expected: runner.spell(expected.clone())?,
        found: runner.spell(found.clone())?,
        expected_tokens: expected,
        found_tokens: found,
        first: margin.as_ref().map(|m| scored(&m.first)).transpose()?,
        second: margin.as_ref().map(|m| scored(&m.second)).transpose()?,
        margin: margin.as_ref().map(|m| f64::from(m.gap())),
        apart: apart.map(|(expected, found)| f64::from(expected.logit - found.logit)),
        of_expected: of_expected.as_ref().map(scored).transpose()?,
        of_found: of_found.as_ref().map(scored).transpose()?,
        suspects: match (&recheck, request.exactness) {
            (Some(recheck), _) => recheck.ops.clone(),
            (None, Exactness::Fast) => subject.in_parts(),
            (None, Exactness::Exact) => Vec::new(),
        },
        recheck: recheck.map(|recheck| recheck.told),
    })
}

/// A self-check that was run anew, against what this load rests on.
struct Recheck {
    /// Operations that would not be run as they are if it were loaded now.
    ops: Vec<String>,
    told: crate::ipc::Recheck,
}

/// Looks for the operation that made exact mode inexact. Plain steps that do not repeat themselves are no block's fault.
fn recheck(
    runner: &dyn Runner,
    subject: Subject<'_>,
    request: &GenerateRequest,
    side: Side,
    stop: &Stop,
) -> Option<Recheck> {
    let used = subject.loaded.self_check.as_ref()?;
    if side == Side::Off || request.exactness == Exactness::Fast || stop.is_requested() {
        return None;
    }
    // The difference is told even where its cause cannot be looked for.
    let fresh = runner.self_check().ok()?;
    Some(renewed(used, &fresh))
}

fn renewed(used: &SelfCheck, fresh: &SelfCheck) -> Recheck {
    // Single rows are exact by themselves, and what may run more rows at once than it does is as exact.
    let is_other = |now: &&OpVerdict| match used.ops.iter().find(|then| then.op == now.op) {
        Some(then) if then.gathered => !now.gathered && !now.is_native(),
        Some(then) => then.rows > now.rows,
        None => true,
    };
    Recheck {
        ops: fresh.ops.iter().filter(is_other).map(|now| now.op.clone()).collect(),
        told: crate::ipc::Recheck {
            checked: count(fresh.ops.len()),
            block: count(fresh.block),
            block_before: count(used.block),
        },
    }
}

fn comparison(
    plan: &ComparePlan,
    setup: crate::ipc::Setup,
    done: &[(Side, Measured)],
    runs: Vec<MeasuredRun>,
    agreement: Agreement,
    stopped: bool,
) -> Comparison {
    let of = |wanted: Side| done.iter().filter(move |(side, _)| *side == wanted).map(|(_, run)| run);
    let figures = |wanted: Side| -> SideFigures {
        let of: Vec<&Measured> = of(wanted).collect();
        let times: Vec<Times> = of.iter().map(|run| Times::one(run)).collect();
        figures::figures(choice(wanted, plan.speculation), &times, &of)
    };
    let text = |wanted: Side| {
        let last = of(wanted).next_back();
        last.map_or_else(String::new, |run| run.generated.text.clone())
    };
    let (off, on) = (figures(Side::Off), figures(Side::On));
    let reply = plan.reply.as_ref().zip(of(Side::Off).next());
    Comparison {
        setup,
        message_id: plan.message_id,
        matches_reply: reply.map(|(reply, run)| reply.is_said_by(&run.generated)),
        prompt: plan.prompt.clone(),
        prompt_tokens: runs.first().map_or(0, |run| run.prompt_tokens),
        seed: plan.request.sampling.seed as f64,
        repetitions: count(plan.repetitions),
        stopped,
        agreement,
        off_text: text(Side::Off),
        on_text: text(Side::On),
        speedup: gain(&on, on.tokens_per_second.as_ref(), off.tokens_per_second.as_ref()),
        off,
        on,
        costs: figures::costs(of(Side::Off), of(Side::On)),
        runs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use crate::ipc::Call;

    #[test]
    fn the_first_token_that_only_one_text_has_is_found() {
        assert_eq!(first_difference(&[1, 2, 3], &[1, 2, 3]), None);
        assert_eq!(first_difference(&[1, 2, 3], &[1, 9, 3]), Some(1));
        assert_eq!(first_difference(&[1, 2, 3], &[1, 2]), Some(2), "ended early");
        assert_eq!(first_difference(&[1], &[1, 2]), Some(1), "went on");
        assert_eq!(first_difference(&[], &[]), None);
    }

    #[test]
    fn a_new_check_names_what_the_old_one_let_run_at_once() {
        let op = |name: &str, rows, gathered| OpVerdict {
            op: name.to_owned(),
            rows,
            gathered,
        };
        let check = |ops: &[OpVerdict], block| SelfCheck {
            ops: ops.to_vec(),
            block,
        };
        let used = check(&[op("a", 8, false), op("b", 1, true), op("c", 4, false)], 16);
        assert!(renewed(&used, &used).ops.is_empty());
        let looser = check(&[op("a", 8, false), op("b", 8, false), op("c", 8, false)], 16);
        assert!(renewed(&used, &looser).ops.is_empty(), "as exact");
        let fresh = check(&[op("a", 1, true), op("b", 1, false), op("c", 3, false)], 4);
        let found = renewed(&used, &fresh);
        assert_eq!(found.ops, ["a", "b", "c"]);
        assert_eq!(
            (found.told.checked, found.told.block, found.told.block_before),
            (3, 4, 16)
        );
    }

    fn compared(fake: &Fake, speculation: SpeculationChoice, tokens: usize, reply: Option<Reply>) -> Comparison {
        let plan = ComparePlan {
            request: GenerateRequest {
                max_tokens: Some(tokens),
                ..GenerateRequest::new(models::Prompt::Raw(String::new()))
            },
            speculation,
            repetitions: 5,
            message_id: None,
            reply,
            prompt: String::new(),
        };
        let tell: Tell = Arc::new(|_| ());
        compare(fake, fake.subject(), &plan, &Arc::default(), &tell).unwrap()
    }

    #[test]
    fn a_short_reply_has_no_speed_and_a_cut_block_is_told_as_it_ran() {
        let fake = Fake {
            exact: 4,
            ..Fake::default()
        };
        let block = |size| SpeculationChoice::Block { size };
        let short = compared(&fake, block(2), 2, None);
        assert_eq!(
            (short.agreement, short.speedup),
            (Agreement::Identical { tokens: 2, runs: 9 }, None)
        );
        let cut = compared(&fake, block(8), 40, None);
        assert_eq!((cut.on.speculation, cut.on.asked), (block(4), vec![block(8)]));
        assert_eq!(cut.speedup.unwrap().call, Call::Higher);
        assert_eq!(
            compared(&fake, SpeculationChoice::Auto, 40, None).speedup.unwrap().call,
            Call::Noise
        );
    }

    #[test]
    fn a_stored_reply_is_held_against_what_is_said_now() {
        let mut run = Fake::default().measured(SpeculationChoice::Off, 12).generated;
        run.reasoning = " Hm, well. ".to_owned();
        run.answer = "Paris is it.".to_owned();
        let says = |reasoning: &str, answer: &str, is_cut| {
            let (reasoning, answer) = (reasoning.to_owned(), answer.to_owned());
            Reply {
                reasoning,
                answer,
                is_cut,
            }
            .is_said_by(&run)
        };
        assert!(says("Hm, well.", "Paris is it.", false));
        assert!(says("Hm, well.", "Paris is", true), "as far as it goes");
        assert!(says("Hm,", "", true));
        assert!(
            !says("Hm, well.", "Paris is", false) && !says("Hm,", "Paris", true) && !says("Hm, well.", "Rome", true)
        );
        run.finish = models::FinishReason::Length;
        run.answer = "Paris".to_owned();
        let said = |answer: &str| Reply {
            reasoning: "Hm, well.".to_owned(),
            answer: answer.to_owned(),
            is_cut: false,
        };
        assert!(said("Paris is it.").is_said_by(&run) && !said("Rome is it.").is_said_by(&run));
        let stored = |answer: &str| Reply {
            reasoning: String::new(),
            answer: answer.to_owned(),
            is_cut: false,
        };
        let matches = |reply| compared(&Fake::default(), SpeculationChoice::Auto, 12, reply).matches_reply;
        assert_eq!(
            (matches(None), matches(Some(stored(""))), matches(Some(stored("Rome")))),
            (None, Some(true), Some(false))
        );
    }
}
