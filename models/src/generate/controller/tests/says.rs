//! What the controller says of itself.

use super::*;

#[test]
fn it_says_what_it_does_and_why() {
    let mut world = World::new(&M1_ULTRA, 2.0, &[0.591]);
    let mut controller = Controller::new(Some(world.costs.clone()), 7, 3);
    let said = controller.state().sentence();
    assert_eq!(
        said,
        "parked: drafts are taken to be right 60 % of the time, and a round with 1 draft costs 1.78 plain steps, so \
         speculation would be 0.90 times plain"
    );
    for _ in 0..600 {
        if controller.probe.is_none() {
            controller.record(&world.round(0).1);
        }
    }
    assert!(matches!(
        controller.state(),
        ControllerState::Probing {
            depth: 1,
            home: 0,
            rounds: 4
        }
    ));
    assert!(
        controller
            .state()
            .sentence()
            .starts_with("probing: a few rounds with 1 draft,")
    );
    run(&mut controller, &mut world, 1000);
    let ControllerState::Parked {
        depth,
        acceptance,
        cost_ratio,
        speedup,
        is_measured,
    } = controller.state()
    else {
        panic!("{:?}", controller.state());
    };
    assert!(is_measured && controller.state().sentence().contains("drafts are right"));
    assert_eq!(depth, 1);
    // Followed and counted: not the same number, but of the same drafts.
    assert!((speedup - (1.0 + acceptance) / cost_ratio).abs() < 0.2 && speedup < 1.0);

    let mut world = World::new(&FLAT, 0.4, &[0.8]);
    let mut controller = Controller::new(None, 3, 2);
    assert_eq!(
        controller.state().sentence(),
        "on: a round with 2 drafts is taken to give 1.96 tokens"
    );
    run(&mut controller, &mut world, 1000);
    let ControllerState::On {
        depth,
        tokens_per_round,
        speedup: Some(speedup),
        is_measured: true,
    } = controller.state()
    else {
        panic!("{:?}", controller.state());
    };
    assert_eq!(depth, 3);
    assert!((2.4..3.5).contains(&tokens_per_round) && (2.0..3.5).contains(&speedup));
    let said = controller.state().sentence();
    assert!(
        said.starts_with("on: a round with 3 drafts gives ") && said.ends_with(" times plain"),
        "{said}"
    );
}

#[test]
fn the_share_that_is_told_is_what_was_counted_and_an_assumption_is_called_one() {
    let round = |depth, accepted| RoundOutcome {
        depth,
        accepted,
        duration_ms: None,
    };
    let share = |controller: &Controller| match controller.state() {
        ControllerState::Parked {
            depth,
            acceptance,
            is_measured,
            ..
        } => (depth, (acceptance * 1000.0).round() as usize, is_measured),
        other => panic!("{other:?}"),
    };
    // Slow drafts: whatever they bring, it stays parked, and one draft is the best there is.
    let mut controller = Controller::new(Some(costs(&M1_ULTRA, 40.0)), 3, 2);
    assert_eq!(share(&controller), (1, 600, false));
    for n in 1..=8 {
        controller.record(&round(1, 0));
        let (depth, told, is_measured) = share(&controller);
        assert_eq!((depth, is_measured), (1, n >= 4), "{n}");
        // The assumption has not become a measurement.
        assert_eq!(told == 0, is_measured, "{n}");
        let said = controller.state().sentence();
        assert_eq!(said.contains("drafts are taken to be right"), n < 4, "{said}");
        assert_eq!(said.contains("drafts are right 0 % of the time"), n >= 4, "{said}");
    }
    controller.record(&round(1, 1));
    assert_eq!(share(&controller), (1, 111, true));
    // Deeper rounds tell of their first draft too, shallower ones nothing of a second.
    controller.record(&round(3, 2));
    assert_eq!(share(&controller), (1, 200, true));
    assert_eq!(controller.acceptance.measured(2, 1), Some(1.0));
    assert_eq!(controller.acceptance.measured(2, 2), None);
    assert_eq!(controller.acceptance.measured(3, 1), Some(2.0 / 3.0));
    // What was long ago no longer counts.
    for _ in 0..25 {
        controller.record(&round(1, 1));
    }
    assert_eq!(controller.acceptance.measured(1, 4), Some(1.0));
}
