//! From what the person chose to what the engine is asked, and from what it did to figures.

use std::hash::{BuildHasher, RandomState};

use models::{
    Exactness, GenerateRequest, GenerationStats, MAX_BLOCK_SIZE, Prompt, SamplingParams, SelfCheck, Speculation,
    exactness_sentence,
};

use crate::error::Error;
use crate::ipc::{ExactnessChoice, Message, MessageStatus, Role, Run, SpeculationChoice, Thought, TurnOptions};

/// Seeds pass through JavaScript numbers, which are exact below this.
const SEED_LIMIT: u64 = 1 << 53;

/// Refuses options that no generation can have.
pub fn check_options(options: &TurnOptions) -> Result<(), Error> {
    let bad = |option, value: String, expected| {
        Err(Error::BadOption {
            option,
            value,
            expected,
        })
    };
    if let SpeculationChoice::Block { size } = options.speculation
        && !(2..=MAX_BLOCK_SIZE).contains(&(size as usize))
    {
        return bad("the block size", size.to_string(), "from 2 to 16");
    }
    match options.temperature {
        Some(value) if !(0.0..=100.0).contains(&value) => bad("temperature", value.to_string(), "from 0 to 100"),
        _ => Ok(()),
    }?;
    for (option, value) in [("top_p", options.top_p), ("min_p", options.min_p)] {
        match value {
            Some(value) if !(0.0..=1.0).contains(&value) => bad(option, value.to_string(), "from 0 to 1"),
            _ => Ok(()),
        }?;
    }
    match options.seed {
        Some(seed) if seed.fract() != 0.0 || !(0.0..SEED_LIMIT as f64).contains(&seed) => {
            bad("the seed", seed.to_string(), "a whole number from 0, below 2^53")
        }
        _ => Ok(()),
    }?;
    match options.max_tokens {
        Some(0) => bad("the token limit", "0".to_owned(), "at least 1"),
        _ => Ok(()),
    }
}

/// The engine's request for the reply that comes after `history`, under a chat's instructions, if they are not blank.
#[must_use]
pub fn build(
    history: &[Message],
    instructions: &str,
    options: &TurnOptions,
    defaults: &SamplingParams,
) -> GenerateRequest {
    let system = (!instructions.trim().is_empty()).then(|| models::Message {
        role: models::Role::System,
        content: instructions.to_owned(),
        reasoning: None,
    });
    let said = history
        .iter()
        .filter(|message| belongs_to_the_conversation(message))
        .map(engine_message);
    let messages = system.into_iter().chain(said).collect();
    GenerateRequest {
        sampling: sampling(options, defaults),
        max_tokens: options.max_tokens.map(|tokens| tokens as usize),
        speculation: speculation(options.speculation),
        exactness: match options.exactness {
            ExactnessChoice::Exact => Exactness::Exact,
            ExactnessChoice::Fast => Exactness::Fast,
        },
        thinking: options.thinking,
        thinking_budget: options.thinking_budget.map(|tokens| tokens as usize),
        ..GenerateRequest::new(Prompt::Messages(messages))
    }
}

/// The checkpoint's defaults, under what the options say.
#[must_use]
pub fn sampling(options: &TurnOptions, defaults: &SamplingParams) -> SamplingParams {
    SamplingParams {
        temperature: options.temperature.map_or(defaults.temperature, |value| value as f32),
        top_p: options.top_p.map_or(defaults.top_p, |value| value as f32),
        top_k: options.top_k.map_or(defaults.top_k, |value| value as usize),
        min_p: options.min_p.map_or(defaults.min_p, |value| value as f32),
        seed: options.seed.map_or_else(fresh_seed, |seed| seed as u64),
        ..defaults.clone()
    }
}

/// What the engine is asked for.
#[must_use]
pub fn speculation(choice: SpeculationChoice) -> Speculation {
    match choice {
        SpeculationChoice::Off => Speculation::Off,
        SpeculationChoice::Auto => Speculation::Auto,
        SpeculationChoice::Block { size } => Speculation::Block(size as usize),
    }
}

/// A seed that was not used before. The standard library keys each hash map at random; that will do.
#[must_use]
pub fn fresh_seed() -> u64 {
    RandomState::new().hash_one(std::time::Instant::now()) % SEED_LIMIT
}

/// Figures as the window shows and the store keeps them.
#[must_use]
pub fn run_of(model: &str, check: Option<&SelfCheck>, stats: &GenerationStats, seed: u64) -> Run {
    let speculation = &stats.speculation;
    Run {
        model: model.to_owned(),
        speculating: speculation.enabled,
        state: speculation.state.name().to_owned(),
        sentence: speculation.state.sentence(),
        reason: speculation.reason.clone(),
        exactness: match speculation.exactness {
            Exactness::Exact => ExactnessChoice::Exact,
            Exactness::Fast => ExactnessChoice::Fast,
        },
        exactness_sentence: exactness_sentence(check, speculation.exactness),
        block_size: count(speculation.block_size),
        wiring: speculation.wiring.clone(),
        prompt_tokens: count(stats.prompt_tokens),
        tokens: count(stats.tokens),
        prefill_ms: finite(stats.prefill_ms),
        ttft_ms: finite(stats.ttft_ms),
        decode_ms: finite(stats.decode_ms),
        tokens_per_second: finite(stats.decode_tokens_per_second),
        rounds: count(speculation.rounds),
        plain_rounds: count(speculation.plain_rounds),
        drafted: count(speculation.drafted),
        accepted: count(speculation.accepted),
        acceptance_rate: finite(speculation.acceptance_rate),
        tokens_per_round: finite(speculation.tokens_per_round),
        acceptance_by_position: speculation.acceptance_by_position.iter().copied().map(finite).collect(),
        accepted_per_round: speculation.accepted_per_round.iter().copied().map(count).collect(),
        drafted_per_round: speculation.drafted_per_round.iter().copied().map(count).collect(),
        seed: seed as f64,
    }
}

/// What the window shows of thinking; `None` where there was none.
pub(super) fn thought_of(thought: &models::Thought) -> Option<Thought> {
    let is_any = thought.tokens > 0 || thought.is_open || thought.ended.is_some();
    is_any.then(|| Thought {
        tokens: count(thought.tokens),
        ms: finite(thought.ms),
        open: thought.is_open,
        ended: thought.ended.map(|by| by.as_str().to_owned()),
    })
}

/// A count as it crosses to the window.
#[must_use]
pub fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Neither JSON nor SQLite can hold the others.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// A reply without text says nothing; one that broke off is what the person saw.
fn belongs_to_the_conversation(message: &Message) -> bool {
    match message.role {
        Role::System | Role::User => true,
        Role::Assistant => message.status != MessageStatus::Streaming && !message.content.trim().is_empty(),
    }
}

fn engine_message(message: &Message) -> models::Message {
    let role = match message.role {
        Role::System => models::Role::System,
        Role::User => models::Role::User,
        Role::Assistant => models::Role::Assistant,
    };
    models::Message {
        role,
        content: message.content.clone(),
        reasoning: message.reasoning.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, content: &str, status: MessageStatus) -> Message {
        Message {
            id: 1,
            chat_id: 1,
            role,
            content: content.to_owned(),
            reasoning: None,
            thought: None,
            status,
            created_at: 0.0,
            run: None,
            error: None,
            versions: vec![1],
            can_continue: false,
        }
    }

    #[test]
    fn the_model_sees_what_was_said_and_no_empty_replies() {
        use MessageStatus::{Complete, Failed, Interrupted, Length, Stopped};
        let history = [
            message(Role::System, "be kind", Complete),
            message(Role::User, "one", Complete),
            message(Role::Assistant, "", Failed),
            message(Role::User, "two", Complete),
            message(Role::Assistant, "half", Stopped),
            message(Role::User, "three", Complete),
            message(Role::Assistant, " \n", Stopped),
            message(Role::User, "four", Complete),
            message(Role::Assistant, "long", Length),
            message(Role::User, "five", Complete),
            message(Role::Assistant, "cut", Interrupted),
            message(Role::User, "six", Complete),
        ];
        let Prompt::Messages(seen) = build(&history, " ", &TurnOptions::default(), &SamplingParams::default()).prompt
        else {
            panic!("a chat is rendered by the template");
        };
        let seen: Vec<_> = seen.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(
            seen,
            [
                "be kind", "one", "two", "half", "three", "four", "long", "five", "cut", "six"
            ]
        );
    }

    #[test]
    fn what_is_not_chosen_is_the_checkpoints_default() {
        let defaults = SamplingParams {
            temperature: 0.6,
            top_p: 0.9,
            top_k: 20,
            min_p: 0.01,
            repetition_penalty: 1.1,
            ..SamplingParams::default()
        };
        let chosen = sampling(&TurnOptions::default(), &defaults);
        assert_eq!(
            SamplingParams {
                seed: 0,
                ..chosen.clone()
            },
            defaults
        );
        assert!(chosen.seed < SEED_LIMIT);
        assert_ne!(
            chosen.seed,
            sampling(&TurnOptions::default(), &defaults).seed,
            "a fresh seed each time"
        );
        let options = TurnOptions {
            temperature: Some(0.0),
            top_k: Some(1),
            seed: Some(5.0),
            ..TurnOptions::default()
        };
        let expected = SamplingParams {
            temperature: 0.0,
            top_k: 1,
            seed: 5,
            ..defaults.clone()
        };
        assert_eq!(sampling(&options, &defaults), expected);
    }
}
