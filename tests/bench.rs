//! Comparisons and benchmarks with the real engine and the built-in pair.
//!
//! That a difference is caught is shown with an engine that is broken on purpose: the comparison runs requests through the
//! trait `Runner`, and the test's own changes one token of what the real engine says with speculation on.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use app::bench::{BenchPlan, ComparePlan, Runner, Subject, Tell, bench, compare, json, markdown, prompts, regressions};
use app::ipc::{
    Agreement, BenchReport, Call, CompareEvent, CompareRequest, Comparison, LocalModel, PromptKind, Side,
    SpeculationChoice, TurnEvent, TurnOptions, Winner,
};
use app::library::Assets;
use app::state::AppState;
use app::store::Store;
use app::turn::Stop;
use models::{
    Engine, Exactness, GenerateRequest, Generated, LoadRequest, Loaded, Margin, Prompt, SamplingParams, Sink,
    Speculation,
};
use serde_json::Value;
use tempfile::TempDir;
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
        &plan(story(40), 3),
        &Arc::default(),
        &tell,
    )
    .unwrap();
    assert_eq!(done.agreement, Agreement::Identical { tokens: 40, runs: 5 });
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
    // In exact mode no operation runs at once that must not.
    assert!(difference.suspects.is_empty());
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

fn short_bench(pair: &Pair, repetitions: usize) -> BenchReport {
    let plan = BenchPlan {
        prompts: prompts(&[PromptKind::Facts, PromptKind::Predictable]),
        arms: vec![SpeculationChoice::Block { size: 2 }, SpeculationChoice::Auto],
        repetitions,
        max_tokens: 12,
        sampling: SamplingParams::default(),
        exactness: Exactness::Exact,
    };
    bench(&pair.engine, pair.subject(), &plan, &Arc::default(), &|_| ()).unwrap()
}

fn schema() -> jsonschema::Validator {
    let schema = tests::json(&root().join("assets/bench/report.schema.json"));
    jsonschema::validator_for(&schema).unwrap()
}

fn assert_valid(report: &Value) {
    let validator = schema();
    let faults: Vec<String> = validator
        .iter_errors(report)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_report_is_what_its_schema_says_and_holds_what_is_to_be_reported() {
    let pair = Pair::load();
    let report = short_bench(&pair, 3);
    let value = json(&report);
    assert_valid(&value);
    assert_eq!(report.runs.len(), 3 * 3 * 3, "prompts, arms, repetitions");
    let orders: BTreeSet<u32> = report.runs.iter().map(|run| run.order).collect();
    assert_eq!(orders.len(), report.runs.len());
    for arm in &report.arms {
        assert!(arm.differing.is_empty(), "{:?}", arm.figures.speculation);
        assert_eq!(arm.figures.tokens_per_second.as_ref().unwrap().values.len(), 3);
    }
    assert!(report.costs.iter().any(|cost| cost.rows == 2 && cost.ratio.is_some()));
    let text = markdown(&report, &[]);
    for wanted in [
        "| chip |",
        "| memory |",
        "| load, before and after |",
        "T(K)/T(1)",
        "identical to off",
        "Raw numbers",
    ] {
        assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
    }

    // The schema is no empty promise.
    let validator = schema();
    let broken = |change: fn(&mut Value)| {
        let mut value = value.clone();
        change(&mut value);
        !validator.is_valid(&value)
    };
    assert!(broken(|v| v["arms"][0]["figures"]["tokens_per_second"] = "fast".into()));
    assert!(broken(|v| v["setup"]["before"]["load"] = 1.into()));
    assert!(broken(|v| drop(v.as_object_mut().unwrap().remove("runs"))));
    assert!(broken(|v| v["surprise"] = true.into()));
    assert!(broken(|v| v["winner"]["verdict"] = "certainly".into()));
}

#[test]
fn one_repetition_calls_no_winner() {
    let pair = Pair::load();
    let report = short_bench(&pair, 1);
    assert_eq!(report.winner, Winner::Unknown);
    let told = report.arms.iter().filter_map(|arm| arm.speedup.as_ref());
    assert!(told.clone().count() > 0 && told.clone().all(|ratio| ratio.call == Call::TooFew));
    assert_valid(&json(&report));
}

/// The app with the built-in model loaded.
async fn app() -> (AppState, TempDir) {
    let dir = TempDir::new().unwrap();
    let assets = Assets::in_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets"));
    let state = AppState::open_in(dir.path(), assets).await.unwrap();
    state.library.start().await.unwrap();
    (state, dir)
}

fn asked(prompt: Option<&str>, message_id: Option<i32>, repetitions: u32) -> CompareRequest {
    CompareRequest {
        message_id,
        prompt: prompt.map(str::to_owned),
        options: TurnOptions {
            temperature: Some(0.0),
            max_tokens: Some(24),
            ..TurnOptions::default()
        },
        repetitions,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_run_again_as_it_was_and_kept_in_the_history() {
    let (state, _dir) = app().await;
    let options = TurnOptions {
        temperature: Some(0.0),
        seed: Some(11.0),
        max_tokens: Some(24),
        ..TurnOptions::default()
    };
    let reply = state
        .turns
        .send(None, "What is the capital of France?", &options, Box::new(|_| true))
        .await
        .unwrap();
    let mut events = Vec::new();
    let done = state
        .benches
        .compare(&asked(None, Some(reply.id), 1), |event| {
            events.push(event);
            true
        })
        .await
        .unwrap();
    assert!(
        matches!(done.agreement, Agreement::Identical { .. }),
        "{:?}",
        done.agreement
    );
    assert_eq!((done.seed, done.message_id), (11.0, Some(reply.id)));
    assert_eq!(done.prompt, "What is the capital of France?");
    let run = reply.run.unwrap();
    assert_eq!(
        done.prompt_tokens, run.prompt_tokens,
        "the conversation up to the reply"
    );
    assert!(done.on_text.contains("Paris") && reply.content.trim() == done.on_text.trim());

    let Some(CompareEvent::Done { id: Some(id), .. }) = events.last() else {
        panic!("{:?}", events.last())
    };
    let kept: Comparison = state.store.comparison(*id).await.unwrap();
    assert_eq!(kept, done);
    let history = state.benches.history().await.unwrap();
    assert_eq!(history.comparisons.len(), 1);
    assert_eq!(history.comparisons[0].identical, Some(true));
    assert_eq!(history.comparisons[0].speedup, None, "one run calls no winner");
    assert!(state.store.comparison(id + 1).await.is_err());
    // A person's own message is no reply.
    let question = state
        .benches
        .compare(&asked(None, Some(reply.id - 1), 1), |_| true)
        .await;
    assert_eq!(question.unwrap_err().kind, "not_found");
    state.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_takes_the_only_place_and_can_be_stopped() {
    let (state, _dir) = app().await;
    let (started, mut running) = tokio::sync::mpsc::unbounded_channel();
    let benches = state.benches.clone();
    let request = CompareRequest {
        options: TurnOptions {
            temperature: Some(50.0),
            max_tokens: Some(2000),
            ..asked(None, None, 1).options
        },
        ..asked(Some(STORY), None, 50)
    };
    let comparison = tokio::spawn(async move {
        let mut last = None;
        let outcome = benches
            .compare(&request, |event| {
                if matches!(event, CompareEvent::Delta { .. }) {
                    let _ = started.send(());
                }
                last = Some(event);
                true
            })
            .await;
        (outcome, last)
    });
    running.recv().await.unwrap();

    let second = state.benches.compare(&asked(Some(STORY), None, 1), |_| true).await;
    assert_eq!(second.unwrap_err().kind, "busy");
    let mut told = Vec::new();
    let (sender, mut refused) = tokio::sync::mpsc::unbounded_channel();
    let listener = Box::new(move |event: TurnEvent| sender.send(event).is_ok());
    let reply = state.turns.send(None, "Hello", &TurnOptions::default(), listener).await;
    assert_eq!(reply.unwrap_err().kind, "busy");
    refused.recv_many(&mut told, 8).await;
    assert!(
        matches!(told[..], [TurnEvent::Failed { message: None, .. }]),
        "{told:?}"
    );
    assert!(
        state.load_model("builtin", None).await.is_err(),
        "not under a comparison"
    );

    let at = std::time::Instant::now();
    state.turns.stop();
    let (outcome, last) = comparison.await.unwrap();
    assert!(at.elapsed() < std::time::Duration::from_secs(10));
    let done = outcome.unwrap();
    assert!(done.stopped && done.runs.len() < 100);
    assert!(matches!(last, Some(CompareEvent::Done { .. })));

    // What is free again works.
    let again = state
        .benches
        .compare(&asked(Some(STORY), None, 1), |_| true)
        .await
        .unwrap();
    assert!(
        matches!(again.agreement, Agreement::Identical { tokens: 24, .. }),
        "{:?}",
        again.agreement
    );
    state.close().await;
}

#[tokio::test]
async fn a_slower_benchmark_is_found_in_the_history_of_its_pair_alone() {
    let report = tokio::task::spawn_blocking(|| short_bench(&Pair::load(), 3))
        .await
        .unwrap();
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let scaled = |by: f64, version: &str| {
        let mut report = report.clone();
        report.setup.app_version = version.to_owned();
        for (place, arm) in report.arms.iter_mut().enumerate() {
            if let Some(spread) = &mut arm.figures.tokens_per_second {
                // A steady machine, so that only what is scaled can be seen.
                let steady = [100.0, 100.5, 99.5].map(|rate| if place == 1 { rate * by } else { rate });
                spread.values = steady.to_vec();
                spread.median = steady[0];
            }
        }
        report
    };
    let first = store.add_bench(&scaled(1.0, "1.0.0")).await.unwrap();
    let mut other = scaled(9.0, "1.0.5");
    other.setup.target = "/another/model".to_owned();
    store.add_bench(&other).await.unwrap();
    let mut half = scaled(9.0, "1.0.6");
    half.stopped = true;
    store.add_bench(&half).await.unwrap();
    let slower = scaled(0.6, "1.1.0");
    let second = store.add_bench(&slower).await.unwrap();
    assert!(store.bench_before(&slower, Some(first)).await.unwrap().is_none());
    let before = store.bench_before(&slower, Some(second)).await.unwrap().unwrap();
    assert_eq!(
        before.setup.app_version, "1.0.0",
        "the other pair's and the stopped one are passed over"
    );
    let found = regressions(&before, &slower);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].what.as_str(), found[0].before, found[0].after),
        ("tokens/s, block 2", 100.0, 60.0)
    );
    assert_eq!(found[0].changes, ["app 1.0.0 → 1.1.0"]);
    assert!(markdown(&slower, &found).contains("tokens/s, block 2: 100.0 → 60.0"));
    assert_eq!(store.benches().await.unwrap().len(), 4);
    store.close().await;

    // It outlives the process.
    let store = Store::open(dir.path()).await.unwrap();
    assert_eq!(store.bench(second).await.unwrap(), slower);
    store.close().await;
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
