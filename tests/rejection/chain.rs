//! Markov chains over a handful of tokens behind the traits of a target and a drafter.

use mlx_rs::{Array, Dtype, ops};
use models::cache::Cache;
use models::family::{Drafter, Hidden, Pick, Target, Verified, restore_and_replay};

/// Tokens that follow each token, by their scores.
pub(super) struct Chain(pub Vec<Vec<f32>>);

impl Chain {
    fn tokens(&self) -> i32 {
        self.0.len() as i32
    }

    fn table(&self) -> Array {
        let n = self.tokens();
        Array::from_slice(&self.0.concat(), &[n, n])
    }

    pub(super) fn row(&self, token: u32) -> Array {
        let row = &self.0[token as usize];
        Array::from_slice(row, &[1, 1, row.len() as i32])
    }

    /// Scores after each of `tokens`, `[1, L, V]`.
    fn after(&self, tokens: &Array) -> Array {
        self.table().take_axis(tokens, 0).unwrap()
    }
}

/// Hidden states are the tokens one-hot: a wrong row cannot go unnoticed.
impl Target for Chain {
    type Capture = ();

    fn new_cache(&self) -> Cache {
        Cache::new(0)
    }

    fn vocabulary(&self) -> usize {
        self.0.len()
    }

    fn context(&self) -> usize {
        usize::MAX
    }

    fn dtype(&self) -> Dtype {
        Dtype::Float32
    }

    fn forward(&self, tokens: &Array, cache: &mut Cache) -> models::Result<Hidden> {
        cache.len += tokens.shape()[1];
        let one_hot = ops::eye::<f32>(self.tokens(), None, None)?.take_axis(tokens, 0)?;
        Ok(Hidden::new(one_hot))
    }

    fn logits(&self, hidden: &Hidden) -> models::Result<Array> {
        Ok(self.after(&ops::indexing::argmax_axis(hidden.array(), -1, false)?))
    }

    fn verify(&self, block: &Array, cache: &mut Cache) -> models::Result<Verified<()>> {
        let snapshot = cache.snapshot();
        Ok(Verified {
            hidden: self.forward(block, cache)?,
            snapshot,
            block: block.clone(),
            capture: (),
        })
    }

    fn rewind(&self, cache: &mut Cache, verified: &Verified<()>, keep: usize) -> models::Result<()> {
        restore_and_replay(self, cache, verified, keep)
    }
}

/// The last token, `[1, 1]`, and the choices of the round that waits for its commit, `[1, K + 1]`.
#[derive(Default)]
pub(super) struct Last {
    token: Option<Array>,
    foreseen: Option<Array>,
}

impl Drafter<Chain> for Chain {
    type State = Last;
    type Mark = Option<Array>;

    fn block_size(&self) -> usize {
        2
    }

    fn new_state(&self, _wiring: usize) -> Self::State {
        Last::default()
    }

    fn absorb(&self, _: &Chain, state: &mut Self::State, tokens: &Array, hidden: &Hidden) -> models::Result<()> {
        assert_eq!(tokens.shape()[1], hidden.len());
        state.token = Some(
            tokens
                .reshape(&[-1])?
                .take_axis(Array::from_int(-1), 0)?
                .reshape(&[1, 1])?,
        );
        Ok(())
    }

    fn draft(
        &self,
        _: &Chain,
        state: &mut Self::State,
        count: usize,
        first: Option<&Array>,
        pick: &mut Pick<'_>,
    ) -> models::Result<Array> {
        let mut last = state.token.clone().expect("absorbed");
        let mut drafts = Vec::new();
        for i in 0..count {
            last = match first {
                Some(first) if i == 0 => first.clone(),
                _ => pick(&self.after(&last), i)?,
            };
            drafts.push(last.clone());
        }
        Ok(ops::concatenate(&drafts, 1)?)
    }

    /// One-hot choices: a wrong row cannot go unnoticed.
    fn foresee(&self, _: &Chain, state: &mut Self::State, hidden: &Hidden, choices: &Array) -> models::Result<Array> {
        assert_eq!(choices.shape()[1], hidden.len());
        state.foreseen = Some(choices.clone());
        Ok(ops::eye::<f32>(self.tokens(), None, None)?.take_axis(choices, 0)?)
    }

    fn scores(&self, _: &Chain, _: &Self::State, row: &Array) -> models::Result<Array> {
        Ok(self.after(&ops::indexing::argmax_axis(row, -1, false)?))
    }

    fn commit(&self, state: Self::State, kept: usize) -> models::Result<Self::State> {
        let choices = state.foreseen.expect("foreseen");
        let token = choices.take_axis(Array::from_slice(&[kept as i32], &[1]), 1)?;
        Ok(Last {
            token: Some(token),
            foreseen: None,
        })
    }

    fn mark(&self, state: &Self::State) -> Self::Mark {
        state.token.clone()
    }

    fn back(&self, state: &mut Self::State, mark: &Self::Mark) {
        state.token.clone_from(mark);
        state.foreseen = None;
    }

    fn fork(&self, _: &Self::State, mark: &Self::Mark) -> models::Result<Self::State> {
        Ok(Last {
            token: mark.clone(),
            foreseen: None,
        })
    }

    fn arrays<'s>(&self, state: &'s Self::State) -> Vec<&'s Array> {
        state.token.iter().collect()
    }
}

/// A target and a drafter that agree in part: scores from -2 to 2, so that penalties meet both signs.
pub(super) fn pair() -> (Chain, Chain) {
    let chain = |phase: f32| {
        let score = |i: u8, j: u8| 2.0 * (3.7 * f32::from(i) + 2.3 * f32::from(j) + phase).sin();
        Chain((0..5).map(|i| (0..5).map(|j| score(i, j)).collect()).collect())
    };
    (chain(1.0), chain(2.0))
}

/// A pair in which each token taken for the other's costs much.
pub(super) fn opposites() -> (Chain, Chain) {
    let chain = |shares: [f32; 4]| {
        let row = |i: usize| (0..4).map(|j| shares[(i + j) % 4].ln()).collect();
        Chain((0..4).map(row).collect())
    };
    (chain([0.4, 0.3, 0.2, 0.1]), chain([0.05, 0.15, 0.3, 0.5]))
}
