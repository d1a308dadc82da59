//! What a model family is: a typed pair of target and drafter, and a registry row that forgets the types.

use mlx_rs::{Array, Dtype};

use crate::cache::{Cache, KvFormat, Snapshot};
use crate::checkpoint::{Checkpoint, Standalone};
use crate::{Error, Result};

/// Hidden states `[1, L, H]` as one family's drafter and head want them. Only the family knows whether the final norm
/// is in them.
#[derive(Debug, Clone)]
pub struct Hidden(pub(crate) Array);

impl Hidden {
    /// Hidden states `[1, L, H]`.
    #[must_use]
    pub fn new(array: Array) -> Self {
        Self(array)
    }

    /// Rows `from..to`.
    ///
    /// # Errors
    /// Rows that are not there.
    pub fn rows(&self, from: i32, to: i32) -> Result<Self> {
        Ok(Self(crate::nn::slice(&self.0, 1, from, to)?))
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> i32 {
        self.0.shape()[1]
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array itself, to be evaluated or compared.
    #[must_use]
    pub fn array(&self) -> &Array {
        &self.0
    }
}

/// What a verify pass leaves behind, so that [`Target::rewind`] can undo part of it.
#[derive(Debug)]
pub struct Verified<C> {
    /// Hidden states of the block, one row a token.
    pub hidden: Hidden,
    /// The cache before the block.
    pub snapshot: Snapshot,
    /// The block's tokens, `[1, L]`.
    pub block: Array,
    /// What the family kept for a cheap rewind.
    pub capture: C,
}

/// A decoder-only model whose cache can go back.
///
/// `forward` of `L` tokens leaves the same cache, bit for bit, as `L` calls with one token each, for `L` up to
/// [`crate::nn::STEP_MODE_ROWS`]: plain decoding and verification are one function.
pub trait Target {
    /// What `verify` keeps for `rewind`.
    type Capture;

    /// An empty cache.
    fn new_cache(&self) -> Cache;

    /// Token ids are below this.
    fn vocabulary(&self) -> usize;

    /// Most tokens a sequence can hold.
    fn context(&self) -> usize;

    /// Type of the activations.
    fn dtype(&self) -> Dtype;

    /// Runs `tokens` `[1, L]` after what `cache` holds.
    ///
    /// # Errors
    /// What MLX says; the cache is then unusable.
    fn forward(&self, tokens: &Array, cache: &mut Cache) -> Result<Hidden>;

    /// Scores `[1, L, V]` of the token after each row.
    ///
    /// # Errors
    /// What MLX says.
    fn logits(&self, hidden: &Hidden) -> Result<Array>;

    /// As `forward`, and keeps what `rewind` needs.
    ///
    /// # Errors
    /// As `forward`.
    fn verify(&self, block: &Array, cache: &mut Cache) -> Result<Verified<Self::Capture>>;

    /// Leaves `cache` as if only the first `keep` tokens of the block had been run. Costs nothing when all are kept.
    ///
    /// # Errors
    /// As `forward`.
    fn rewind(&self, cache: &mut Cache, verified: &Verified<Self::Capture>, keep: usize) -> Result<()>;
}

/// Goes back the way that is right for every family: restore the snapshot, run the kept tokens again.
///
/// # Errors
/// As [`Target::forward`].
pub fn restore_and_replay<T: Target>(
    target: &T,
    cache: &mut Cache,
    verified: &Verified<T::Capture>,
    keep: usize,
) -> Result<()> {
    cache.restore(&verified.snapshot);
    if keep > 0 {
        target.forward(&crate::nn::slice(&verified.block, 1, 0, keep as i32)?, cache)?;
    }
    Ok(())
}

/// Chooses a draft from its scores `[1, 1, V]`; `index` is its place in the round, from 0. Returns the id as `[1, 1]`.
pub type Pick<'a> = dyn FnMut(&Array, usize) -> Result<Array> + 'a;

/// Name of the wiring that reference figures hold for, the default of every family.
pub const CONTRACT_WIRING: &str = "contract";

/// Proposes tokens for one kind of target. It holds weights only; `State` is the sequence's.
///
/// Some heads were published with contradictory accounts of how they are fed (which hidden state, which embedding, which
/// history). Such a family offers several wirings of the same weights. A wiring changes how often drafts are accepted
/// and never the text. It belongs to a sequence's state, so that states with different wirings can be compared side by
/// side on one loaded drafter.
pub trait Drafter<T: Target> {
    /// What the drafter remembers of a sequence.
    type State;
    /// A point between rounds that a state can go back to: lengths and handles, no copies.
    type Mark: Clone;

    /// Default tokens a round, bonus included.
    fn block_size(&self) -> usize;

    /// Names of the ways this head can be wired, the default first.
    fn wirings(&self) -> &'static [&'static str] {
        &[CONTRACT_WIRING]
    }

    /// The state before the first token, for the wiring at this place in [`Drafter::wirings`].
    fn new_state(&self, wiring: usize) -> Self::State;

    /// Takes in verified pairs: `tokens` `[1, n]` are those that follow the positions of `hidden` (n rows). The last
    /// pair is what the next draft starts from.
    ///
    /// # Errors
    /// What MLX says; the state is then unusable.
    fn absorb(&self, target: &T, state: &mut Self::State, tokens: &Array, hidden: &Hidden) -> Result<()>;

    /// Proposes `count >= 1` tokens, lazily: `[1, count]`. The first may have been picked already, `[1, 1]`.
    ///
    /// # Errors
    /// As `absorb`.
    fn draft(
        &self,
        target: &T,
        state: &mut Self::State,
        count: usize,
        first: Option<&Array>,
        pick: &mut Pick<'_>,
    ) -> Result<Array>;

    /// Takes in a round whose outcome is not known yet, for every outcome that it may have. `hidden` are the verified
    /// rows of `[old bonus, drafts..]`, `choices` `[1, K + 1]` the token that the target has after each. Returns
    /// `[1, K + 1, H]`: what the next round's first draft comes from ([`Drafter::scores`]) if that many drafts are kept.
    ///
    /// # Errors
    /// As `absorb`.
    fn foresee(&self, target: &T, state: &mut Self::State, hidden: &Hidden, choices: &Array) -> Result<Array>;

    /// Scores `[1, 1, V]` of the first draft that comes from one row of [`Drafter::foresee`], `[1, 1, H]`.
    ///
    /// # Errors
    /// What MLX says.
    fn scores(&self, target: &T, state: &Self::State, row: &Array) -> Result<Array>;

    /// Ends the round of the last [`Drafter::foresee`]: its first `kept` drafts were right, and the target's choice came
    /// after them. Takes the state by value, so that a round cannot go on without its commit.
    ///
    /// # Errors
    /// A round that was not foreseen, and what MLX says.
    fn commit(&self, state: Self::State, kept: usize) -> Result<Self::State>;

    /// Where a state stands now. Not between a draft and its commit.
    fn mark(&self, state: &Self::State) -> Self::Mark;

    /// Goes back to a mark of this state's own past.
    fn back(&self, state: &mut Self::State, mark: &Self::Mark);

    /// A state as of a mark that shares nothing that is written to.
    ///
    /// # Errors
    /// What MLX says.
    fn fork(&self, state: &Self::State, mark: &Self::Mark) -> Result<Self::State>;

    /// The state's arrays, to be evaluated.
    fn arrays<'s>(&self, state: &'s Self::State) -> Vec<&'s Array>;
}

/// How a part is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions {
    /// Type of the activations; `None` takes the checkpoint's own.
    pub dtype: Option<Dtype>,
    /// Checks names and shapes, reads no data.
    pub dry: bool,
    /// How the target's keys and values are held; the head's own are few and held as they are.
    pub kv: KvFormat,
}

/// Which part of a checkpoint folder holds its MTP head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadPlace {
    /// The files the target uses.
    Own,
    /// A file beside them that the index does not know.
    Stray,
    /// The `mtp` folder inside the target's.
    Subfolder,
    /// The folder holds a head alone.
    Standalone,
}

/// Where a checkpoint holds an MTP head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadLocation {
    /// Number of its tensors.
    pub tensors: usize,
    /// Files that hold them.
    pub files: Vec<String>,
    /// Which part of the folder that is.
    pub place: HeadPlace,
    /// Files with a head that is not used, because the one here counts before it.
    pub passed_over: Vec<String>,
}

impl HeadLocation {
    /// Whether there is no target beside it.
    #[must_use]
    pub fn is_standalone(&self) -> bool {
        self.place == HeadPlace::Standalone
    }
}

/// A target type and the drafter type that goes with it.
pub trait Family: 'static {
    /// Name in messages and in the registry.
    const NAME: &'static str;
    /// The verified model.
    type Target: Target;
    /// The proposing head.
    type Drafter: Drafter<Self::Target>;

    /// Whether a checkpoint's `model_type` belongs to this family, as target or as head.
    fn knows(model_type: &str) -> bool;

    /// Where the MTP head is, by the tensors that are there, never by a config flag.
    fn head(checkpoint: &Checkpoint) -> Option<HeadLocation>;

    /// What a checkpoint of this family holds that is not used, in words for the person who loads it.
    fn notes(_checkpoint: &Checkpoint) -> Vec<String> {
        Vec::new()
    }

    /// Number of decoder layers, for display.
    ///
    /// # Errors
    /// A config that no model can have.
    fn layers(checkpoint: &Checkpoint) -> Result<usize>;

    /// Loads the target.
    ///
    /// # Errors
    /// Whatever is wrong with the checkpoint.
    fn load_target(checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self::Target>;

    /// Checks a head on its own: names, shapes and config, without reading data.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    fn check_head(checkpoint: &Checkpoint) -> Result<()>;

    /// The head as a drafter folder of its own would hold it.
    ///
    /// # Errors
    /// [`Error::HeadMissing`], or a config that no model can have.
    fn standalone(checkpoint: &Checkpoint) -> Result<Standalone>;

    /// What to fetch for a target whose files hold no head, in words; `None` where nothing is known.
    fn head_advice(checkpoint: &Checkpoint) -> Option<String>;

    /// Why a head may be another model's although every size agrees, in words; `None` where nothing speaks against it.
    fn pair_doubt(target: &Checkpoint, head: &Checkpoint) -> Option<String>;

    /// Loads the head and checks it against the target.
    ///
    /// # Errors
    /// Whatever is wrong with the checkpoint, or [`Error::PairMismatch`].
    fn load_drafter(checkpoint: &Checkpoint, target: &Self::Target, options: LoadOptions) -> Result<Self::Drafter>;
}

/// The place of a wiring in the list of those there are; the first for `None`.
///
/// # Errors
/// A name that is not in the list.
pub fn wiring_place(wirings: &[&str], name: Option<&str>) -> Result<usize> {
    let Some(name) = name else { return Ok(0) };
    wirings.iter().position(|w| *w == name).ok_or_else(|| Error::Usage {
        message: format!(
            "there is no draft wiring `{name}` for this drafter; it has {}",
            wirings.join(", ")
        ),
    })
}

/// Checks that one size is the same on both sides of a pair.
pub(crate) fn same(field: &str, target: i32, drafter: i32) -> Result<()> {
    if target == drafter {
        return Ok(());
    }
    Err(Error::PairMismatch {
        field: field.to_owned(),
        target: target.to_string(),
        drafter: drafter.to_string(),
    })
}
