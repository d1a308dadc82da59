//! Choosing a token from scores, on the device.
//!
//! Randomness is fixed by (seed, position): the token at position `i` of the sequence is always drawn with the same
//! noise, whether the target scores it alone, in a verified block, or the drafter does. A draft is right exactly when
//! it equals the target's own choice, so text does not depend on speculation at any temperature. The other way, drafts
//! accepted by chance, is `rejection.rs`.

mod ahead;
mod rejection;

pub use ahead::Proposal;

use mlx_rs::{Array, Dtype, ops, random};

use crate::engine::SamplingParams;
use crate::nn::{scalar, slice, zeros};
use crate::{Error, Result};

/// A validated choice of tokens.
#[derive(Debug, Clone)]
pub struct Sampler {
    params: SamplingParams,
    vocabulary: i32,
    bias: Option<Array>,
    /// `0..V`.
    places: Array,
}

/// How often each token has occurred, `[V]` f32; only kept when a penalty needs it.
pub type Counts = Option<Array>;

impl Sampler {
    /// Checks the settings against the vocabulary.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the setting.
    pub fn new(params: &SamplingParams, vocabulary: usize) -> Result<Self> {
        let p = params;
        let usage = |message: String| Err(Error::Usage { message });
        let checks: [(&str, f32, bool, &str); 6] = [
            (
                "temperature",
                p.temperature,
                (0.0..=100.0).contains(&p.temperature),
                "from 0 to 100",
            ),
            ("top_p", p.top_p, p.top_p > 0.0 && p.top_p.is_finite(), "above 0"),
            ("min_p", p.min_p, (0.0..=1.0).contains(&p.min_p), "from 0 to 1"),
            (
                "repetition_penalty",
                p.repetition_penalty,
                p.repetition_penalty > 0.0 && p.repetition_penalty <= 1e4,
                "above 0",
            ),
            (
                "presence_penalty",
                p.presence_penalty,
                p.presence_penalty.abs() <= 1e4,
                "a finite number",
            ),
            (
                "frequency_penalty",
                p.frequency_penalty,
                p.frequency_penalty.abs() <= 1e4,
                "a finite number",
            ),
        ];
        for (name, value, good, expected) in checks {
            if !good {
                return usage(format!("{name} is {value}, but must be {expected}"));
            }
        }
        let bias = if p.logit_bias.is_empty() {
            None
        } else {
            let mut values = vec![0f32; vocabulary];
            for (id, value) in &p.logit_bias {
                let Some(slot) = values.get_mut(*id as usize) else {
                    return usage(format!("logit_bias names token {id}, the vocabulary has {vocabulary}"));
                };
                if value.is_nan() || *value == f32::INFINITY {
                    return usage(format!("logit_bias of token {id} is {value}"));
                }
                *slot += value;
            }
            Some(Array::from_slice(&values, &[vocabulary as i32]))
        };
        Ok(Self {
            params: params.clone(),
            vocabulary: vocabulary as i32,
            bias,
            places: Array::from_slice(&(0..vocabulary as i32).collect::<Vec<i32>>(), &[vocabulary as i32]),
        })
    }

    /// Whether any penalty looks at what was said before.
    #[must_use]
    pub fn counts_tokens(&self) -> bool {
        let p = &self.params;
        p.repetition_penalty != 1.0 || p.presence_penalty != 0.0 || p.frequency_penalty != 0.0
    }

    /// Occurrences in a list of ids, each inside the vocabulary.
    #[must_use]
    pub fn count(&self, ids: &[u32]) -> Counts {
        self.counts_tokens().then(|| {
            let mut counts = vec![0f32; self.vocabulary as usize];
            for id in ids {
                if let Some(slot) = counts.get_mut(*id as usize) {
                    *slot += 1.0;
                }
            }
            Array::from_slice(&counts, &[self.vocabulary])
        })
    }

    /// `counts` with one more occurrence of `token` `[1, 1]`, which may not be evaluated yet.
    ///
    /// # Errors
    /// What MLX says.
    pub fn add(&self, counts: &Counts, token: &Array) -> Result<Counts> {
        let Some(counts) = counts else { return Ok(None) };
        Ok(Some(counts.add(self.is(token)?.as_dtype(Dtype::Float32)?)?))
    }

    /// Where the vocabulary is `token` `[1, 1]`: `[V]`.
    fn is(&self, token: &Array) -> Result<Array> {
        Ok(self.places.eq(token.reshape(&[1])?.as_dtype(Dtype::Int32)?)?)
    }

    /// Chooses the token at `position` from its scores `[1, 1, V]`. Returns the id and whether the scores were a
    /// distribution (1 or 0), `[1, 1]` u32 each.
    ///
    /// # Errors
    /// What MLX says.
    pub fn choose(&self, logits: &Array, position: usize, counts: &Counts) -> Result<(Array, Array)> {
        self.choose_at(logits, &Place::At(position), counts)
    }

    fn choose_at(&self, logits: &Array, place: &Place<'_>, counts: &Counts) -> Result<(Array, Array)> {
        let (scores, good) = self.scores(logits, counts)?;
        let id = if self.params.temperature == 0.0 {
            ops::indexing::argmax_axis(&scores, -1, true)?
        } else {
            let noise = random::gumbel::<f32>(&[self.vocabulary][..], &place.key(self.params.seed, TARGET)?)?;
            ops::indexing::argmax_axis(self.filtered(&scores)?.add(noise)?, -1, true)?
        };
        Ok((cell(&id)?, cell(&good)?))
    }

    /// Scores after bias and penalties, `[V]` f32, and whether they are a distribution, `[1]`.
    fn scores(&self, logits: &Array, counts: &Counts) -> Result<(Array, Array)> {
        let scores = self.penalised(&logits.reshape(&[-1])?.as_dtype(Dtype::Float32)?, counts)?;
        // Not finite exactly when there is a NaN, a +inf, or nothing but -inf.
        let good = scores.logsumexp_axis(-1, true)?.is_finite()?;
        Ok((scores, good))
    }

    /// Scores after bias and penalties, `[V]`.
    fn penalised(&self, logits: &Array, counts: &Counts) -> Result<Array> {
        let p = &self.params;
        let mut x = logits.clone();
        if let Some(bias) = &self.bias {
            x = x.add(bias)?;
        }
        let Some(counts) = counts else { return Ok(x) };
        let seen = counts.gt(scalar(0.0, Dtype::Float32)?)?;
        if p.repetition_penalty != 1.0 {
            let factor = scalar(p.repetition_penalty, Dtype::Float32)?;
            let positive = x.gt(scalar(0.0, Dtype::Float32)?)?;
            let scaled = ops::select(positive, x.divide(&factor)?, x.multiply(&factor)?)?;
            x = ops::select(&seen, scaled, x)?;
        }
        if p.presence_penalty != 0.0 {
            let seen = seen.as_dtype(Dtype::Float32)?;
            x = x.subtract(seen.multiply(scalar(p.presence_penalty, Dtype::Float32)?)?)?;
        }
        if p.frequency_penalty != 0.0 {
            x = x.subtract(counts.multiply(scalar(p.frequency_penalty, Dtype::Float32)?)?)?;
        }
        Ok(x)
    }

    /// Log-probabilities over temperature, filtered tokens at -inf, `[V]`.
    ///
    /// top-p and top-k both keep the first n in rank, so together they keep the smaller n; among equal scores the lower
    /// id ranks first, which needs no stable sort: all above the n-th value, and of those equal to it the first few.
    fn filtered(&self, scores: &Array) -> Result<Array> {
        let p = &self.params;
        let log_p = scores.subtract(scores.logsumexp_axis(-1, true)?)?;
        let top_k = p.top_k > 0 && p.top_k < self.vocabulary as usize;
        let mut keep: Option<Array> = None;
        if p.top_p < 1.0 || top_k {
            let sorted = ops::sort_axis(log_p.negative()?, -1)?.negative()?; // best first
            let mut n = Array::from_int(self.vocabulary);
            if p.top_p < 1.0 {
                let probability = sorted.exp()?;
                let above = probability.cumsum(-1, false, false)?;
                let within = above.lt(scalar(p.top_p, Dtype::Float32)?)?;
                n = within.as_dtype(Dtype::Int32)?.sum_axis(-1, false)?;
            }
            if top_k {
                n = ops::minimum(n, Array::from_int(p.top_k as i32))?;
            }
            let last = sorted.take_axis(n.subtract(Array::from_int(1))?, 0)?; // the n-th best value
            let better = log_p.gt(&last)?;
            let equal = log_p.eq(&last)?.as_dtype(Dtype::Int32)?;
            let room = n.subtract(better.as_dtype(Dtype::Int32)?.sum_axis(-1, false)?)?;
            let first = equal
                .cumsum(-1, false, true)?
                .le(room)?
                .logical_and(equal.as_dtype(Dtype::Bool)?)?;
            keep = Some(better.logical_or(first)?);
        }
        if p.min_p > 0.0 {
            let probability = log_p.exp()?;
            let least = probability
                .max_axis(-1, true)?
                .multiply(scalar(p.min_p, Dtype::Float32)?)?;
            let enough = probability.ge(least)?;
            keep = Some(match keep {
                Some(keep) => keep.logical_and(enough)?,
                None => enough,
            });
        }
        // The best at 0, so that no temperature, however small, loses it.
        let mut x = log_p.subtract(log_p.max_axis(-1, true)?)?;
        if let Some(keep) = keep {
            x = ops::select(keep, x, scalar(f32::NEG_INFINITY, Dtype::Float32)?)?;
        }
        Ok(x.divide(scalar(p.temperature, Dtype::Float32)?)?)
    }

    /// The distribution the token is drawn from, `[V]`: one-hot at temperature 0.
    ///
    /// # Errors
    /// [`Error::NonFiniteLogits`] and what MLX says.
    pub fn distribution(&self, logits: &Array, counts: &Counts) -> Result<Array> {
        let (id, good) = self.choose(logits, 0, counts)?;
        if good.item_exact::<u32>() == 0 {
            return Err(Error::NonFiniteLogits { position: 0 });
        }
        if self.params.temperature == 0.0 {
            return self
                .add(&Some(zeros(&[self.vocabulary], Dtype::Float32)?), &id)?
                .ok_or(Error::backend("no counts"));
        }
        let (scores, _) = self.scores(logits, counts)?;
        Ok(ops::softmax_axis(self.filtered(&scores)?, -1, true)?)
    }

    /// Chooses for every row of `logits` `[1, n, V]`: row `i` is the token at `first + i`, and its history is `counts`
    /// and the first `i` of `drafts` `[1, n - 1]`. Returns ids and flags, `[1, n]` each.
    ///
    /// Each row goes through the very operations of [`Sampler::choose`], so rows cannot depend on their number.
    ///
    /// # Errors
    /// What MLX says.
    pub fn choose_rows(
        &self,
        logits: &Array,
        first: usize,
        drafts: Option<&Array>,
        counts: &Counts,
    ) -> Result<(Array, Array)> {
        let rows = logits.shape()[1];
        let (mut ids, mut flags) = (Vec::new(), Vec::new());
        let mut counts = counts.clone();
        for i in 0..rows {
            let (id, good) = self.choose(&slice(logits, 1, i, i + 1)?, first + i as usize, &counts)?;
            ids.push(id);
            flags.push(good);
            if let (Some(drafts), true) = (drafts, i + 1 < rows) {
                counts = self.add(&counts, &slice(drafts, 1, i, i + 1)?)?;
            }
        }
        Ok((ops::concatenate(&ids, 1)?, ops::concatenate(&flags, 1)?))
    }
}

/// Where a token stands.
enum Place<'a> {
    At(usize),
    /// One of the positions from the first on, by an index that is not known yet, `[1]` i32.
    OneOf(std::ops::Range<usize>, &'a Array),
}

impl Place<'_> {
    fn key(&self, seed: u64, salt: u64) -> Result<Array> {
        match self {
            Place::At(position) => Ok(key(seed, *position, salt)),
            Place::OneOf(positions, index) => {
                let keys: Vec<u32> = positions.clone().flat_map(|p| words(seed, p, salt)).collect();
                let keys = Array::from_slice(&keys, &[positions.len() as i32, 2]);
                Ok(keys.take_axis(index, 0)?.reshape(&[2])?)
            }
        }
    }
}

/// A number or a truth as `[1, 1]` u32.
fn cell(a: &Array) -> Result<Array> {
    Ok(a.as_dtype(Dtype::Uint32)?.reshape(&[1, 1])?)
}

/// The noise that the target draws with.
const TARGET: u64 = 0;

/// The generator's key for a position and a use of noise there.
fn key(seed: u64, position: usize, salt: u64) -> Array {
    Array::from_slice(&words(seed, position, salt), &[2])
}

fn words(seed: u64, position: usize, salt: u64) -> [u32; 2] {
    let z = mixed(seed, position, salt);
    [(z >> 32) as u32, z as u32]
}

/// Seed, position and salt in one word (SplitMix64's finaliser).
fn mixed(seed: u64, position: usize, salt: u64) -> u64 {
    let mut z = seed
        .wrapping_mul(0xD129_0D5C_9A4F_5C35)
        .wrapping_add((position as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(salt.wrapping_mul(0xA076_1D64_78BD_642F));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
