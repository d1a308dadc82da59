//! How long a text is for the model that is loaded.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use models::{GenerateRequest, GenerationEvent, Prompt};

use super::{Turns, count};
use crate::error::Error;

impl Turns {
    /// The tokens of a text. A generation is begun and ended before it reads any: nothing else knows the tokenizer.
    ///
    /// # Errors
    /// [`Error::TurnRunning`] while a reply is being written, and the engine's without a model.
    pub async fn count_tokens(&self, text: &str) -> Result<u32, Error> {
        if text.is_empty() {
            return Ok(0);
        }
        // A message that is sent meanwhile would find the engine busy.
        let taken = self.slot.take()?;
        let tokens = Arc::new(AtomicUsize::new(0));
        let seen = tokens.clone();
        let sink = move |event| {
            if let GenerationEvent::Prefill { total, .. } = event {
                seen.store(total, Ordering::Relaxed);
            }
            ControlFlow::Break(())
        };
        let request = GenerateRequest {
            fresh: true,
            max_tokens: Some(1),
            ..GenerateRequest::new(Prompt::Raw(text.to_owned()))
        };
        let engine = self.engine.clone();
        let counted = tokio::task::spawn_blocking(move || engine.generate(request, Box::new(sink))).await;
        drop(taken);
        match counted? {
            Ok(_) => Ok(count(tokens.load(Ordering::Relaxed))),
            Err(models::Error::ContextFull { prompt, .. }) => Ok(count(prompt)),
            Err(error) => Err(error.into()),
        }
    }
}
