//! Comparisons and benchmarks with the real engine and the built-in pair.
//!
//! That a difference is caught is shown with an engine that is broken on purpose: the comparison runs requests through the
//! trait `Runner`, and the test's own changes one token of what the real engine says with speculation on.

mod history;
mod verdict;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use app::bench::{BenchPlan, ComparePlan, Runner, Subject, Tell, bench, compare, json, markdown, prompts};
use app::ipc::{Agreement, BenchReport, Call, CompareEvent, LocalModel, PromptKind, Side, SpeculationChoice, Winner};
use app::library::Assets;
use app::turn::Stop;
use models::{
    Calibration, Engine, Exactness, GenerateRequest, Generated, LoadRequest, Loaded, Margin, Prompt, SamplingParams,
    SelfCheck, Sink, Speculation,
};
use serde_json::Value;
use tests::{builtin, root};

const STORY: &str = "Tell me a long story about a dog and the sea.";
const BLOCK: SpeculationChoice = SpeculationChoice::Block { size: 3 };

struct Pair {
    engine: Engine,
    loaded: Loaded,
    model: LocalModel,
}

impl Pair {
    fn load() -> Self {
        let engine = Engine::start();
        let loaded = engine
            .load(LoadRequest {
                target: builtin("target"),
                drafter: Some(builtin("drafter")),
                calibration: Calibration::On {
                    conditions: String::new(),
                },
                ..LoadRequest::default()
            })
            .unwrap();
        let model = Assets::in_dir(&root().join("assets"))
            .describe("builtin", None)
            .unwrap();
        Pair { engine, loaded, model }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            model: &self.model,
            loaded: &self.loaded,
        }
    }
}

fn story(tokens: usize) -> GenerateRequest {
    GenerateRequest {
        max_tokens: Some(tokens),
        ignore_eos: true,
        ..GenerateRequest::new(Prompt::Raw(STORY.to_owned()))
    }
}

fn plan(request: GenerateRequest, repetitions: usize) -> ComparePlan {
    ComparePlan {
        request,
        speculation: BLOCK,
        repetitions,
        message_id: None,
        reply: None,
        prompt: STORY.to_owned(),
    }
}

fn heard() -> (Arc<Mutex<Vec<CompareEvent>>>, Tell) {
    let events: Arc<Mutex<Vec<CompareEvent>>> = Arc::default();
    let told = events.clone();
    (events, Arc::new(move |event| told.lock().unwrap().push(event)))
}

/// The real engine, but for one token of each reply with speculation on.
struct OneTokenWrong<'a> {
    engine: &'a Engine,
    at: usize,
    id: u32,
    /// An operation that a new self-check is to find changed.
    other: Option<String>,
}

impl Runner for OneTokenWrong<'_> {
    fn generate(&self, request: GenerateRequest, sink: Box<dyn Sink>) -> models::Result<Generated> {
        let speculates = request.speculation != Speculation::Off;
        let mut generated = self.engine.generate(request, sink)?;
        if let Some(token) = generated.tokens.get_mut(self.at).filter(|_| speculates) {
            *token = self.id;
        }
        Ok(generated)
    }

    fn margin(&self, request: GenerateRequest, before: Vec<u32>) -> models::Result<Margin> {
        self.engine.margin(request, before)
    }

    fn self_check(&self) -> models::Result<SelfCheck> {
        let mut check = self.engine.self_check()?;
        if let Some(op) = check.ops.iter_mut().find(|op| self.other.as_ref() == Some(&op.op)) {
            op.rows = 1;
        }
        Ok(check)
    }

    fn spell(&self, ids: Vec<u32>) -> models::Result<String> {
        self.engine.spell(ids)
    }
}

#[test]
fn a_comparison_of_the_built_in_pair_is_identical_and_says_what_it_measured() {
    let pair = Pair::load();
    let (events, tell) = heard();
    let done = compare(
        &pair.engine,
        pair.subject(),
        &plan(story(24), 3),
        &Arc::default(),
        &tell,
    )
    .unwrap();
    assert_eq!(done.agreement, Agreement::Identical { tokens: 24, runs: 5 });
    assert_eq!((&done.off_text, done.stopped), (&done.on_text, false));
    assert_eq!(done.runs.len(), 6);
    assert!(!done.off.speculating && done.on.speculating);
    assert_eq!(done.off.tokens_per_second.as_ref().unwrap().values.len(), 3);
    assert_eq!(done.on.acceptance_by_position.len(), 2);
    assert!(done.on.tokens_per_round > 1.0, "{}", done.on.tokens_per_round);
    let ratio = done.speedup.as_ref().unwrap();
    assert!(ratio.low.unwrap() <= ratio.value && ratio.value <= ratio.high.unwrap());
    let rows: Vec<u32> = done.costs.iter().map(|cost| cost.rows).collect();
    assert_eq!(rows, [1, 3]);
    assert_eq!(done.costs[0].ratio, Some(1.0));

    // Off first, then in turn; the warm-ups are told and not measured.
    let events = events.lock().unwrap();
    let order: Vec<(Side, u32)> = events
        .iter()
        .filter_map(|event| match event {
            CompareEvent::Run { side, repetition } => Some((*side, *repetition)),
            _ => None,
        })
        .collect();
    let (off, on) = (Side::Off, Side::On);
    assert_eq!(
        order,
        [
            (off, 0),
            (on, 0),
            (on, 1),
            (off, 1),
            (off, 2),
            (on, 2),
            (on, 3),
            (off, 3)
        ]
    );
    assert!(
        matches!(events[0], CompareEvent::Started { runs: 8, .. }),
        "{:?}",
        events[0]
    );
    // The last run's deltas are its whole text.
    let last = events
        .iter()
        .rposition(|event| matches!(event, CompareEvent::Run { .. }))
        .unwrap();
    let text: String = events[last..]
        .iter()
        .filter_map(|event| match event {
            CompareEvent::Delta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text.trim(), done.off_text.trim());
}

#[test]
fn one_wrong_token_is_caught_where_it_is() {
    let pair = Pair::load();
    let plain = pair
        .engine
        .generate(
            GenerateRequest {
                speculation: Speculation::Off,
                ..story(30)
            },
            Box::new(|_| std::ops::ControlFlow::Continue(())),
        )
        .unwrap();
    let at = 17;
    let wrong = (plain.tokens[at] + 1) % 100 + 300;
    let broken = OneTokenWrong {
        engine: &pair.engine,
        at,
        id: wrong,
        other: None,
    };
    let (_, tell) = heard();
    let done = compare(&broken, pair.subject(), &plan(story(30), 1), &Arc::default(), &tell).unwrap();
    let Agreement::Different { difference } = &done.agreement else {
        panic!("{:?}", done.agreement)
    };
    assert_eq!((difference.side, difference.position), (Side::On, at as u32));
    assert_eq!(difference.expected_tokens, plain.tokens[at..]);
    assert_eq!(difference.found_tokens[0], wrong);
    assert_eq!(difference.found_tokens[1..], plain.tokens[at + 1..]);
    let spelled = |ids: &[u32]| pair.engine.spell(ids.to_vec()).unwrap();
    assert_eq!(difference.before, spelled(&plain.tokens[..at]));
    assert_eq!(difference.expected, spelled(&plain.tokens[at..]));
    assert!(difference.found.starts_with(&spelled(&[wrong])));
    // Greedy, the model's best token there is the one that plain decoding gave.
    let (first, second) = (difference.first.as_ref().unwrap(), difference.second.as_ref().unwrap());
    assert_eq!(first.token, plain.tokens[at]);
    assert_eq!(difference.margin, Some(first.logit - second.logit));
    assert!(difference.margin.unwrap() >= 0.0 && first.token != second.token);
    // The two that differ have scores of their own.
    let (expected, found) = (
        difference.of_expected.as_ref().unwrap(),
        difference.of_found.as_ref().unwrap(),
    );
    assert_eq!((expected, found.token), (first, wrong));
    assert_eq!(difference.apart, Some(expected.logit - found.logit));
    assert!(difference.apart >= difference.margin);
    // The self-check, run anew, finds nothing: the engine is as it was, only the test changed its words.
    assert!(difference.suspects.is_empty());
    let used = pair.loaded.self_check.as_ref().unwrap();
    let recheck = difference.recheck.unwrap();
    assert_eq!(recheck.checked as usize, used.ops.len());
    assert_eq!(
        (recheck.block as usize, recheck.block_before as usize),
        (used.block, used.block)
    );

    // Where it finds an operation changed, that one is named.
    let op = &used.ops.iter().find(|op| op.is_native()).unwrap().op;
    let broken = OneTokenWrong {
        other: Some(op.clone()),
        ..broken
    };
    let done = compare(&broken, pair.subject(), &plan(story(18), 1), &Arc::default(), &tell).unwrap();
    let Agreement::Different { difference } = &done.agreement else {
        panic!("{:?}", done.agreement)
    };
    assert_eq!(difference.suspects, [op.clone()]);
}

#[test]
fn the_margin_is_that_of_plain_decoding_at_every_place() {
    let pair = Pair::load();
    let go_on = |_| std::ops::ControlFlow::Continue(());
    let request = GenerateRequest {
        speculation: Speculation::Off,
        ..story(12)
    };
    let plain = pair.engine.generate(request.clone(), Box::new(go_on)).unwrap();
    for at in [0, 1, 5, 11] {
        let margin = pair
            .engine
            .margin(request.clone(), plain.tokens[..at].to_vec())
            .unwrap();
        assert_eq!(margin.first.token, plain.tokens[at], "token {at}");
        assert!(margin.gap() >= 0.0);
    }
    let unknown = pair.engine.margin(request, vec![u32::MAX]);
    assert!(unknown.is_err());
}

fn run_bench(kinds: &[PromptKind], repetitions: usize) -> BenchReport {
    let pair = Pair::load();
    let plan = BenchPlan {
        prompts: prompts(kinds),
        arms: vec![SpeculationChoice::Block { size: 2 }],
        repetitions,
        max_tokens: 14,
        sampling: SamplingParams::default(),
        exactness: Exactness::Exact,
    };
    bench(&pair.engine, pair.subject(), &plan, &Arc::default(), &|_| ()).unwrap()
}

/// One for the tests that look at a whole report: it takes its time.
fn short_bench() -> &'static BenchReport {
    static REPORT: OnceLock<BenchReport> = OnceLock::new();
    REPORT.get_or_init(|| run_bench(&[PromptKind::Predictable, PromptKind::Unpredictable], 3))
}

fn faults(report: &Value) -> Vec<String> {
    tests::schema::faults(&tests::json(&root().join("assets/bench/report.schema.json")), report)
}

fn assert_valid(report: &Value) {
    let faults = faults(report);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_report_is_what_its_schema_says_and_holds_what_is_to_be_reported() {
    let report = short_bench();
    let value = json(report);
    assert_valid(&value);
    assert_eq!(report.runs.len(), 2 * 2 * 3, "prompts, arms, repetitions");
    let orders: BTreeSet<u32> = report.runs.iter().map(|run| run.order).collect();
    assert_eq!(orders.len(), report.runs.len());
    for arm in &report.arms {
        assert!(arm.differing.is_empty(), "{:?}", arm.figures.speculation);
        assert_eq!(arm.figures.tokens_per_second.as_ref().unwrap().values.len(), 3);
    }
    assert!(report.costs.iter().any(|cost| cost.rows == 2 && cost.ratio.is_some()));
    let passes: Vec<u32> = report.passes.iter().map(|pass| pass.rows).collect();
    assert_eq!(passes, [1, 2, 3, 4, 6, 8], "as the load measured them");
    assert!(report.passes[0].ratio == 1.0 && report.draft_ms.unwrap() > 0.0);
    assert!(report.arms.iter().all(|arm| (2..=4).contains(&arm.warm_ups)));
    let text = markdown(report, &[]);
    for wanted in [
        "| chip |",
        "| memory |",
        "| load, before and after |",
        "### The target's forward pass alone",
        "### Cost of a whole round",
        "T(K)/T(1)",
        "| warm-ups before |",
        "identical to off",
        "Raw numbers",
    ] {
        assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
    }

    // The schema is no empty promise.
    let broken = |change: fn(&mut Value)| {
        let mut value = value.clone();
        change(&mut value);
        !faults(&value).is_empty()
    };
    assert!(broken(|v| v["arms"][0]["figures"]["tokens_per_second"] = "fast".into()));
    assert!(broken(|v| v["setup"]["before"]["load"] = 1.into()));
    assert!(broken(|v| drop(v.as_object_mut().unwrap().remove("runs"))));
    assert!(broken(|v| v["surprise"] = true.into()));
    assert!(broken(|v| v["winner"]["verdict"] = "certainly".into()));
}

#[test]
fn one_repetition_calls_no_winner() {
    let report = run_bench(&[PromptKind::Predictable], 1);
    assert_eq!(report.winner, Winner::Unknown);
    let told = report.arms.iter().filter_map(|arm| arm.speedup.as_ref());
    assert!(told.clone().count() > 0 && told.clone().all(|ratio| ratio.call == Call::TooFew));
    assert_valid(&json(&report));
}

#[test]
fn a_stop_before_the_first_run_leaves_nothing_to_say() {
    let pair = Pair::load();
    let stop = Arc::new(Stop::default());
    stop.request();
    let (_, tell) = heard();
    let done = compare(&pair.engine, pair.subject(), &plan(story(8), 2), &stop, &tell).unwrap();
    assert_eq!(
        (done.agreement, done.runs.len(), done.stopped),
        (Agreement::Unknown, 0, true)
    );
    assert_eq!((done.speedup, done.off.tokens_per_second), (None, None));
}
