mod says;
mod world;

use super::*;
use world::*;

fn is_parked(controller: &Controller) -> bool {
    controller.home == 0
}

#[test]
fn times_between_and_past_the_measured_rows_follow_them_and_never_fall() {
    let c = costs(&M1_ULTRA, 5.0);
    assert_eq!((c.verify_ms(1), c.verify_ms(4), c.verify_ms(8)), (43.6, 135.5, 244.0));
    assert!((c.verify_ms(6) - 189.75).abs() < 1e-9 && (c.verify_ms(9) - 271.125).abs() < 1e-9);
    assert!((c.round_ms(2) - 116.2).abs() < 1e-9 && (c.ratio(3) - 106.2 / 43.6).abs() < 1e-9);
    // Noise, disorder, nonsense and gaps.
    let odd = costs(
        &[
            (8, 30.0),
            (3, 25.0),
            (2, 28.0),
            (2, 90.0),
            (5, f64::NAN),
            (6, -1.0),
            (7, 0.0),
        ],
        0.0,
    );
    let times: Vec<f64> = (1..=12).map(|rows| odd.verify_ms(rows)).collect();
    assert!(
        times.is_sorted() && times[0] == 28.0 && times[2] == 28.0 && times[7] == 30.0,
        "{times:?}"
    );
    assert_eq!(costs(&[(2, 9.0)], 1.0).round_ms(4), 13.0);
    assert_eq!((Costs::default().verify_ms(3), Costs::default().ratio(3)), (0.0, 0.0));
}

#[test]
fn a_calibration_decides_where_to_start() {
    // 1.6 tokens for 1.85 steps.
    let parked = Controller::new(Some(costs(&M1_ULTRA, 5.0)), 7, 3);
    assert_eq!(parked.depth(), 0);
    let flat = Controller::new(Some(costs(&FLAT, 0.4)), 7, 3);
    assert!(flat.depth() >= 3, "{}", flat.depth());
    let sloped = Controller::new(Some(costs(&SLOPED, 3.0)), 7, 3);
    assert!((1..=2).contains(&sloped.depth()), "{}", sloped.depth());
    // A calibration that says nothing is none.
    for nothing in [
        costs(&[], 1.0),
        costs(&[(1, f64::NAN)], 1.0),
        costs(&FLAT, f64::NAN),
        costs(&FLAT, -1.0),
    ] {
        assert_eq!(Controller::new(Some(nothing), 7, 3).depth(), 3);
    }
    assert_eq!(Controller::new(None, 2, 3).depth(), 2);
}

#[test]
fn what_earlier_runs_showed_is_where_it_begins_and_no_more() {
    let new = || Controller::new(Some(costs(&SLOPED, 3.0)), 7, 3);
    let usual = new().depth();
    assert_eq!(new().begin(None, &[]).depth(), usual, "nothing is known");
    assert_eq!(new().begin(Some(5), &[]).depth(), 5);
    assert_eq!(new().begin(Some(99), &[]).depth(), 7, "no deeper than it can");
    assert!(is_parked(&new().begin(Some(0), &[])));
    assert!(is_parked(&new().begin(None, &[0.05])), "such drafts do not pay");
    assert!(new().begin(None, &[0.99; 7]).depth() > usual);
    assert_eq!(new().begin(None, &[f64::NAN, 2.0]).depth(), usual);
    assert_eq!(Controller::new(None, 7, 3).begin(Some(2), &[]).depth(), 2);
    // Wrong both ways: what it measures soon outweighs it.
    let mut fast = World::new(&FLAT, 0.4, &[0.9]);
    let mut wrong = Controller::new(Some(costs(&FLAT, 0.4)), 7, 3).begin(Some(0), &[0.05]);
    run(&mut wrong, &mut fast, 1000);
    assert!(wrong.depth() > 1, "{:?}", wrong.state());
    let mut slow = World::new(&M1_ULTRA, 5.0, &[0.3]);
    let mut wrong = Controller::new(Some(costs(&M1_ULTRA, 5.0)), 7, 3).begin(Some(7), &[0.99; 7]);
    run(&mut wrong, &mut slow, 200);
    assert!(is_parked(&wrong), "{:?}", wrong.state());
}

#[test]
fn where_speculation_loses_it_parks_and_costs_next_to_nothing() {
    for (accept, draft_ms) in [([0.591], 4.0), ([0.465], 4.0), ([0.1], 10.0), ([0.591], 0.5)] {
        for calibration in [Some(costs(&M1_ULTRA, draft_ms)), None] {
            for seed in 1..=8 {
                let mut world = World::new(&M1_ULTRA, draft_ms, &accept).seeded(seed);
                let mut plain = world.clone();
                let plain_ms: f64 = (0..2000).map(|_| plain.round(0).0).sum();
                let mut controller = Controller::new(calibration.clone(), 7, 2);
                let run = run(&mut controller, &mut world, 2000);
                assert!(is_parked(&controller), "{accept:?} {:?}", controller.state());
                let cost = run.ms / run.tokens as f64 * 2000.0 / plain_ms;
                assert!(
                    cost <= 1.03,
                    "{cost} {accept:?} {draft_ms} {} {run:?}",
                    calibration.is_some()
                );
                // What probes take beyond what their tokens would have cost.
                let lost = run.probe_ms - run.probe_tokens as f64 * world.costs.verify_ms(1);
                assert!(lost < 0.03 * run.ms, "{lost} {run:?}");
                assert!(run.by_depth[0] < run.rounds, "it never probed");
            }
        }
    }
}

#[test]
fn where_speculation_wins_it_is_worth_the_best_fixed_depth() {
    for (profile, draft_ms, accept) in [
        (&FLAT[..], 0.4, &[0.8, 0.7, 0.6][..]),
        (&FLAT, 0.4, &[0.95]),
        (&FLAT, 4.0, &[0.8, 0.7, 0.6]),
        (&FLAT, 2.0, &[0.5, 0.3]),
        (&SLOPED, 1.5, &[0.85, 0.8, 0.75, 0.7]),
        (&SLOPED, 1.5, &[0.9, 0.1]),
        (&SLOPED, 6.0, &[0.6, 0.5]),
        (&M1_ULTRA, 2.0, &[0.98]),
    ] {
        let world = World::new(profile, draft_ms, accept);
        let with = worth(&world, Some(&world.costs), 2000);
        assert!(with >= 0.95, "{with} {draft_ms} {accept:?}");
        // Half as long a text without knowing the machine, and twice as long with a calibration that is far off.
        let without = worth(&world, None, 3000);
        assert!(without >= 0.93, "{without} without calibration, {draft_ms} {accept:?}");
        let off = costs(&[(1, 60.0), (2, 80.0), (8, 200.0)], 8.0);
        let wrong = worth(&world, Some(&off), 4000);
        assert!(wrong >= 0.90, "{wrong} with a wrong calibration, {draft_ms} {accept:?}");
    }
}

/// Rounds until `done` holds for the home depth, at most 400.
fn rounds_until(controller: &mut Controller, world: &mut World, done: impl Fn(usize) -> bool) -> usize {
    (0..400)
        .find(|_| {
            let (_, outcome) = world.round(controller.depth());
            controller.record(&outcome);
            done(controller.home)
        })
        .map_or(400, |n| n + 1)
}

#[test]
fn a_text_that_changes_is_followed() {
    let mut most = [0; 3];
    for seed in 1..=20 {
        let mut world = World::new(&SLOPED, 6.0, &[0.95, 0.95, 0.9]).seeded(seed);
        let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
        run(&mut controller, &mut world, 1000);
        assert!(controller.home >= 2, "{:?}", controller.state());
        // From code to prose of another language.
        world.accept = vec![0.1];
        most[0] = most[0].max(rounds_until(&mut controller, &mut world, |home| home == 0));
        // And back, soon after.
        world.accept = vec![0.95, 0.95, 0.9];
        most[1] = most[1].max(rounds_until(&mut controller, &mut world, |home| home >= 1));
        // Deeper again once it pays.
        most[2] = most[2].max(rounds_until(&mut controller, &mut world, |home| home >= 2));
    }
    assert!(most[0] <= 35 && most[1] <= 60 && most[2] <= 45, "{most:?}");
}

#[test]
fn a_machine_that_changes_is_followed() {
    let mut most = [0; 2];
    for seed in 1..=20 {
        let mut world = World::new(&SLOPED, 2.0, &[0.8, 0.7, 0.6]).seeded(seed);
        let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
        run(&mut controller, &mut world, 1000);
        assert!(controller.home >= 1);
        // A compute limit: rows cost what steps cost. All of it looks as if the whole machine were slower.
        world.costs = costs(&[(1, 30.0), (2, 62.0), (3, 95.0), (4, 130.0), (8, 260.0)], 4.0);
        most[0] = most[0].max(rounds_until(&mut controller, &mut world, |home| home == 0));
        // The limit goes, and memory is slower than it was.
        world.costs = costs(&[(1, 45.0), (2, 47.0), (3, 50.0), (4, 54.0), (8, 80.0)], 2.0);
        most[1] = most[1].max(rounds_until(&mut controller, &mut world, |home| home >= 1));
    }
    assert!(most[0] <= 60 && most[1] <= 60, "{most:?}");
}

#[test]
fn a_machine_that_gets_slower_in_everything_keeps_its_depth() {
    for seed in 1..=20 {
        let mut world = World::new(&SLOPED, 3.0, &[0.85, 0.1]).seeded(seed);
        let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
        run(&mut controller, &mut world, 1000);
        for factor in [2.0, 0.5] {
            for (_, ms) in &mut world.costs.verify_ms {
                *ms *= factor;
            }
            world.costs.draft_ms *= factor;
            let run = run(&mut controller, &mut world, 1500);
            assert!(run.by_depth[1] * 100 >= run.rounds * 80, "{factor} {run:?}");
        }
    }
}

#[test]
fn one_measured_depth_corrects_the_others() {
    let world = World::new(&SLOPED, 2.0, &[0.8]);
    let slow = 1.6;
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    let depth = controller.depth();
    for _ in 0..30 {
        controller.record(&RoundOutcome {
            depth,
            accepted: 1,
            duration_ms: Some(world.costs.round_ms(depth) * slow),
        });
        if controller.depth() != depth {
            break;
        }
    }
    for other in 0..=7 {
        let expected = world.costs.round_ms(other) * slow;
        let said = controller.costs.ms(other);
        assert!((said / expected - 1.0).abs() < 0.02, "{other}: {said}, not {expected}");
    }
}

#[test]
fn a_depth_measured_between_two_others_lies_between_them() {
    let mut ledger = Ledger::new(None, 4);
    for (depth, ms) in [(0, 10.0), (4, 36.0)] {
        (0..4).for_each(|_| ledger.record(depth, Some(ms)));
    }
    // Guessed shape 1.0 to 1.8; ratios 10 and 20.
    assert!((ledger.ms(2) - 1.4 * 15.0).abs() < 1e-9, "{}", ledger.ms(2));
    assert!(ledger.is_known(4) && !ledger.is_known(2));
}

#[test]
fn a_slow_reader_leaves_the_calibration_in_force() {
    // What is measured is right, but almost nothing is.
    for measured in [0, 10] {
        let mut wins = World::new(&FLAT, 0.4, &[0.8, 0.7, 0.6]);
        let mut loses = World::new(&M1_ULTRA, 4.0, &[0.591]);
        (wins.measured, loses.measured) = (measured, measured);
        let ratio = worth(&wins, Some(&wins.costs), 2000);
        assert!(ratio >= 0.94, "{measured} {ratio}");
        let mut controller = Controller::new(Some(loses.costs.clone()), 7, 3);
        run(&mut controller, &mut loses, 2000);
        assert!(is_parked(&controller));
    }
    // Nothing known, nothing measured: what was asked for.
    let mut world = World::new(&M1_ULTRA, 4.0, &[0.591]);
    world.measured = 0;
    let mut controller = Controller::new(None, 7, 2);
    assert_eq!(run(&mut controller, &mut world, 2000).changes, 0);
    assert_eq!(controller.depth(), 2);
}

#[test]
fn depths_do_not_take_turns() {
    for (profile, draft_ms, accept) in [
        (&SLOPED[..], 3.0, &[0.8, 0.7, 0.6][..]),
        (&FLAT, 0.4, &[0.8, 0.7, 0.6]),
        (&FLAT, 3.5, &[0.7]),
        (&M1_ULTRA, 2.0, &[0.8]),
        // Depths 0 and 1 are worth the same.
        (&[(1, 30.0), (8, 163.0)], 3.0, &[0.733]),
    ] {
        for seed in 1..=8 {
            let mut world = World::new(profile, draft_ms, accept).seeded(seed);
            world.noise = 0.1;
            let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
            run(&mut controller, &mut world, 200);
            let run = run(&mut controller, &mut world, 4000);
            assert!(
                run.changes * 30 <= run.rounds,
                "{} changes in {} rounds {accept:?}",
                run.changes,
                run.rounds
            );
        }
    }
}

#[test]
fn plain_probes_while_on_are_rare() {
    for seed in 1..=8 {
        let mut world = World::new(&FLAT, 1.0, &[0.85, 0.8, 0.7]).seeded(seed);
        let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
        let run = run(&mut controller, &mut world, 4000);
        assert!(run.by_depth[0] >= 4, "plain decoding was never measured");
        let lost = run.probe_ms - run.probe_tokens as f64 / world.rate(world.best(7));
        assert!(lost < 0.02 * run.ms, "{lost} {run:?}");
    }
}

#[test]
fn nonsense_durations_change_nothing() {
    let mut world = World::new(&SLOPED, 3.0, &[0.8, 0.7]);
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    run(&mut controller, &mut world, 500);
    let before: Vec<f64> = (0..=7).map(|d| controller.costs.ms(d)).collect();
    let depth = controller.depth();
    for ms in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -4.0, 1e9] {
        controller.costs.record(depth, Some(ms));
    }
    assert_eq!(before, (0..=7).map(|d| controller.costs.ms(d)).collect::<Vec<_>>());
    // A burst of another program moves little, and from the start.
    controller.costs.record(depth, Some(5000.0));
    let after = controller.costs.ms(depth);
    assert!((after / before[depth] - 1.0).abs() < 0.06, "{after} {before:?}");
    let mut fresh = Ledger::new(Some(&world.costs), 7);
    for ms in [9000.0, 34.0, 34.0, 34.0] {
        fresh.record(1, Some(ms));
    }
    assert_eq!(fresh.ms(1), 34.0);
    // More drafts than there can be, and more right than there were.
    let mut odd = controller.clone();
    odd.record(&RoundOutcome {
        depth: 9,
        accepted: 9,
        duration_ms: Some(1.0),
    });
    odd.record(&RoundOutcome {
        depth: 1,
        accepted: 5,
        duration_ms: None,
    });
    assert!(odd.acceptance.tokens(7) <= 8.0);
}

#[test]
fn less_than_four_rounds_are_not_judged() {
    // 1.6 tokens for 1.47 steps, and then nothing is right.
    let mut controller = Controller::new(Some(costs(&[(1, 30.0), (2, 40.0), (8, 100.0)], 4.0)), 7, 3);
    for rounds in 0..4 {
        assert_eq!(controller.depth(), 1, "after {rounds} rounds");
        controller.record(&RoundOutcome {
            depth: 1,
            accepted: 0,
            duration_ms: None,
        });
    }
    assert_eq!(controller.depth(), 0);
    // Nor after a new start.
    let mut world = World::new(&FLAT, 0.4, &[0.9]);
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    run(&mut controller, &mut world, 500);
    controller.start();
    let depth = controller.depth();
    for _ in 0..3 {
        controller.record(&RoundOutcome {
            depth,
            accepted: 0,
            duration_ms: Some(25.0),
        });
        assert_eq!(controller.depth(), depth);
    }
}

#[test]
fn a_new_generation_keeps_what_was_learned_and_doubts_it() {
    let mut world = World::new(&SLOPED, 3.0, &[0.9, 0.9, 0.9]);
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    run(&mut controller, &mut world, 2000);
    let (depth, ms) = (controller.depth(), controller.costs.ms(2));
    let mut doubting = controller.clone();
    doubting.start();
    assert_eq!(doubting.depth(), depth);
    assert!((doubting.costs.ms(2) / ms - 1.0).abs() < 1e-9);
    let mut tokens = Vec::new();
    for c in [&mut controller, &mut doubting] {
        (0..2).for_each(|_| c.acceptance.record(3, 0));
        tokens.push(c.acceptance.tokens(3));
    }
    assert!(tokens[1] < tokens[0] - 0.3, "{tokens:?}");
    // Many short replies come to a probe all the same.
    let mut world = World::new(&M1_ULTRA, 4.0, &[0.95]);
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    let mut drafted = 0;
    for _ in 0..20 {
        controller.start();
        let run = run(&mut controller, &mut world, 20);
        drafted += run.rounds - run.by_depth[0];
    }
    assert!(drafted > 0);
}

#[test]
fn plain_rounds_are_known_ahead() {
    let mut world = World::new(&M1_ULTRA, 4.0, &[0.4]);
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    let (mut ahead, mut plain) = (0, 0);
    for _ in 0..2000 {
        ahead += usize::from(controller.plain_rounds() >= 2);
        plain += usize::from(controller.depth() == 0);
        let (_, outcome) = world.round(controller.depth());
        controller.record(&outcome);
    }
    assert!(ahead * 100 >= plain * 97, "{ahead} of {plain}");
    let on = Controller::new(Some(costs(&FLAT, 0.4)), 7, 3);
    assert_eq!(on.plain_rounds(), 0);
    let mut none = Controller::new(None, 0, 3);
    for _ in 0..100 {
        assert_eq!((none.depth(), none.plain_rounds()), (0, usize::MAX));
        none.record(&world.round(0).1);
    }
    assert_eq!(none.state().sentence(), "parked: no drafts are asked for");
}

#[test]
fn a_probe_is_judged_on_rounds_of_its_own_depth() {
    let mut world = World::new(&FLAT, 0.4, &[0.9]);
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    let mut probes = 0;
    for _ in 0..2000 {
        let Some(probe) = controller.probe.filter(|probe| probe.depth > 1) else {
            let depth = controller.depth();
            controller.record(&world.round(depth).1);
            continue;
        };
        // Near the end of thinking nothing has as many drafts.
        for depth in [0, 1, probe.depth - 1] {
            controller.record(&world.round(depth).1);
        }
        assert_eq!(
            controller.probe.map(|p| (p.depth, p.left)),
            Some((probe.depth, probe.left))
        );
        controller.record(&world.round(probe.depth).1);
        assert_eq!(controller.probe.map_or(0, |p| p.left), probe.left - 1);
        probes += 1;
    }
    assert!(probes >= 4, "{probes}");
}
