//! How long a text is for the model that is loaded.

use super::{Turns, count};
use crate::ipc::ModelStatus;

impl Turns {
    /// The tokens of a text; `None` where nobody could tell without being waited for: without a model, while one is
    /// loaded, and while a reply is written.
    pub async fn count_tokens(&self, text: &str) -> Option<u32> {
        if self.is_running() || !matches!(self.library.status(), ModelStatus::Ready { .. }) {
            return None;
        }
        let (engine, text) = (self.engine.clone(), text.to_owned());
        let counted = tokio::task::spawn_blocking(move || engine.count(text)).await;
        Some(count(counted.ok()?.ok()?))
    }
}
