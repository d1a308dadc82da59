//! The engine thread: stop, failure, panic, and going on afterwards.

use std::ops::ControlFlow;
use std::sync::mpsc;

use models::{Engine, Error, FinishReason, GenerateRequest, GenerationEvent, LoadRequest, Prompt, Speculation};
use tests::golden;

fn engine() -> Engine {
    let engine = Engine::start();
    engine
        .load(LoadRequest {
            target: golden("qwen3_5").join("hf"),
            ..LoadRequest::default()
        })
        .unwrap();
    engine
}

fn request(n: usize) -> GenerateRequest {
    GenerateRequest {
        max_tokens: Some(n),
        ignore_eos: true,
        speculation: Speculation::Block(4),
        ..GenerateRequest::new(Prompt::Ids(vec![11, 5, 93, 40, 7, 128, 64]))
    }
}

fn go_on(_: GenerationEvent) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn a_stop_at_any_event_keeps_a_prefix_and_the_next_reply_is_whole() {
    let engine = engine();
    let whole = engine.generate(request(40), Box::new(go_on)).unwrap();
    assert_eq!((whole.tokens.len(), whole.finish), (40, FinishReason::Length));
    for stop_at in [0, 1, 2, 3, 4, 6, 9, 13] {
        let mut seen = 0;
        let stopped = engine
            .generate(
                request(40),
                Box::new(move |_: GenerationEvent| {
                    seen += 1;
                    if seen > stop_at {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                }),
            )
            .unwrap();
        assert!(whole.tokens.starts_with(&stopped.tokens), "stopped at {stop_at}");
        if stopped.tokens.len() < 40 {
            assert_eq!(stopped.finish, FinishReason::Cancelled, "stopped at {stop_at}");
        }
        assert_eq!(
            engine.generate(request(40), Box::new(go_on)).unwrap().tokens,
            whole.tokens
        );
    }
}

#[test]
fn a_panic_ends_its_reply_alone() {
    let engine = engine();
    let whole = engine.generate(request(20), Box::new(go_on)).unwrap();
    for panic_at in [0, 1, 2, 5] {
        let mut seen = 0;
        let lost = engine.generate(
            request(20),
            Box::new(move |_: GenerationEvent| {
                seen += 1;
                assert!(seen <= panic_at, "a bug in the sink");
                ControlFlow::Continue(())
            }),
        );
        assert!(
            matches!(&lost, Err(Error::EngineLost { message }) if message.contains("a bug")),
            "{lost:?}"
        );
        assert_eq!(
            engine.generate(request(20), Box::new(go_on)).unwrap().tokens,
            whole.tokens
        );
    }
}

#[test]
fn one_generation_at_a_time() {
    let engine = engine();
    let (started, begun) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    let other = engine.clone();
    let first = std::thread::spawn(move || {
        let mut waited = false;
        other.generate(
            request(5),
            Box::new(move |_: GenerationEvent| {
                if !waited {
                    waited = true;
                    started.send(()).unwrap();
                    gate.recv().unwrap();
                }
                ControlFlow::Continue(())
            }),
        )
    });
    begun.recv().unwrap();
    assert!(matches!(engine.generate(request(5), Box::new(go_on)), Err(Error::Busy)));
    release.send(()).unwrap();
    assert_eq!(first.join().unwrap().unwrap().tokens.len(), 5);
    assert_eq!(engine.generate(request(5), Box::new(go_on)).unwrap().tokens.len(), 5);
}

#[test]
fn bad_requests_are_refused_and_the_next_one_works() {
    let engine = Engine::start();
    assert!(matches!(
        engine.generate(request(5), Box::new(go_on)),
        Err(Error::NotLoaded)
    ));
    let engine = self::engine();
    let prompt = |ids: Vec<u32>| GenerateRequest {
        prompt: Prompt::Ids(ids),
        ..request(5)
    };
    let block = |size| GenerateRequest {
        speculation: Speculation::Block(size),
        ..request(5)
    };
    let mut hot = request(5);
    hot.sampling.temperature = f32::NAN;
    for bad in [
        prompt(vec![]),
        prompt(vec![160]),
        prompt(vec![u32::MAX]),
        block(1),
        block(17),
        block(0),
        hot,
    ] {
        let refused = engine.generate(bad, Box::new(go_on));
        assert!(matches!(&refused, Err(Error::Usage { .. })), "{refused:?}");
        assert_eq!(engine.generate(request(5), Box::new(go_on)).unwrap().tokens.len(), 5);
    }
    let long = engine.generate(prompt(vec![1; 4096]), Box::new(go_on));
    assert!(
        matches!(
            long,
            Err(Error::ContextFull {
                prompt: 4096,
                context: 4096
            })
        ),
        "{long:?}"
    );
    let text = GenerateRequest {
        prompt: Prompt::Raw("hello".into()),
        ..request(5)
    };
    assert_eq!(engine.generate(text, Box::new(go_on)).unwrap_err().kind(), "tokenizer");
}

#[test]
fn the_context_ends_the_reply() {
    let engine = engine();
    let request = GenerateRequest {
        max_tokens: None,
        prompt: Prompt::Ids(vec![7; 4090]),
        ..request(5)
    };
    let done = engine.generate(request, Box::new(go_on)).unwrap();
    assert_eq!((done.tokens.len(), done.finish), (6, FinishReason::Length));
}

#[test]
fn a_failed_load_leaves_an_engine_that_can_load_again() {
    let engine = engine();
    let missing = engine.load(LoadRequest {
        target: golden("qwen3_5").join("mlx-mtp"),
        ..LoadRequest::default()
    });
    assert_eq!(missing.unwrap_err().kind(), "not_standalone");
    assert!(matches!(
        engine.generate(request(3), Box::new(go_on)),
        Err(Error::NotLoaded)
    ));
    engine
        .load(LoadRequest {
            target: golden("qwen3_5").join("hf"),
            ..LoadRequest::default()
        })
        .unwrap();
    assert_eq!(engine.generate(request(3), Box::new(go_on)).unwrap().tokens.len(), 3);
}
