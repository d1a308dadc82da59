//! `paced-window`: the app's own window for the stories that must not wait for a model. Chats of `SLIPSTREAM_STORY_CHATS`, a
//! file that the app exports, are there when it opens. `pace TOKENS RATE` is answered with so many tokens at so many a
//! second, `echo TEXT` with the text, a byte a token, by the engine's own text stream; all else by the model.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use app::bench::Runner;
use models::text::TextStream;
use models::{
    Engine, FinishReason, GenerateRequest, Generated, GenerationEvent, GenerationStats, Margin, Piece, Prompt,
    RoundStats, SelfCheck, Sink, SpeculationState, SpeculationStats,
};

/// Drafts a round has, and how many of them are kept in turn.
const DEPTH: usize = 2;
const KEPT: [usize; 6] = [2, 1, 2, 0, 2, 1];

const PARAGRAPH: &str = "## A heading\n\nThe **sea** was calm that morning, and `nobody` had thought of the dog. It sat on the pier, \
    as it did each day, and looked out to where the boats were.\n\n- the first boat had two masts\n- the second had none, and \
    *went* all the same\n\n| boat | masts | crew |\n|---|---:|---:|\n| Anna | 2 | 11 |\n| Otter | 0 | 3 |\n\n```rust\nfn main() {\n    \
    let masts: u32 = [2, 0].iter().sum();\n    println!(\"{masts} masts\");\n}\n```\n\n> What is far away looks small, said the \
    captain.\n\n";

fn main() {
    models::prepare_process();
    app::run_with(async |mut state| {
        if let Some(file) = std::env::var_os("SLIPSTREAM_STORY_CHATS")
            && state.store.list_chats().await.unwrap().is_empty()
        {
            state.import_chats(&[file.into()]).await.unwrap();
        }
        state.turns = state.turns.with_runner(|engine| Arc::new(Paced(engine)));
        state
    })
    .unwrap();
}

struct Paced(Engine);

impl Runner for Paced {
    fn generate(&self, request: GenerateRequest, sink: Box<dyn Sink>) -> models::Result<Generated> {
        let asked = match &request.prompt {
            Prompt::Messages(messages) => messages.last().map_or("", |message| message.content.as_str()),
            _ => "",
        };
        if let Some(text) = asked.strip_prefix("echo ") {
            return Ok(Reply::default().say(bytes(text).into_iter(), Duration::from_millis(4), sink));
        }
        if let Some((tokens, rate)) = asked.strip_prefix("pace ").and_then(|rest| rest.split_once(' ')) {
            let (tokens, rate): (usize, f64) = (tokens.parse().unwrap(), rate.parse().unwrap());
            let pieces = words(PARAGRAPH).cycle().take(tokens);
            return Ok(Reply::default().say(pieces, Duration::from_secs_f64(1.0 / rate), sink));
        }
        self.0.generate(request, sink)
    }

    fn margin(&self, request: GenerateRequest, before: Vec<u32>) -> models::Result<Margin> {
        self.0.margin(request, before)
    }

    fn self_check(&self) -> models::Result<SelfCheck> {
        self.0.self_check()
    }

    fn spell(&self, ids: Vec<u32>) -> models::Result<String> {
        self.0.spell(ids)
    }
}

/// What each byte shows: nothing until its character is whole.
fn bytes(text: &str) -> Vec<String> {
    let mut stream = TextStream::new(&[]);
    let show = |byte| {
        let mut shown = String::new();
        assert!(stream.push(&[byte], &mut shown).is_continue());
        shown
    };
    text.bytes().map(show).collect()
}

/// About four characters each, as tokens have.
fn words(text: &str) -> impl Iterator<Item = String> + Clone {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(4).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

#[derive(Default)]
struct Reply {
    tokens: Vec<u32>,
    text: String,
    stats: GenerationStats,
}

impl Reply {
    fn say(mut self, mut pieces: impl Iterator<Item = String>, every: Duration, mut sink: Box<dyn Sink>) -> Generated {
        let start = Instant::now();
        let mut finish = FinishReason::Stop;
        for round in 0.. {
            let accepted = KEPT[round % KEPT.len()];
            let answer: Vec<String> = pieces.by_ref().take(accepted + 1).collect();
            if answer.is_empty() {
                break;
            }
            // By the clock and not by pauses: they add up to more.
            let due = every * u32::try_from(self.tokens.len() + answer.len()).unwrap();
            std::thread::sleep(due.saturating_sub(start.elapsed()));
            let event = self.round(answer, start);
            if sink.event(event).is_break() {
                finish = FinishReason::Cancelled;
                break;
            }
        }
        Generated {
            tokens: self.tokens,
            text: self.text.clone(),
            reasoning: String::new(),
            answer: self.text,
            late: Vec::new(),
            thinking_used_budget: false,
            finish,
            stats: self.stats,
        }
    }

    fn round(&mut self, answer: Vec<String>, start: Instant) -> GenerationEvent {
        let accepted = answer.len() - 1;
        let ids = vec![1; answer.len()];
        let pieces = (self.tokens.len()..).zip(&answer).map(|(token, text)| Piece {
            token,
            thinking: false,
            bytes: text.len(),
        });
        let pieces = pieces.collect();
        let answer = answer.concat();
        self.tokens.extend(&ids);
        self.text.push_str(&answer);
        self.count(accepted, start);
        GenerationEvent::Round {
            reasoning: String::new(),
            answer,
            round: RoundStats {
                drafted: DEPTH,
                accepted,
                kept: ids.len(),
                tokens: ids,
                pieces,
                ..Default::default()
            },
            stats: self.stats.clone(),
        }
    }

    fn count(&mut self, accepted: usize, start: Instant) {
        let decode_ms = start.elapsed().as_secs_f64() * 1000.0;
        let stats = &mut self.stats;
        stats.prompt_tokens = 24;
        stats.tokens = self.tokens.len();
        stats.ttft_ms = 12.0;
        stats.prefill_ms = 10.0;
        stats.decode_ms = decode_ms;
        stats.decode_tokens_per_second = stats.tokens as f64 / decode_ms.max(1.0) * 1000.0;
        let speculation: &mut SpeculationStats = &mut stats.speculation;
        speculation.enabled = true;
        speculation.state = SpeculationState::Fixed {
            depth: DEPTH,
            why: "as asked".to_owned(),
        };
        speculation.block_size = DEPTH + 1;
        speculation.rounds += 1;
        speculation.drafted += DEPTH;
        speculation.accepted += accepted;
        speculation.acceptance_rate = speculation.accepted as f64 / speculation.drafted as f64;
        speculation.tokens_per_round = stats.tokens as f64 / speculation.rounds as f64;
        speculation.drafted_per_round.push(DEPTH);
        speculation.accepted_per_round.push(accepted);
        let rounds = speculation.rounds as f64;
        let kept = |depth: usize| {
            speculation
                .accepted_per_round
                .iter()
                .filter(|kept| **kept >= depth)
                .count() as f64
        };
        speculation.acceptance_by_position = (1..=DEPTH).map(|depth| kept(depth) / rounds).collect();
    }
}
