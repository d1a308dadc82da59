//! The benchmark's prompts. They are part of the program, so that a report names what was run by id alone.

use models::{Message, Prompt, Role};
use serde::Deserialize;

use crate::ipc::PromptKind;

/// One prompt of the set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BenchPrompt {
    /// Its name in reports; a text that changes gets another one.
    pub id: String,
    /// What it stands for.
    pub kind: PromptKind,
    /// The person's message.
    pub text: String,
}

impl BenchPrompt {
    /// As the engine takes it: a conversation, or bare text where the checkpoint has no chat template.
    #[must_use]
    pub fn prompt(&self, can_chat: bool) -> Prompt {
        if !can_chat {
            return Prompt::Raw(self.text.clone());
        }
        Prompt::Messages(vec![Message {
            role: Role::User,
            content: self.text.clone(),
            reasoning: None,
        }])
    }
}

#[derive(Deserialize)]
struct Set {
    prompts: Vec<BenchPrompt>,
}

/// The prompts of these kinds, all of them for none.
#[must_use]
pub fn prompts(kinds: &[PromptKind]) -> Vec<BenchPrompt> {
    let set = serde_json::from_str(include_str!("../../../assets/bench/prompts.json"));
    // A test reads the file: it cannot fail here.
    let all = set.map_or_else(|_| Vec::new(), |set: Set| set.prompts);
    all.into_iter()
        .filter(|prompt| kinds.is_empty() || kinds.contains(&prompt.kind))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_prompt_and_ids_are_unique() {
        let all = prompts(&[]);
        let kinds = [
            PromptKind::Code,
            PromptKind::Facts,
            PromptKind::Prose,
            PromptKind::List,
            PromptKind::Rewrite,
            PromptKind::Long,
            PromptKind::Predictable,
            PromptKind::Unpredictable,
        ];
        let of_kinds: usize = kinds.iter().map(|kind| prompts(&[*kind]).len()).sum();
        assert!(kinds.iter().all(|kind| !prompts(&[*kind]).is_empty()));
        assert_eq!(of_kinds, all.len());
        let ids: std::collections::BTreeSet<_> = all.iter().map(|prompt| &prompt.id).collect();
        assert_eq!(ids.len(), all.len());
    }
}
