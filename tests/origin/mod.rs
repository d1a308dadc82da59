//! Which token showed what, and which draft was rejected, as the engine tells it.

mod kept;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use models::text::{TextStream, Tokenizer};
use models::{
    Engine, GenerateRequest, Generated, GenerationEvent, LoadRequest, Message, Piece, Prompt, Role, RoundStats,
    SamplingParams, Speculation,
};
use tests::{builtin, engine_with_builtin, golden};

/// A reply with its rounds, and the text that each of its tokens showed.
struct Reply {
    generated: Generated,
    rounds: Vec<RoundStats>,
    thinking: Vec<String>,
    answer: Vec<String>,
}

fn reply(engine: &Engine, request: GenerateRequest) -> Reply {
    let seen: Arc<Mutex<Vec<(String, String, RoundStats)>>> = Arc::default();
    let kept = seen.clone();
    let sink = move |event| {
        if let GenerationEvent::Round {
            reasoning,
            answer,
            round,
            ..
        } = event
        {
            kept.lock().unwrap().push((reasoning, answer, round));
        }
        ControlFlow::Continue(())
    };
    let before = request.continued.len();
    let generated = engine.generate(request, Box::new(sink)).unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let tokens = before + seen.iter().map(|(.., round)| round.kept).sum::<usize>();
    let mut reply = Reply {
        generated,
        rounds: Vec::new(),
        thinking: vec![String::new(); tokens],
        answer: vec![String::new(); tokens],
    };
    let mut told = (String::new(), String::new());
    for (reasoning, answer, round) in seen {
        reply.give(&round.pieces, &reasoning, &answer);
        told = (told.0 + &reasoning, told.1 + &answer);
        reply.rounds.push(round);
    }
    if before == 0 {
        let whole = (reply.generated.reasoning.clone(), reply.generated.answer.clone());
        let rest = (&whole.0[told.0.len()..], &whole.1[told.1.len()..]);
        let late = reply.generated.late.clone();
        reply.give(&late, rest.0, rest.1);
        assert_eq!((reply.thinking.concat(), reply.answer.concat()), whole);
    }
    reply
}

impl Reply {
    /// Pieces cover their texts, no more and no less.
    fn give<'t>(&mut self, pieces: &[Piece], mut reasoning: &'t str, mut answer: &'t str) {
        for piece in pieces {
            let (text, shown) = match piece.thinking {
                true => (&mut reasoning, &mut self.thinking),
                false => (&mut answer, &mut self.answer),
            };
            let (own, rest) = text.split_at(piece.bytes);
            shown[piece.token] += own;
            *text = rest;
        }
        assert_eq!((reasoning, answer), ("", ""));
    }

    /// What is told of drafts fits together.
    fn check_rounds(&self) {
        for round in &self.rounds {
            let is_judged = round.accepted < round.kept;
            let is_rejected = is_judged && round.accepted < round.drafted;
            assert_eq!(round.rejected.is_some(), is_rejected, "{round:?}");
            assert!(
                round.accepted <= round.drafted && round.kept <= round.accepted + 1,
                "{round:?}"
            );
        }
        assert_eq!(self.rounds[0].ms, None);
        assert!(
            self.rounds[1..]
                .iter()
                .all(|round| round.ms.is_some_and(|ms| ms >= 0.0))
        );
        let ms: f64 = self.rounds.iter().filter_map(|round| round.ms).sum();
        let stats = &self.generated.stats;
        assert!((ms - stats.decode_ms).abs() < 1e-3, "times add up to the decode time");
        let after_first = self.rounds[1..].iter().map(|round| round.kept).sum::<usize>() as f64;
        assert!((stats.decode_tokens_per_second - after_first / ms * 1e3).abs() < 1e-6);
    }
}

/// For each token the characters that it completed, whatever holds them back.
fn completed(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    let mut stream = TextStream::new(&[]);
    ids.iter()
        .map(|id| {
            let mut shown = String::new();
            let _ = stream.push(&tokenizer.token_bytes(*id), &mut shown);
            shown
        })
        .collect()
}

fn raw(prompt: &str, temperature: f32, speculation: Speculation) -> GenerateRequest {
    GenerateRequest {
        max_tokens: Some(60),
        ignore_eos: true,
        speculation,
        sampling: SamplingParams {
            temperature,
            seed: 3,
            ..SamplingParams::default()
        },
        ..GenerateRequest::new(Prompt::Raw(prompt.to_owned()))
    }
}

#[test]
fn every_character_is_its_tokens_whatever_held_it_back() {
    let (engine, tokenizer) = (engine_with_builtin(), Tokenizer::load(&builtin("target")).unwrap());
    let parts = (0..tokenizer.vocab_size() as u32).filter(|id| String::from_utf8(tokenizer.token_bytes(*id)).is_err());
    let parts: Vec<(u32, f32)> = parts.map(|id| (id, 30.0)).collect();
    let mut split = 0;
    // Hot enough for bytes that make up no character, and for some that do.
    for (temperature, block) in [(0.0, 3), (1.0, 4), (8.0, 2), (8.0, 0), (30.0, 4)] {
        let speculation = match block {
            0 => Speculation::Off,
            size => Speculation::Block(size),
        };
        let asked = || {
            let mut request = raw("Once upon a time 🦊", temperature, speculation);
            if temperature >= 8.0 {
                request.sampling.logit_bias.clone_from(&parts);
            }
            request
        };
        let free = reply(&engine, asked());
        free.check_rounds();
        let ids = free.generated.tokens.clone();
        let own = completed(&tokenizer, &ids);
        assert_eq!(free.answer[..ids.len()], own);
        split += own.iter().filter(|text| text.is_empty()).count();

        // Held back again and again, and let go of.
        let begins = |at: usize| free.generated.text.chars().skip(at).take(2).collect::<String>() + "\u{0}\u{0}";
        let held = GenerateRequest {
            stop: vec![begins(3), begins(9), begins(12), begins(20), begins(31)],
            ..asked()
        };
        assert_eq!(reply(&engine, held).answer, free.answer);

        // Stopped in its middle: what comes before is as it was, up to the stop string.
        let stop: String = free.generated.text.chars().skip(15).take(4).collect();
        let at = free.generated.text.find(&stop).unwrap();
        let stopped = reply(
            &engine,
            GenerateRequest {
                stop: vec![stop],
                ..asked()
            },
        );
        stopped.check_rounds();
        assert_eq!(stopped.generated.text, free.generated.text[..at]);
        let mut rest = at;
        for (own, whole) in stopped.answer.iter().zip(&own) {
            assert_eq!(own, &whole[..whole.len().min(rest)]);
            rest -= own.len();
        }
    }
    assert!(split > 10, "too few tokens were parts of characters: {split}");
}

#[test]
fn thinking_and_answer_are_cut_by_token_and_tags_are_nobodys_text() {
    let (engine, tokenizer) = (engine_with_builtin(), Tokenizer::load(&builtin("target")).unwrap());
    for (thinking, block) in [(Some(true), 3), (Some(false), 3), (Some(true), 5), (None, 2)] {
        let request = GenerateRequest {
            thinking,
            max_tokens: Some(90),
            speculation: Speculation::Block(block),
            ..GenerateRequest::new(Prompt::Messages(vec![Message {
                role: Role::User,
                content: "What is 12 + 30?".to_owned(),
                reasoning: None,
            }]))
        };
        let made = reply(&engine, request);
        made.check_rounds();
        assert!(made.rounds.iter().any(|round| round.accepted > 0));
        let own = completed(&tokenizer, &made.generated.tokens);
        for (at, whole) in own.iter().enumerate() {
            let shown = made.thinking[at].clone() + &made.answer[at];
            // Tags and the white space around the two texts are shown by no token.
            assert!(whole.contains(&shown), "{shown:?} of {whole:?}");
            if shown.is_empty() {
                assert!(
                    whole.trim().is_empty() || whole.contains("think>"),
                    "{whole:?} was lost"
                );
            }
        }
    }
}

/// The first draft after some tokens hardly depends on where rounds began before (the drafter keeps what it made of drafts
/// that were right): runs of different block sizes must nearly always tell of it alike.
#[test]
fn runs_of_every_block_size_tell_of_the_same_drafts() {
    let engine = engine_with_builtin();
    // The rejected draft at each place where a round began, `None` if it was accepted.
    let mut first: HashMap<usize, Option<String>> = HashMap::new();
    let (mut text, mut agreed, mut differed, mut rejected) = (None, 0, 0, 0);
    for block in 2..=6 {
        let made = reply(
            &engine,
            raw("A story about a fox and the sea.", 0.0, Speculation::Block(block)),
        );
        made.check_rounds();
        assert_eq!(
            text.get_or_insert_with(|| made.generated.text.clone()),
            &made.generated.text
        );
        let mut at = 0;
        for round in &made.rounds {
            if round.drafted > 0 {
                let told = (round.accepted == 0).then(|| round.rejected.clone().unwrap());
                rejected += usize::from(told.is_some());
                if let Some(before) = first.insert(at, told.clone()) {
                    *(if before == told { &mut agreed } else { &mut differed }) += 1;
                }
                if let (Some(draft), Some(own)) = (&round.rejected, made.answer.get(at + round.accepted)) {
                    assert_ne!(draft, own, "at token {at}");
                }
            }
            at += round.kept;
        }
    }
    assert!(agreed > 20 && rejected > 5, "{agreed} places, {rejected} rejected");
    assert!(
        differed * 8 <= agreed,
        "{differed} of {agreed} places are told otherwise"
    );
}

#[test]
fn a_checkpoint_without_tokenizer_tells_ids_and_a_reply_that_goes_on_counts_on() {
    let engine = Engine::start();
    let target = golden("qwen3_5").join("hf");
    engine
        .load(LoadRequest {
            target,
            ..LoadRequest::default()
        })
        .unwrap();
    let request = GenerateRequest {
        max_tokens: Some(30),
        ignore_eos: true,
        speculation: Speculation::Block(4),
        ..GenerateRequest::new(Prompt::Ids(vec![11, 5, 93, 40, 7, 128, 64]))
    };
    let made = reply(&engine, request);
    made.check_rounds();
    let drafts = made.rounds.iter().filter_map(|round| round.rejected.as_ref());
    assert!(drafts.clone().count() > 0 && drafts.clone().all(|id| id.parse::<u32>().is_ok()));

    let engine = engine_with_builtin();
    let whole = reply(&engine, raw("Once upon a time", 0.0, Speculation::Block(3)));
    for cut in [1, 7, 20] {
        let request = GenerateRequest {
            continued: whole.generated.tokens[..cut].to_vec(),
            max_tokens: Some(60 - cut),
            ..raw("Once upon a time", 0.0, Speculation::Block(3))
        };
        let on = reply(&engine, request);
        assert_eq!(
            on.answer[cut..],
            whole.answer[cut..],
            "what was shown before is not shown again"
        );
        assert!(on.answer[..cut].iter().all(String::is_empty));
    }
}
