use super::*;
use crate::bench::fake::arm;
use crate::ipc::Conditions;

fn under() -> Circumstances {
    Circumstances {
        app_version: "1.0.0".to_owned(),
        mlx_version: "0.32.2".to_owned(),
        dtype: Some("float32".to_owned()),
        power_mode: Some("balanced".to_owned()),
        power_source: Some("mains".to_owned()),
    }
}

fn now() -> Now {
    Now {
        under: under(),
        files_changed_at: 10.0,
    }
}

fn block(size: u32) -> SpeculationChoice {
    SpeculationChoice::Block { size }
}

/// At `at`, with block 2 and 4 measured as given.
fn report(at: f64, two: (f64, Call), four: (f64, Call), winner: Winner) -> BenchReport {
    let conditions = Conditions {
        power_mode: under().power_mode,
        power_source: under().power_source,
        ..Conditions::default()
    };
    BenchReport {
        version: 1,
        setup: Setup {
            started_at: at,
            app_version: under().app_version,
            mlx_version: under().mlx_version,
            model: "m".to_owned(),
            target: "/m".to_owned(),
            drafter: None,
            check_key: "cpu, MLX, float32, 00ff".to_owned(),
            device: "cpu".to_owned(),
            dtype: "float32".to_owned(),
            exactness: "exact".to_owned(),
            in_parts: Vec::new(),
            before: conditions.clone(),
            after: conditions,
        },
        prompt_ids: vec!["a".to_owned(), "b".to_owned()],
        repetitions: 5,
        max_tokens: 100,
        temperature: 0.0,
        seed: 0.0,
        stopped: false,
        winner,
        arms: vec![
            arm(SpeculationChoice::Off, None, &[]),
            arm(block(2), Some(two), &[0.8]),
            arm(block(4), Some(four), &[0.8, 0.4, 0.1]),
        ],
        prompts: Vec::new(),
        costs: Vec::new(),
        passes: Vec::new(),
        draft_ms: None,
        runs: Vec::new(),
    }
}

fn fast(at: f64) -> BenchReport {
    let ratio = Ratio {
        value: 1.4,
        low: Some(1.3),
        high: Some(1.5),
        call: Call::Higher,
    };
    let winner = Winner::Fastest {
        speculation: block(4),
        ratio,
    };
    report(at, (1.2, Call::Higher), (1.4, Call::Higher), winner)
}

fn told(benches: Vec<BenchReport>, replies: Vec<Estimate>) -> Option<(PairVerdict, Prior)> {
    let history = PairHistory {
        target: "/m".to_owned(),
        drafter: None,
        benches,
        replies,
    };
    judge(&history, &now())
}

fn estimates(speedups: &[f64]) -> Vec<Estimate> {
    let of = |(i, speedup): (usize, &f64)| Estimate {
        made_at: 100.0 - i as f64,
        under: under(),
        depth: if i == 0 { 1 } else { 2 },
        speedup: *speedup,
        acceptance: vec![0.7],
    };
    speedups.iter().enumerate().map(of).collect()
}

#[test]
fn a_benchmark_says_what_won_and_where_to_begin() {
    let (verdict, prior) = told(vec![fast(50.0)], estimates(&[0.5; 8])).unwrap();
    assert!(verdict.changes.is_empty() && !verdict.some_slower);
    assert!(matches!(verdict.says, Winner::Fastest { speculation, .. } if speculation == block(4)));
    assert_eq!(
        verdict.source,
        VerdictSource::Benchmark {
            prompts: 2,
            repetitions: 5
        },
        "it counts more than estimates"
    );
    assert_eq!(prior.depth, Some(3));
    let expected = [0.8, 0.5, 0.25];
    assert!(prior.acceptance.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9));
    assert_eq!(prior.acceptance.len(), 3);
}

#[test]
fn within_the_noise_no_depth_is_named_and_slower_ones_are_not_begun_with() {
    let noise = report(50.0, (1.1, Call::Noise), (0.9, Call::Noise), Winner::Noise);
    let (verdict, prior) = told(vec![noise], Vec::new()).unwrap();
    assert_eq!(
        (verdict.says, verdict.some_slower, prior.depth),
        (Winner::Noise, false, None)
    );
    let slower = report(50.0, (0.8, Call::Lower), (0.5, Call::Lower), Winner::Off);
    let (verdict, prior) = told(vec![slower], Vec::new()).unwrap();
    assert_eq!(
        (verdict.says, verdict.some_slower, prior.depth),
        (Winner::Off, true, Some(0))
    );
}

#[test]
fn what_changed_makes_it_stale_and_no_beginning() {
    let mut old = fast(50.0);
    old.setup.mlx_version = "0.31.0".to_owned();
    let (verdict, prior) = told(vec![old.clone()], Vec::new()).unwrap();
    assert_eq!(verdict.changes, ["MLX 0.31.0 → 0.32.2"]);
    assert_eq!(prior, Prior::default());
    let (verdict, _) = told(vec![fast(5.0)], Vec::new()).unwrap();
    assert_eq!(verdict.changes, ["the model's files"]);
    // An older one under the same circumstances holds all the same.
    let (verdict, _) = told(vec![old.clone(), fast(40.0)], Vec::new()).unwrap();
    assert_eq!((verdict.measured_at, verdict.changes.len()), (40.0, 0));
    // What was worked out in replies is weaker, but of today.
    let (verdict, _) = told(vec![old], estimates(&[1.3, 1.31, 1.29, 1.3])).unwrap();
    assert!(matches!(verdict.source, VerdictSource::Replies { .. }), "{verdict:?}");
}

#[test]
fn a_benchmark_of_another_commit_is_told_as_stale() {
    let at = |commit: &str| format!("/hub/models--a--b/snapshots/{commit}");
    let of = |commit: &str, made_at: f64| {
        let mut report = fast(made_at);
        report.setup.target = at(commit);
        PairHistory {
            target: at(commit),
            drafter: None,
            benches: vec![report],
            replies: estimates(&[1.3; 8]),
        }
    };
    let pairs = [of("1111111aa", 40.0), of("2222222bb", 50.0)];
    let now_at = |commit: &str| {
        let mut all = PairHistory::all_of(&pairs, &at(commit), None);
        assert_eq!(all.len(), 1);
        all.remove(0)
    };
    let (verdict, prior) = judge(&now_at("3333333cc"), &now()).unwrap();
    assert_eq!(verdict.changes, ["the model's commit 2222222 → 3333333"]);
    assert_eq!((verdict.measured_at, prior), (50.0, Prior::default()));
    let (verdict, prior) = judge(&now_at("1111111aa"), &now()).unwrap();
    assert_eq!(
        (verdict.measured_at, verdict.changes.len(), prior.depth),
        (40.0, 0, Some(3)),
        "its own holds"
    );
    assert!(PairHistory::all_of(&pairs, "/m", None).is_empty());
}

#[test]
fn what_was_run_otherwise_or_not_whole_is_no_verdict() {
    let with = |change: fn(&mut BenchReport)| {
        let mut report = fast(50.0);
        change(&mut report);
        told(vec![report], Vec::new())
    };
    assert_eq!(with(|r| r.stopped = true), None);
    let no_head = |r: &mut BenchReport| r.arms.iter_mut().for_each(|arm| arm.figures.speculating = false);
    assert_eq!(with(no_head), None);
    assert_eq!(with(|r| r.winner = Winner::Unknown), None);
    assert_eq!(with(|r| r.setup.exactness = "fast".to_owned()), None);
    assert_eq!(with(|r| r.setup.after.power_source = Some("battery".to_owned())), None);
    assert_eq!(
        with(|r| r.setup.check_key = "cpu, keys and values in 8 bits, 0".to_owned()),
        None
    );
    assert!(with(|_| ()).is_some());
}

#[test]
fn replies_are_told_as_estimates_and_only_beyond_their_own_spread() {
    assert_eq!(told(Vec::new(), estimates(&[2.0, 2.0])), None, "too few");
    let (verdict, prior) = told(Vec::new(), estimates(&[1.3, 1.28, 1.35, 1.31, 1.3, 1.29])).unwrap();
    assert!(matches!(
        verdict.says,
        Winner::Fastest {
            speculation: SpeculationChoice::Auto,
            ..
        }
    ));
    assert_eq!(verdict.source, VerdictSource::Replies { replies: 6, depth: 2 });
    assert_eq!(
        (verdict.measured_at, prior.depth, prior.acceptance),
        (100.0, Some(2), vec![0.7])
    );
    let (verdict, prior) = told(Vec::new(), estimates(&[0.7, 1.4, 0.9, 1.1, 1.3, 0.8])).unwrap();
    assert_eq!((verdict.says, prior.depth), (Winner::Noise, None));
    let (verdict, prior) = told(Vec::new(), estimates(&[0.7, 0.71, 0.69, 0.72, 0.7])).unwrap();
    assert_eq!((verdict.says, prior.depth), (Winner::Off, Some(0)));
    let mut elsewhere = estimates(&[1.3; 6]);
    for estimate in &mut elsewhere {
        estimate.under.power_source = Some("battery".to_owned());
    }
    assert_eq!(told(Vec::new(), elsewhere), None, "stale estimates are nothing");
}

#[test]
fn shares_are_counted_only_where_the_drafts_before_were_right() {
    assert_eq!(conditional(&[0.8, 0.4, 0.0, 0.0]), [0.8, 0.5, 0.0]);
    assert_eq!(conditional(&[]), [0.0; 0]);
    // Four rounds of two drafts, four of one; the second position was reached five times.
    let (drafted, accepted) = ([2, 2, 2, 2, 2, 1, 1, 1], [2, 1, 2, 1, 1, 0, 1, 1]);
    assert_eq!(by_position(&drafted, &accepted), [0.875, 0.4]);
    assert_eq!(by_position(&drafted[5..], &accepted[5..]), [0.0; 0], "too few");
}

#[test]
fn a_reply_counts_when_it_is_long_and_had_drafts() {
    let stats = |rounds, exactness, is_measured| {
        let mut stats = GenerationStats::default();
        stats.speculation.state = SpeculationState::Auto(ControllerState::On {
            depth: 2,
            tokens_per_round: 2.0,
            speedup: Some(1.3),
            is_measured,
        });
        stats.speculation.rounds = rounds;
        stats.speculation.exactness = exactness;
        stats
    };
    let of = |stats| Estimate::of(&stats, 1.0, under());
    let found = of(stats(16, Exactness::Exact, true)).unwrap();
    assert_eq!((found.depth, found.speedup), (2, 1.3));
    assert_eq!(of(stats(15, Exactness::Exact, true)), None);
    assert_eq!(of(stats(16, Exactness::Fast, true)), None);
    assert_eq!(of(stats(16, Exactness::Exact, false)), None);
    assert_eq!(of(GenerationStats::default()), None);
}
