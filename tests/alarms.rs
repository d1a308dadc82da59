//! Heads whose drafts are hardly ever right are told of.

use std::ops::ControlFlow;

use models::{Engine, GenerateRequest, GenerationEvent, LoadRequest, Prompt, SamplingParams, Speculation};
use serde_json::json;
use tests::{golden, ids};

use crate::heads::{generate, load, made, short};

#[test]
fn poor_acceptance_says_so() {
    let dir = made(
        &json!({"base": "qwen3_5/mlx", "ops": [], "drafter": {"base": "qwen3_5/mlx-mtp", "ops": [
            {"op": "copy_tensors", "file": "model.safetensors", "match": "fc\\.weight", "to": "model.safetensors", "fill": 0.0},
            {"op": "copy_tensors", "file": "model.safetensors", "match": "^norm", "to": "model.safetensors", "fill": -1.0},
        ]}}),
    );
    let (engine, _) = load(dir.path().join("model"), Some(dir.path().join("drafter"))).unwrap();
    let good = load(golden("qwen3_5/mlx"), Some(golden("qwen3_5/mlx-mtp"))).unwrap().0;
    let (bad, good) = (
        generate(&engine, Speculation::Block(4), 64),
        generate(&good, Speculation::Block(4), 64),
    );
    assert_eq!(bad.tokens, good.tokens);
    assert_eq!(good.stats.speculation.reason, None);
    let s = &bad.stats.speculation;
    assert!(
        s.enabled && s.accepted * 20 < s.drafted,
        "{} of {}",
        s.accepted,
        s.drafted
    );
    assert!(s.reason.as_deref().unwrap().contains("another model"), "{:?}", s.reason);

    // All its scores are alike: one that is a little better is what it always proposes, here what is never right.
    let never = (0..).find(|id| !good.tokens.contains(id)).unwrap();
    let reply = |engine: &Engine, speculation, n| {
        let request = GenerateRequest {
            max_tokens: Some(n),
            ignore_eos: true,
            speculation,
            sampling: SamplingParams {
                temperature: 0.0,
                logit_bias: vec![(never, 1e-4)],
                ..SamplingParams::default()
            },
            ..GenerateRequest::new(Prompt::Ids(short()))
        };
        let go_on = |_: GenerationEvent| ControlFlow::Continue(());
        let stats = engine.generate(request, Box::new(go_on)).unwrap().stats.speculation;
        assert_eq!(stats.accepted, 0);
        stats
    };
    // Replies too short to tell tell together, in deep blocks too; a load begins anew.
    let anew = || {
        load(dir.path().join("model"), Some(dir.path().join("drafter")))
            .unwrap()
            .0
    };
    let engine = anew();
    let (one, two) = (
        reply(&engine, Speculation::Block(8), 9),
        reply(&engine, Speculation::Block(8), 9),
    );
    assert!(one.drafted < 50 && one.drafted + two.drafted >= 50, "{}", one.drafted);
    assert_eq!(one.reason, None);
    assert!(two.reason.unwrap().contains("another model"));
    // Parked, next to nothing is drafted: what there is adds up.
    let engine = anew();
    let mut drafted = 0;
    let told = (0..60).find_map(|_| {
        let auto = reply(&engine, Speculation::Auto, 64);
        drafted += auto.drafted;
        assert_eq!(auto.reason.is_some(), drafted >= 50, "{drafted}");
        auto.reason
    });
    assert!(
        told.is_some_and(|said| said.contains("another model")),
        "{drafted} drafts"
    );
}

/// Where there are several ways to wire a head, one that is tried may be the wrong one; what was asked for, or was found
/// to be the best, is not.
#[test]
fn a_dead_head_that_can_be_wired_in_several_ways_is_told_of_when_it_is_not_the_wiring() {
    let dir = made(
        &json!({"base": "inkling/mlx", "ops": [], "drafter": {"base": "inkling/mlx-mtp", "ops": [
        {"op": "copy_tensors", "file": "model.safetensors", "match": "(embed|hidden)_norm", "to": "model.safetensors",
         "fill": 0.0}]}}),
    );
    let prompt = ids(&tests::json(&golden("inkling").join("ref.json"))["prompt_short"]);
    let load = |wirings: Vec<models::WiringTally>| {
        let engine = Engine::start();
        let request = LoadRequest {
            target: dir.path().join("model"),
            drafter: Some(dir.path().join("drafter")),
            wirings,
            ..LoadRequest::default()
        };
        let names = engine.load(request).unwrap().wirings;
        (engine, names)
    };
    let reason = |engine: &Engine, wiring: Option<&String>| {
        let request = GenerateRequest {
            max_tokens: Some(40),
            ignore_eos: true,
            speculation: Speculation::Block(4),
            wiring: wiring.cloned(),
            ..GenerateRequest::new(Prompt::Ids(prompt.clone()))
        };
        let go_on = |_: GenerationEvent| ControlFlow::Continue(());
        let s = engine.generate(request, Box::new(go_on)).unwrap().stats.speculation;
        assert!(
            s.drafted >= 50 && s.accepted * 20 < s.drafted,
            "{} of {}",
            s.accepted,
            s.drafted
        );
        assert!(s.wiring.is_some());
        s.reason
    };
    let (engine, names) = load(Vec::new());
    assert_eq!(reason(&engine, None), None, "on trial");
    assert!(reason(&engine, names.last()).unwrap().contains("another model"));
    let tried = |name: &String| models::WiringTally {
        name: name.clone(),
        rounds: 30,
        drafted: 90,
        accepted: 3,
    };
    let (engine, _) = load(names.iter().map(tried).collect());
    assert!(reason(&engine, None).unwrap().contains("another model"));
}
