//! What is kept between the turns of a conversation saves time and changes nothing else.

use std::ops::ControlFlow;

use models::families::FAMILIES;
use models::generate::{Depth, Limits, PREFILL_CHUNK, chunk_ends};
use models::registry::{Pair, StartRequest};
use models::{Error, GenerateRequest, Generated, GenerationEvent, Message, Prompt, Role, SamplingParams, Speculation};
use tests::{builtin, cache_difference, engine_with_builtin, golden, load};

/// What ends a turn in these prompts.
const END: u32 = 149;
const TURN_ENDS: &[u32] = &[END];
const BUDGET: u64 = 1 << 28;

/// Ids that look like text, the same for the same key; no end of turn among them.
fn words(key: usize, n: usize) -> Vec<u32> {
    (0..n)
        .map(|i| ((i * 31 + key * 17 + i * i % 7) % 140 + 3) as u32)
        .collect()
}

fn pairs() -> Vec<(&'static str, Box<dyn Pair>)> {
    let load = |name: &'static str| (name, load(&golden(name).join("hf"), None));
    FAMILIES.iter().map(|f| load(f.name)).collect()
}

/// A run's ids, how much of its prompt was held, and the cache it left.
struct Ran {
    ids: Vec<u32>,
    held: usize,
    cache: models::cache::Cache,
}

fn run(pair: &dyn Pair, prompt: &[u32], block_size: Option<usize>, reuse: bool, n: usize) -> Ran {
    let sampler = pair
        .sampler(&SamplingParams {
            temperature: 0.8,
            seed: 5,
            ..SamplingParams::default()
        })
        .unwrap();
    let limits = Limits {
        max_tokens: n,
        eos: Vec::new(),
    };
    let mut held = None;
    let mut progress = |done| {
        held.get_or_insert(done);
        ControlFlow::Continue(())
    };
    let request = StartRequest {
        depth: block_size.map(Depth::block),
        reuse,
        turn_ends: TURN_ENDS,
        ..StartRequest::new(prompt, limits, &mut progress)
    };
    let mut decoder = pair.start(&sampler, request).unwrap().unwrap();
    let mut ids = Vec::new();
    while let Some(round) = decoder.next_round().unwrap() {
        ids.extend(round.tokens);
    }
    let cache = decoder.finish().unwrap();
    drop(decoder);
    Ran {
        ids,
        held: held.unwrap(),
        cache,
    }
}

#[test]
fn chunks_end_at_the_same_places_whatever_follows() {
    let mut prompt = words(1, 70);
    prompt.push(END);
    prompt.extend(words(2, 10));
    prompt.push(END);
    prompt.extend(words(3, 1200));
    prompt.push(END);
    prompt.extend(words(4, 5));
    let ends = chunk_ends(&prompt, TURN_ENDS);
    // The second turn is too short for a chunk of its own.
    let first = 71;
    let last = 71 + 11 + 1201;
    assert_eq!(
        ends,
        [first, first + PREFILL_CHUNK, first + 2 * PREFILL_CHUNK, last, last + 5]
    );
    for n in 1..prompt.len() {
        let mut part = chunk_ends(&prompt[..n], TURN_ENDS);
        let end = part.pop();
        assert_eq!(end, Some(n));
        assert!(ends.starts_with(&part) && part.iter().all(|e| *e < n), "{n}");
        // A border at the very end is the whole prompt's border too.
        assert!(n != first || ends.contains(&n));
    }
    assert!(chunk_ends(&[], TURN_ENDS).is_empty());
}

#[test]
fn a_conversation_reads_only_what_is_new_and_says_the_same() {
    for (name, pair) in pairs() {
        pair.keep(BUDGET);
        let mut prompt = words(0, 150);
        prompt.push(END);
        let mut before = 0;
        for turn in 0..6 {
            let message = words(turn, 60 + turn * 5);
            prompt.extend(&message);
            prompt.push(END);
            prompt.extend([1, 2, 3]);
            let block = [Some(4), Some(2), None][turn % 3];
            let fresh = run(pair.as_ref(), &prompt, block, false, 12);
            let with = run(pair.as_ref(), &prompt, block, true, 12);
            let case = format!("{name}, turn {turn}, block {block:?}");
            assert_eq!(with.ids, fresh.ids, "{case}");
            assert_eq!(cache_difference(&with.cache, &fresh.cache), None, "{case}");
            // The turn before was read to its end, or to less than a least chunk from it; its reply and this message are
            // new. A plain turn does not feed the drafter, so the turn after it goes back to where the drafter was fed.
            if turn > 0 && block != Some(4) {
                assert!(with.held + 64 > before, "{case}: {} held, {before} expected", with.held);
            }
            before = prompt.len() - 3;
            prompt.extend(&fresh.ids);
            prompt.push(END);
        }
    }
}

#[test]
fn what_is_read_ahead_is_what_would_have_been_read() {
    for (name, pair) in pairs() {
        let wiring = pair.wirings()[0];
        pair.keep(BUDGET);
        let mut prompt = words(1, 200);
        prompt.push(END);
        prompt.extend([1, 2]);
        run(pair.as_ref(), &prompt, Some(3), true, 8);
        prompt.extend(words(2, 1300));
        prompt.push(END);
        let whole = prompt.len();
        prompt.extend([5, 6]);
        let mut chunks = 1;
        while pair.read_ahead(&prompt, TURN_ENDS, Some(wiring)).unwrap() {
            chunks += 1;
        }
        assert_eq!(chunks, 3, "{name}");
        prompt.extend(words(3, 20));
        let fresh = run(pair.as_ref(), &prompt, Some(3), false, 24);
        let with = run(pair.as_ref(), &prompt, Some(3), true, 24);
        assert_eq!(with.held, whole, "{name}");
        assert_eq!(with.ids, fresh.ids, "{name}");
        assert_eq!(cache_difference(&with.cache, &fresh.cache), None, "{name}");
        // Nothing left to read.
        assert!(!pair.read_ahead(&prompt, TURN_ENDS, Some(wiring)).unwrap(), "{name}");
        // A first turn that was too short to be kept is read ahead for the drafter too.
        pair.keep(BUDGET);
        let mut first = words(7, 20);
        first.push(END);
        first.extend(words(8, 90));
        first.push(END);
        let whole = first.len();
        first.push(1);
        assert!(!pair.read_ahead(&first, TURN_ENDS, Some(wiring)).unwrap(), "{name}");
        assert_eq!(run(pair.as_ref(), &first, Some(3), true, 8).held, whole, "{name}");
    }
}

#[test]
fn conversations_with_the_same_start_do_not_take_from_each_other() {
    for (name, pair) in pairs() {
        pair.keep(BUDGET);
        let mut shared = words(9, 150);
        shared.push(END);
        let turn = |before: &[u32], key: usize| {
            let mut prompt = before.to_vec();
            prompt.extend(words(key, 90));
            prompt.push(END);
            prompt.extend([1, 2]);
            prompt
        };
        let mut chats = [turn(&shared, 20), turn(&shared, 40)];
        for round in 0..3 {
            for (i, chat) in chats.iter_mut().enumerate() {
                let case = format!("{name}, round {round}, chat {i}");
                let fresh = run(pair.as_ref(), chat, Some(3), false, 12);
                let with = run(pair.as_ref(), chat, Some(3), true, 12);
                assert_eq!(with.ids, fresh.ids, "{case}");
                assert_eq!(cache_difference(&with.cache, &fresh.cache), None, "{case}");
                let expected = if round > 0 {
                    chat.len() - 95
                } else {
                    [0, shared.len()][i]
                };
                assert!(with.held >= expected, "{case}: {} held, {expected} expected", with.held);
                *chat = turn(chat, 60 + round * 10 + i);
            }
        }
        // Another branch from the middle of a chat, then the chat goes on.
        let branch = turn(&shared, 77);
        let fresh = run(pair.as_ref(), &branch, Some(3), false, 12);
        assert_eq!(run(pair.as_ref(), &branch, Some(3), true, 12).ids, fresh.ids, "{name}");
        for chat in &chats {
            let fresh = run(pair.as_ref(), chat, None, false, 12);
            let with = run(pair.as_ref(), chat, None, true, 12);
            assert_eq!(with.ids, fresh.ids, "{name}");
            assert!(with.held >= chat.len() - 95, "{name}");
        }
    }
}

#[test]
fn ids_that_are_equal_in_one_byte_are_not_taken_for_each_other() {
    let pair = load(&builtin("target"), Some(&builtin("drafter")));
    pair.keep(BUDGET);
    let mut prompt: Vec<u32> = (0..85).map(|i| (i * 13 % 900 + 200) as u32).collect();
    let border = 70;
    prompt[border - 1] = END;
    run(pair.as_ref(), &prompt, Some(3), true, 8);
    for at in [3, 40, border - 2, 84] {
        let mut other = prompt.clone();
        other[at] += 256;
        let fresh = run(pair.as_ref(), &other, Some(3), false, 16);
        let with = run(pair.as_ref(), &other, Some(3), true, 16);
        assert_eq!(with.ids, fresh.ids, "{at}");
        assert_eq!(with.held, if at < border { 0 } else { border }, "{at}");
    }
    // The same prompt twice.
    let twice = [0, 1].map(|_| run(pair.as_ref(), &prompt, Some(3), true, 16));
    assert_eq!(twice[0].ids, twice[1].ids);
    assert_eq!(twice.map(|r| r.held), [border, border]);
}

#[test]
fn memory_is_bounded_and_the_least_used_goes_first() {
    let (name, pair) = pairs().remove(0);
    pair.keep(BUDGET);
    let chat = |key: usize| {
        let mut prompt = words(key, 200 + key);
        prompt.push(END);
        prompt.push(1);
        prompt
    };
    run(pair.as_ref(), &chat(0), Some(3), true, 8);
    let one = pair.kept_bytes();
    assert!(one > 0, "{name}");
    // Room for three.
    pair.keep(one * 7 / 2);
    assert_eq!(pair.kept_bytes(), 0);
    for key in 0..3 {
        run(pair.as_ref(), &chat(key), Some(3), true, 8);
    }
    // Used again, so that the second is the oldest.
    assert!(run(pair.as_ref(), &chat(0), Some(3), true, 8).held > 0);
    for key in 3..9 {
        run(pair.as_ref(), &chat(key), Some(3), true, 8);
        assert!(pair.kept_bytes() <= one * 7 / 2);
        let kept = run(pair.as_ref(), &chat(0), Some(3), true, 8).held > 0;
        assert!(kept, "what was just used went before what was not");
    }
    assert_eq!(run(pair.as_ref(), &chat(1), Some(3), true, 8).held, 0);
    // No room at all; reading ahead then ends at once instead of beginning again and again.
    pair.keep(0);
    let mut long = words(5, 1200);
    long.push(END);
    assert!(!pair.read_ahead(&long, TURN_ENDS, None).unwrap());
    for _ in 0..2 {
        assert_eq!(run(pair.as_ref(), &chat(0), Some(3), true, 8).held, 0);
    }
    assert_eq!(pair.kept_bytes(), 0);
}

fn say(messages: &[Message], fresh: bool) -> GenerateRequest {
    GenerateRequest {
        max_tokens: Some(24),
        fresh,
        thinking: Some(false),
        speculation: Speculation::Block(3),
        ..GenerateRequest::new(Prompt::Messages(messages.to_vec()))
    }
}

fn message(role: Role, content: &str) -> Message {
    Message {
        role,
        content: content.to_owned(),
        reasoning: None,
    }
}

fn go_on(_: GenerationEvent) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Ten turns through the engine: what is read for a turn is at most the turn itself and the reply before it.
#[test]
fn the_time_to_the_first_token_does_not_grow_with_the_history() {
    let engine = engine_with_builtin();
    let long = "Here is what I would like you to keep in mind while we talk about rivers, towns and trains. ".repeat(4);
    let mut messages = vec![message(Role::System, &long)];
    let mut read = Vec::new();
    for turn in 0..10 {
        let asks = format!("Turn {turn}: what is the capital of France, and what comes after {turn}?");
        messages.push(message(Role::User, &asks));
        let with = engine.generate(say(&messages, false), Box::new(go_on)).unwrap();
        read.push((with.stats.prompt_tokens - with.stats.cached_tokens, with.tokens.len()));
        // Reading everything anew takes its time here; the first tests compare every turn.
        if turn % 4 == 1 {
            let fresh = engine.generate(say(&messages, true), Box::new(go_on)).unwrap();
            assert_eq!(
                (&with.tokens, &with.answer),
                (&fresh.tokens, &fresh.answer),
                "turn {turn}"
            );
            assert_eq!(fresh.stats.cached_tokens, 0);
        }
        messages.push(message(Role::Assistant, &with.answer));
    }
    // A message of some 40 tokens, the reply before it, and less than one least chunk.
    for (turn, pair) in read.windows(2).enumerate() {
        let ((_, reply), (new, _)) = (pair[0], pair[1]);
        assert!(new <= reply + 60 + 64, "turn {}: {new} tokens read", turn + 1);
    }
}

/// As above without the text around it: at every token of a burst, for every family.
#[test]
fn ids_go_on_from_any_token_as_if_nothing_had_been_cut() {
    for (name, pair) in pairs() {
        let prompt = words(4, 30);
        for block_size in [None, Some(4)] {
            let whole = run(pair.as_ref(), &prompt, block_size, false, 20);
            for n in 1..20 {
                let sampling = SamplingParams {
                    temperature: 0.8,
                    seed: 5,
                    ..SamplingParams::default()
                };
                let sampler = pair.sampler(&sampling).unwrap();
                let limits = Limits {
                    max_tokens: 20 - n,
                    eos: Vec::new(),
                };
                let mut progress = |_| ControlFlow::Continue(());
                let request = StartRequest {
                    depth: block_size.map(Depth::block),
                    replay: &whole.ids[..n],
                    replay_rows: [1, 3, 8][n % 3],
                    ..StartRequest::new(&prompt, limits, &mut progress)
                };
                let mut decoder = pair.start(&sampler, request).unwrap().unwrap();
                let mut ids = whole.ids[..n].to_vec();
                while let Some(round) = decoder.next_round().unwrap() {
                    ids.extend(round.tokens);
                }
                assert_eq!(ids, whole.ids, "{name}, block {block_size:?}, cut at {n}");
                let cache = decoder.finish().unwrap();
                assert_eq!(
                    cache_difference(&cache, &whole.cache),
                    None,
                    "{name}, block {block_size:?}, cut at {n}"
                );
            }
        }
    }
}

#[test]
fn a_reply_that_was_stopped_anywhere_goes_on_as_if_it_had_not_been() {
    let engine = engine_with_builtin();
    let messages = [message(Role::User, "Count from one to twenty.")];
    for (temperature, speculation) in [(0.0, Speculation::Block(4)), (0.9, Speculation::Off)] {
        let mut request = say(&messages, false);
        request.max_tokens = Some(24);
        request.speculation = speculation;
        request.sampling.temperature = temperature;
        request.sampling.repetition_penalty = 1.05;
        let whole = engine.generate(request.clone(), Box::new(go_on)).unwrap();
        assert!(whole.tokens.len() > 12);
        for n in (1..whole.tokens.len()).step_by(5) {
            let rest = GenerateRequest {
                continued: whole.tokens[..n].to_vec(),
                max_tokens: Some(24 - n),
                ..request.clone()
            };
            let joined: Generated = engine.generate(rest, Box::new(go_on)).unwrap();
            let case = format!("{temperature}, {speculation:?}, {n}");
            assert_eq!(
                (joined.tokens, joined.text),
                (whole.tokens.clone(), whole.text.clone()),
                "{case}"
            );
            assert_eq!(
                (joined.answer, joined.finish),
                (whole.answer.clone(), whole.finish),
                "{case}"
            );
        }
    }
}

#[test]
fn a_reply_that_has_ended_does_not_go_on() {
    let engine = engine_with_builtin();
    let request = GenerateRequest {
        stop: vec![".".to_owned()],
        max_tokens: Some(90),
        ..say(&[message(Role::User, "Count from one to five.")], false)
    };
    let ended = engine.generate(request.clone(), Box::new(go_on)).unwrap();
    let again = GenerateRequest {
        continued: ended.tokens,
        ..request
    };
    let outcome = engine.generate(again, Box::new(go_on));
    assert!(
        matches!(&outcome, Err(Error::Usage { message }) if message.contains("ended")),
        "{outcome:?}"
    );
}

#[test]
fn a_prompt_that_was_stopped_halfway_is_not_read_from_the_start_again() {
    let engine = engine_with_builtin();
    let long = "One two three four five six seven eight nine ten. ".repeat(55);
    let request = say(&[message(Role::User, &long)], false);
    let mut events = 0;
    let stopped = engine
        .generate(
            request.clone(),
            Box::new(move |_: GenerationEvent| {
                events += 1;
                if events > 1 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }),
        )
        .unwrap();
    assert!(stopped.tokens.is_empty());
    let whole = engine.generate(request.clone(), Box::new(go_on)).unwrap();
    assert_eq!(whole.stats.cached_tokens, PREFILL_CHUNK);
    let fresh = engine
        .generate(GenerateRequest { fresh: true, ..request }, Box::new(go_on))
        .unwrap();
    assert_eq!(whole.tokens, fresh.tokens);
}
