//! Passes a generation's events on: to the listener at most 30 times a second, to the store twice.

use std::time::Duration;

use models::{Generated, GenerationEvent, GenerationStats, SelfCheck};
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::{Listener, continued, continued::joined, origin::Recorder, request::run_of, request::thought_of};
use crate::ipc::{AppError, MessageStatus, Run, Thought, TurnEvent};
use crate::store::{Begun, Ending, Resume, Store};

/// Least time between two events to the listener.
const TELL_EVERY: Duration = Duration::from_millis(34);
/// Least time between two looks at the figures.
const FIGURES_EVERY: Duration = Duration::from_millis(250);
/// Least time between two writes of a partial reply.
const SAVE_EVERY: Duration = Duration::from_millis(500);

/// Text of a reply that only grows, and how much of it the listener has.
#[derive(Default)]
struct Text {
    all: String,
    told: usize,
}

impl Text {
    /// What the listener has already.
    fn told(all: String) -> Self {
        Text { told: all.len(), all }
    }

    fn untold(&self) -> &str {
        self.all.get(self.told..).unwrap_or_default()
    }

    fn take_untold(&mut self) -> String {
        let new = self.untold().to_owned();
        self.told = self.all.len();
        new
    }

    /// Adds what `whole` has beyond the text; what was shown is never taken back.
    fn extend_to(&mut self, whole: &str) {
        if let Some(rest) = whole.strip_prefix(self.all.as_str()) {
            self.all.push_str(rest);
        }
    }
}

pub(super) struct Relay {
    store: Store,
    message_id: i32,
    listener: Option<Listener>,
    model: String,
    check: Option<SelfCheck>,
    seed: u64,
    answer: Text,
    reasoning: Text,
    tokens: Vec<u32>,
    /// Bytes of answer and thinking that the tokens showed, where more was added at the end.
    shown: Option<(usize, usize)>,
    origin: Recorder,
    /// Figures of the part before, if this one goes on.
    before: Option<Run>,
    thought_before: Option<Thought>,
    prefill: Option<(usize, usize)>,
    stats: Option<GenerationStats>,
    is_complete: bool,
    told_at: Option<Instant>,
    figures_at: Option<Instant>,
    saved_at: Instant,
}

impl Relay {
    pub(super) fn new(store: Store, begun: &Begun, listener: Listener) -> Self {
        let reply = &begun.assistant;
        let continued = begun.continued.as_ref();
        Relay {
            store,
            message_id: reply.id,
            listener: Some(listener),
            model: String::new(),
            check: None,
            seed: 0,
            answer: Text::told(reply.content.clone()),
            reasoning: Text::told(reply.reasoning.clone().unwrap_or_default()),
            tokens: continued.map(|continued| continued.tokens.clone()).unwrap_or_default(),
            shown: None,
            origin: Recorder::new(begun),
            before: continued.and_then(|continued| continued.run.clone()),
            thought_before: continued.and_then(|continued| continued.made.thought.clone()),
            prefill: None,
            stats: None,
            is_complete: false,
            told_at: None,
            figures_at: None,
            saved_at: Instant::now(),
        }
    }

    /// Which model runs with which seed, and how exact it is, for the figures.
    pub(super) fn describe(&mut self, model: String, check: Option<SelfCheck>, seed: u64) {
        self.model = model;
        self.check = check;
        self.seed = seed;
    }

    /// Passes events on until the generation has ended.
    pub(super) async fn run(&mut self, events: &mut Receiver<GenerationEvent>) {
        loop {
            let event = match self.due() {
                None => events.recv().await,
                Some(due) => tokio::select! {
                    // First the clock: a fast stream must not keep it from being looked at.
                    biased;
                    () = tokio::time::sleep_until(due) => {
                        self.flush();
                        continue;
                    }
                    event = events.recv() => event,
                },
            };
            match event {
                None => return,
                Some(event) => self.take(event),
            }
            if self.saved_at.elapsed() >= SAVE_EVERY {
                // A partial reply that is not saved costs nothing unless the app dies; the end is saved for sure.
                let _ = self
                    .store
                    .save_partial(self.message_id, &self.answer.all, &self.reasoning.all, &self.tokens)
                    .await;
                self.saved_at = Instant::now();
            }
        }
    }

    /// Takes over the text that the engine held back until the end, and the last figures.
    pub(super) fn complete(&mut self, generated: Generated) {
        self.shown = Some(self.lengths());
        self.tokens = generated.tokens;
        let (answer, reasoning) = self.lengths();
        self.origin.show(
            &generated.late,
            generated.reasoning.get(reasoning..).unwrap_or_default(),
            generated.answer.get(answer..).unwrap_or_default(),
        );
        self.answer.extend_to(&generated.answer);
        self.reasoning.extend_to(&generated.reasoning);
        self.stats = Some(generated.stats);
        self.is_complete = true;
        self.flush();
    }

    /// Tells the listener what it has not heard yet.
    pub(super) fn flush(&mut self) {
        if let Some((done, total)) = self.prefill.take() {
            self.tell(TurnEvent::Prefill {
                done: super::count(done),
                total: super::count(total),
            });
        }
        if !self.answer.untold().is_empty() || !self.reasoning.untold().is_empty() {
            let (answer, reasoning) = (self.answer.take_untold(), self.reasoning.take_untold());
            let is_due = self.figures_at.is_none_or(|at| at.elapsed() >= FIGURES_EVERY);
            let run = is_due.then(|| self.figures()).flatten();
            if run.is_some() {
                self.figures_at = Some(Instant::now());
            }
            let (thought, origin) = (self.thought(), self.origin.news(self.is_complete));
            self.tell(TurnEvent::Delta {
                reasoning,
                answer,
                thought,
                run,
                origin,
            });
        }
        self.told_at = Some(Instant::now());
    }

    pub(super) fn tell(&mut self, event: TurnEvent) {
        if let Some(listener) = &mut self.listener
            && !listener(event)
        {
            self.listener = None;
        }
    }

    /// The reply as it stands.
    pub(super) fn ending(&self, status: MessageStatus, error: Option<AppError>) -> Ending {
        Ending {
            content: self.answer.all.clone(),
            reasoning: self.reasoning.all.clone(),
            status,
            run: self.figures(),
            error,
            resume: self.resume(status),
            origin: self.origin.origin(),
        }
    }

    /// A reply that ended by itself has nowhere to go on to.
    fn resume(&self, status: MessageStatus) -> Option<Resume> {
        if status == MessageStatus::Complete || self.tokens.is_empty() {
            return None;
        }
        let (answer, reasoning) = self.shown.unwrap_or_else(|| self.lengths());
        Some(Resume {
            tokens: self.tokens.clone(),
            answer,
            reasoning,
        })
    }

    fn lengths(&self) -> (usize, usize) {
        (self.answer.all.len(), self.reasoning.all.len())
    }

    fn take(&mut self, event: GenerationEvent) {
        match event {
            GenerationEvent::Prefill { done, total } => self.prefill = Some((done, total)),
            GenerationEvent::Round {
                reasoning,
                answer,
                round,
                stats,
            } => {
                self.origin.add(&round, &reasoning, &answer);
                self.tokens.extend(round.tokens);
                self.answer.all.push_str(&answer);
                self.reasoning.all.push_str(&reasoning);
                self.stats = Some(stats);
            }
        }
    }

    /// When the listener is to hear what is new, if anything is.
    fn due(&self) -> Option<Instant> {
        let new = self.prefill.is_some() || !self.answer.untold().is_empty() || !self.reasoning.untold().is_empty();
        new.then(|| self.told_at.map_or_else(Instant::now, |told_at| told_at + TELL_EVERY))
    }

    /// How long it thought up to now.
    pub(super) fn thought(&self) -> Option<Thought> {
        let now = self.stats.as_ref().and_then(|stats| thought_of(&stats.thought));
        match now {
            Some(now) => Some(continued::thought(self.thought_before.as_ref(), now)),
            None => self.thought_before.clone(),
        }
    }

    fn figures(&self) -> Option<Run> {
        let Some(stats) = &self.stats else {
            return self.before.clone();
        };
        let run = run_of(&self.model, self.check.as_ref(), stats, self.seed);
        Some(match &self.before {
            Some(before) => joined(before, run),
            None => run,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Numbers that look random and are the same each time.
    fn noise(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[tokio::test]
    async fn the_deltas_together_are_the_stored_text_however_it_arrives() {
        let dir = tempfile::TempDir::new().unwrap();
        let store = Store::open(dir.path()).await.unwrap();
        let text: Vec<char> = "Zwölf Boxkämpfer jagen 🦊 quer über den Sylter Deich. "
            .repeat(8)
            .chars()
            .collect();
        for seed in 0..12_u64 {
            let begun = store.begin_turn(None, "t", "x").await.unwrap();
            let heard = Arc::new(Mutex::new(Vec::new()));
            let kept = heard.clone();
            let listener = Box::new(move |event| {
                kept.lock().unwrap().push((Instant::now(), event));
                true
            });
            let mut relay = Relay::new(store.clone(), &begun, listener);
            let (sender, mut events) = tokio::sync::mpsc::channel(4);
            let (text, mut state) = (text.clone(), seed);
            let source = tokio::spawn(async move {
                let (mut at, mut answer, mut reasoning) = (0, String::new(), String::new());
                while at < text.len() {
                    let end = text.len().min(at + noise(&mut state) as usize % 9);
                    let piece: String = text[at..end].iter().collect();
                    let thinking = at < text.len() / 3;
                    if thinking { &mut reasoning } else { &mut answer }.push_str(&piece);
                    let (new_reasoning, new_answer) = if thinking {
                        (piece, String::new())
                    } else {
                        (String::new(), piece)
                    };
                    let event = GenerationEvent::Round {
                        reasoning: new_reasoning,
                        answer: new_answer,
                        round: models::RoundStats::default(),
                        stats: GenerationStats::default(),
                    };
                    sender.send(event).await.unwrap();
                    at = end;
                    if noise(&mut state).is_multiple_of(3) {
                        tokio::time::sleep(Duration::from_millis(noise(&mut state) % 12)).await;
                    }
                }
                // The engine holds back what might have become a stop string.
                answer.push_str(" the end");
                (reasoning, answer)
            });
            relay.run(&mut events).await;
            let (reasoning, answer) = source.await.unwrap();
            relay.complete(Generated {
                tokens: Vec::new(),
                text: String::new(),
                reasoning: reasoning.clone(),
                answer: answer.clone(),
                late: Vec::new(),
                thinking_used_budget: false,
                finish: models::FinishReason::Stop,
                stats: GenerationStats::default(),
            });
            let ending = relay.ending(MessageStatus::Complete, None);
            assert_eq!((&ending.content, &ending.reasoning), (&answer, &reasoning));

            let heard = heard.lock().unwrap();
            let mut told = (String::new(), String::new());
            for (_, event) in &*heard {
                let TurnEvent::Delta { reasoning, answer, .. } = event else {
                    panic!("{event:?}")
                };
                told.0.push_str(reasoning);
                told.1.push_str(answer);
            }
            assert_eq!(told, (reasoning, answer));
            let steady = &heard[..heard.len() - 1];
            assert!(
                steady
                    .windows(2)
                    .all(|pair| pair[1].0 - pair[0].0 >= Duration::from_millis(33))
            );
        }
    }
}
