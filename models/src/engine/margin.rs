//! How sure the target was of one token: for whoever has to explain why two texts part.

use super::loading::Model;
use super::{GenerateRequest, turn};
use crate::{Error, Result};

/// A token and its score.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Its id.
    pub token: u32,
    /// Its logit, before any filter, penalty or temperature.
    pub logit: f32,
}

/// The target's two best tokens at one place of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Margin {
    /// The best one.
    pub first: Scored,
    /// The one after it.
    pub second: Scored,
    /// The scores of all tokens, by their ids.
    scores: Vec<f32>,
}

impl Margin {
    /// How far the best is ahead.
    #[must_use]
    pub fn gap(&self) -> f32 {
        self.first.logit - self.second.logit
    }

    /// A token's score; `None` for an id that the target does not know.
    #[must_use]
    pub fn of(&self, token: u32) -> Option<Scored> {
        let logit = *self.scores.get(token as usize)?;
        Some(Scored { token, logit })
    }
}

/// Reads the request's prompt and then `before` in single steps, as plain decoding does, and looks at the scores.
pub(super) fn margin(model: &Model, request: &GenerateRequest, before: &[u32]) -> Result<Margin> {
    let prompt = turn::prompt_ids(&model.text, request)?;
    let context = model.pair.context();
    let read = prompt.len() + before.len();
    if read > context {
        return Err(Error::ContextFull { prompt: read, context });
    }
    let scores = model
        .pair
        .scores(&prompt, &model.text.eos, before)?
        .as_dtype(mlx_rs::Dtype::Float32)?
        .contiguous()?;
    scores.eval()?;
    let scores = scores
        .try_as_slice::<f32>()
        .map_err(|e| Error::backend(&e.to_string()))?;
    top_two(scores).ok_or_else(|| Error::backend("the target has fewer than two scores"))
}

/// The lower id wins a tie, as it does in decoding.
fn top_two(scores: &[f32]) -> Option<Margin> {
    let mut best: [Option<Scored>; 2] = [None, None];
    for (token, logit) in scores.iter().copied().enumerate() {
        let one = Scored {
            token: u32::try_from(token).unwrap_or(u32::MAX),
            logit,
        };
        let beats = |other: &Option<Scored>| other.as_ref().is_none_or(|o| logit > o.logit);
        if beats(&best[0]) {
            best = [Some(one), best[0].take()];
        } else if beats(&best[1]) {
            best[1] = Some(one);
        }
    }
    let [first, second] = best;
    Some(Margin {
        first: first?,
        second: second?,
        scores: scores.to_vec(),
    })
}

/// Ids as text; ids again where there is no tokenizer.
pub(super) fn spell(model: &Model, ids: &[u32]) -> String {
    match &model.text.tokenizer {
        Some(tokenizer) => {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| tokenizer.token_bytes(*id)).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        None => ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_best_are_found_wherever_they_are() {
        let margin = top_two(&[0.5, 3.0, -1.0, 2.5]).unwrap();
        assert_eq!((margin.first.token, margin.second.token, margin.gap()), (1, 3, 0.5));
        assert_eq!(
            margin.of(2).map(|one| one.logit),
            Some(-1.0),
            "any other has a score too"
        );
        assert_eq!(margin.of(4), None);
        let tie = top_two(&[2.0, 2.0, 1.0]).unwrap();
        assert_eq!((tie.first.token, tie.second.token, tie.gap()), (0, 1, 0.0));
        assert_eq!(top_two(&[1.0]), None);
    }
}
