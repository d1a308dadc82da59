//! Rounds on a made-up pair: what is queued when, and where a target fails.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlx_rs::Dtype;

use super::*;
use crate::engine::SamplingParams;
use crate::family::Pick;
use crate::generate::{Controller, Plain};
use crate::nn::slice;

const VOCABULARY: i32 = 32;
const PROMPT: [u32; 5] = [3, 1, 4, 1, 5];

/// A target whose next token follows from the last one and its position. A hidden row is those two.
struct Counting {
    /// From this position on scores are no numbers.
    broken: i32,
    /// Passes that were queued.
    passes: Cell<usize>,
}

/// A head that is right but for every fourth position.
struct Guessing {
    /// Drafts that were queued.
    drafts: Cell<usize>,
}

/// `[1, L, 2]` of ids `[1, L]` from a position on.
fn rows(ids: &Array, first: &Array) -> Result<Array> {
    let n = ids.shape()[1];
    let places = Array::arange::<_, f32>(0.0, f64::from(n), None)?.reshape(&[1, n, 1])?;
    let ids = ids.as_dtype(Dtype::Float32)?.reshape(&[1, n, 1])?;
    Ok(ops::concatenate(&[ids, places.add(first)?], 2)?)
}

/// `[1, L]` each.
fn tokens_and_places(rows: &Array) -> Result<(Array, Array)> {
    let column = |i| Ok::<_, Error>(slice(rows, 2, i, i + 1)?.squeeze_axes(&[2])?);
    Ok((column(0)?, column(1)?))
}

/// Scores `[1, L, V]` that are best at the next token, or at the one `off` `[1, L]` behind it.
fn scores(rows: &Array, off: &Array) -> Result<Array> {
    let (token, place) = tokens_and_places(rows)?;
    let next = token
        .multiply(Array::from_f32(7.0))?
        .add(place.multiply(Array::from_f32(3.0))?)?
        .add(off)?
        .remainder(Array::from_f32(VOCABULARY as f32))?
        .expand_dims(-1)?;
    let ids = Array::arange::<_, f32>(0.0, f64::from(VOCABULARY), None)?;
    Ok(ids.subtract(next)?.abs()?.negative()?)
}

impl Target for Counting {
    type Capture = ();

    fn new_cache(&self) -> Cache {
        Cache::new(0)
    }

    fn vocabulary(&self) -> usize {
        VOCABULARY as usize
    }

    fn context(&self) -> usize {
        1000
    }

    fn dtype(&self) -> Dtype {
        Dtype::Float32
    }

    fn forward(&self, tokens: &Array, cache: &mut Cache) -> Result<Hidden> {
        self.passes.set(self.passes.get() + 1);
        let hidden = rows(tokens, &Array::from_f32(cache.len as f32))?;
        cache.len += tokens.shape()[1];
        Ok(Hidden::new(hidden))
    }

    fn logits(&self, hidden: &Hidden) -> Result<Array> {
        let (_, place) = tokens_and_places(&hidden.0)?;
        let broken = place.ge(Array::from_f32(self.broken as f32))?.expand_dims(-1)?;
        let scores = scores(&hidden.0, &Array::from_f32(0.0))?;
        Ok(ops::select(broken, Array::from_f32(f32::NAN), scores)?)
    }

    fn verify(&self, block: &Array, cache: &mut Cache) -> Result<Verified<()>> {
        let snapshot = cache.snapshot();
        Ok(Verified {
            hidden: self.forward(block, cache)?,
            snapshot,
            block: block.clone(),
            capture: (),
        })
    }

    fn rewind(&self, cache: &mut Cache, verified: &Verified<()>, keep: usize) -> Result<()> {
        cache.len = verified.snapshot.len() + keep as i32;
        Ok(())
    }
}

/// The row that the next draft comes from, and those of a round under way.
#[derive(Clone)]
struct Guess {
    row: Array,
    foreseen: Option<Array>,
}

impl Guessing {
    fn guess(row: &Array) -> Result<Array> {
        let (_, place) = tokens_and_places(row)?;
        let fourth = place.remainder(Array::from_f32(4.0))?.eq(Array::from_f32(3.0))?;
        scores(row, &fourth.as_dtype(Dtype::Float32)?)
    }
}

impl Drafter<Counting> for Guessing {
    type State = Guess;
    type Mark = Guess;

    fn block_size(&self) -> usize {
        4
    }

    fn new_state(&self, _: usize) -> Guess {
        Guess {
            row: Array::from_slice(&[0f32; 2], &[1, 1, 2]),
            foreseen: None,
        }
    }

    fn absorb(&self, _: &Counting, state: &mut Guess, tokens: &Array, hidden: &Hidden) -> Result<()> {
        let n = tokens.shape()[1];
        let (_, place) = tokens_and_places(&hidden.rows(n - 1, n)?.0)?;
        let after = place.add(Array::from_f32(1.0))?.expand_dims(-1)?;
        state.row = rows(&slice(tokens, 1, n - 1, n)?, &after)?;
        Ok(())
    }

    fn draft(
        &self,
        _: &Counting,
        state: &mut Guess,
        count: usize,
        first: Option<&Array>,
        pick: &mut Pick<'_>,
    ) -> Result<Array> {
        self.drafts.set(self.drafts.get() + count);
        let (mut row, mut ids) = (state.row.clone(), Vec::new());
        for i in 0..count {
            let id = match first.filter(|_| i == 0) {
                Some(first) => first.clone(),
                None => pick(&Self::guess(&row)?, i)?,
            };
            let (_, place) = tokens_and_places(&row)?;
            row = rows(&id, &place.add(Array::from_f32(1.0))?.expand_dims(-1)?)?;
            ids.push(id);
        }
        Ok(ops::concatenate(&ids, 1)?)
    }

    fn foresee(&self, _: &Counting, state: &mut Guess, hidden: &Hidden, choices: &Array) -> Result<Array> {
        let (_, places) = tokens_and_places(&hidden.rows(0, 1)?.0)?;
        let all = rows(choices, &places.add(Array::from_f32(1.0))?.expand_dims(-1)?)?;
        state.foreseen = Some(all.clone());
        Ok(all)
    }

    fn scores(&self, _: &Counting, _: &Guess, row: &Array) -> Result<Array> {
        Self::guess(row)
    }

    fn commit(&self, state: Guess, kept: usize) -> Result<Guess> {
        let all = state.foreseen.ok_or_else(|| Error::backend("nothing was foreseen"))?;
        Ok(Guess {
            row: slice(&all, 1, kept as i32, kept as i32 + 1)?,
            foreseen: None,
        })
    }

    fn mark(&self, state: &Guess) -> Guess {
        state.clone()
    }

    fn back(&self, state: &mut Guess, mark: &Guess) {
        state.clone_from(mark);
    }

    fn fork(&self, _: &Guess, mark: &Guess) -> Result<Guess> {
        Ok(mark.clone())
    }

    fn arrays<'s>(&self, state: &'s Guess) -> Vec<&'s Array> {
        vec![&state.row]
    }
}

struct World {
    target: Counting,
    drafter: Guessing,
    sampler: Sampler,
}

impl World {
    fn new(broken: i32) -> Self {
        let params = SamplingParams {
            repetition_penalty: 1.1,
            temperature: 0.0,
            ..SamplingParams::default()
        };
        Self {
            target: Counting {
                broken,
                passes: Cell::new(0),
            },
            drafter: Guessing { drafts: Cell::new(0) },
            sampler: Sampler::new(&params, VOCABULARY as usize).unwrap(),
        }
    }

    /// A decoder after the prompt; nothing is counted before.
    fn start(&self, depth: Option<Depth>, max_tokens: usize) -> Box<dyn Decoder + '_> {
        let limits = Limits {
            max_tokens,
            eos: Vec::new(),
        };
        let mut cache = self.target.new_cache();
        let n = PROMPT.len() as i32;
        let hidden = self
            .target
            .forward(&Array::from_slice(&PROMPT, &[1, n]), &mut cache)
            .unwrap();
        let last = hidden.rows(n - 1, n).unwrap();
        self.target.passes.set(0);
        self.drafter.drafts.set(0);
        let sampler = &self.sampler;
        match depth {
            None => Box::new(Plain::new(&self.target, sampler, cache, &last, &PROMPT, limits).unwrap()),
            Some(depth) => {
                let state = self.drafter.new_state(0);
                let (target, drafter, rule) = (&self.target, &self.drafter, Acceptance::Equality);
                let mtp = Mtp::new(
                    target, drafter, sampler, cache, state, &last, &PROMPT, depth, limits, rule,
                );
                Box::new(mtp.unwrap())
            }
        }
    }

    fn queued(&self) -> (usize, usize) {
        (self.target.passes.get(), self.drafter.drafts.get())
    }
}

fn parked() -> Depth {
    Depth::Measured(Rc::new(RefCell::new(Controller::new(None, 3, 0))))
}

/// Tokens up to the end or an error, and how many drafts were right.
fn rest(decoder: &mut dyn Decoder) -> (Vec<u32>, usize, Option<String>) {
    let (mut tokens, mut right) = (Vec::new(), 0);
    loop {
        match decoder.next_round() {
            Ok(Some(round)) => {
                tokens.extend(round.tokens);
                right += round.accepted;
            }
            Ok(None) => return (tokens, right, None),
            Err(e) => return (tokens, right, Some(e.to_string())),
        }
    }
}

#[test]
fn nothing_is_queued_when_the_first_token_is_handed_out() {
    let world = World::new(i32::MAX);
    let (all, ..) = rest(world.start(None, 20).as_mut());
    for (depth, first_round) in [(Depth::Fixed(3), (1, 3)), (parked(), (1, 0))] {
        let mut decoder = world.start(Some(depth.clone()), 20);
        let round = decoder.next_round().unwrap().unwrap();
        assert_eq!((round.tokens, round.drafted), (all[..1].to_vec(), 0));
        assert_eq!(world.queued(), (0, 0), "{depth:?}");
        // Whoever stops here finds the cache as it was.
        assert_eq!(decoder.finish().unwrap().len, PROMPT.len() as i32);

        let mut decoder = world.start(Some(depth.clone()), 20);
        decoder.next_round().unwrap();
        decoder.hold(1);
        let round = decoder.next_round().unwrap().unwrap();
        assert_eq!(
            round.tokens,
            all[1..2],
            "{depth:?}: what is held then holds for the first round"
        );
        drop(decoder);

        let mut decoder = world.start(Some(depth.clone()), 20);
        decoder.next_round().unwrap();
        let round = decoder.next_round().unwrap().unwrap();
        let (passes, drafts) = world.queued();
        assert!(
            (passes, drafts) >= first_round,
            "{depth:?}: {passes} passes, {drafts} drafts"
        );
        assert_eq!(round.tokens, all[1..=round.tokens.len()]);

        // Where one token is all there is, none follows.
        let mut decoder = world.start(Some(depth), 1);
        assert_eq!(rest(decoder.as_mut()).0, all[..1]);
        assert_eq!(world.queued(), (0, 0));
    }
}

#[test]
fn what_is_said_right_after_the_first_token_is_said_the_same_and_drafts_nothing_for_it() {
    let world = World::new(i32::MAX);
    for ids in [&[9][..], &[9, 2, 30]] {
        for rows in [1, 8] {
            let said = |depth: Option<Depth>| {
                let mut decoder = world.start(depth, 24);
                decoder.hold(1);
                let first = decoder.next_round().unwrap().unwrap().tokens;
                decoder.say(ids, rows).unwrap();
                let drafts = world.queued().1;
                decoder.hold(usize::MAX);
                let (tokens, right, error) = rest(decoder.as_mut());
                let cache = decoder.finish().unwrap().len;
                (first, tokens, error, cache, drafts, right)
            };
            let plain = said(None);
            for depth in [Depth::Fixed(1), Depth::Fixed(5), parked()] {
                let is_fixed = matches!(depth, Depth::Fixed(_));
                let with = said(Some(depth));
                assert_eq!(
                    (&with.0, &with.1, &with.2, with.3),
                    (&plain.0, &plain.1, &plain.2, plain.3)
                );
                assert_eq!(with.4, 0, "drafts were made for nobody");
                assert!(!is_fixed || with.5 > 0, "the head was told of what was said");
            }
        }
    }
}

#[test]
fn tokens_before_scores_that_are_no_numbers_are_given_out() {
    for broken in 0..14 {
        let world = World::new(PROMPT.len() as i32 - 1 + broken);
        let (tokens, _, error) = rest(world.start(None, 20).as_mut());
        assert_eq!(tokens.len(), broken as usize);
        assert!(error.is_some());
        let mut right = 0;
        for depth in [1, 2, 3, 7] {
            let with = rest(world.start(Some(Depth::Fixed(depth)), 20).as_mut());
            assert_eq!(
                (&with.0, &with.2),
                (&tokens, &error),
                "depth {depth}, broken after {broken}"
            );
            right += with.1;
        }
        assert!(right > 0 || broken < 3, "no draft was right");
        let with = rest(world.start(Some(parked()), 20).as_mut());
        assert_eq!((&with.0, &with.2), (&tokens, &error), "parked, broken after {broken}");
    }
}
