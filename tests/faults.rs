//! A device that fails at any step of a round: an error, and the next message as if nothing had been. And a thousand
//! rounds that leave nothing behind.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::process::Command;
use std::rc::Rc;

use mlx_rs::Array;
use models::cache::{Cache, Snapshot};
use models::checkpoint::{Checkpoint, Standalone};
use models::families::{inkling, qwen3_5};
use models::family::{Drafter, Family, HeadLocation, Hidden, LoadOptions, Pick, Target, Verified};
use models::generate::{Controller, Depth, Limits};
use models::registry::{Entry, Pair, StartRequest};
use models::{Acceptance, Error, Result, SamplingParams};
use tests::{golden, ids, json, load};

thread_local! {
    /// Steps until the one that fails; `None` lets all of them pass.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// One step of a round.
fn step(what: &str) -> Result<()> {
    let left = LEFT.get();
    LEFT.set(left.and_then(|n| n.checked_sub(1)));
    if left == Some(0) {
        return Err(Error::Backend {
            message: format!("injected: {what}"),
        });
    }
    Ok(())
}

/// A family whose every step may fail.
struct Fragile<F>(F);

struct FragileTarget<T>(T);
struct FragileDrafter<D>(D);

impl<T: Target> Target for FragileTarget<T> {
    type Capture = T::Capture;

    fn new_cache(&self) -> Cache {
        self.0.new_cache()
    }

    fn vocabulary(&self) -> usize {
        self.0.vocabulary()
    }

    fn context(&self) -> usize {
        self.0.context()
    }

    fn dtype(&self) -> mlx_rs::Dtype {
        self.0.dtype()
    }

    fn forward(&self, tokens: &Array, cache: &mut Cache) -> Result<Hidden> {
        step("forward")?;
        self.0.forward(tokens, cache)
    }

    fn logits(&self, hidden: &Hidden) -> Result<Array> {
        step("logits")?;
        self.0.logits(hidden)
    }

    fn verify(&self, block: &Array, cache: &mut Cache) -> Result<Verified<T::Capture>> {
        // Half done: the cache has grown.
        let verified = self.0.verify(block, cache)?;
        step("verify")?;
        Ok(verified)
    }

    fn rewind(&self, cache: &mut Cache, verified: &Verified<T::Capture>, keep: usize) -> Result<()> {
        step("rewind")?;
        self.0.rewind(cache, verified, keep)
    }
}

impl<T: Target, D: Drafter<T>> Drafter<FragileTarget<T>> for FragileDrafter<D> {
    type State = D::State;
    type Mark = D::Mark;

    fn block_size(&self) -> usize {
        self.0.block_size()
    }

    fn wirings(&self) -> &'static [&'static str] {
        self.0.wirings()
    }

    fn new_state(&self, wiring: usize) -> D::State {
        self.0.new_state(wiring)
    }

    fn absorb(&self, target: &FragileTarget<T>, state: &mut D::State, tokens: &Array, hidden: &Hidden) -> Result<()> {
        self.0.absorb(&target.0, state, tokens, hidden)?;
        step("absorb")
    }

    fn draft(
        &self,
        target: &FragileTarget<T>,
        state: &mut D::State,
        count: usize,
        first: Option<&Array>,
        pick: &mut Pick<'_>,
    ) -> Result<Array> {
        let drafts = self.0.draft(&target.0, state, count, first, pick)?;
        step("draft")?;
        Ok(drafts)
    }

    fn foresee(
        &self,
        target: &FragileTarget<T>,
        state: &mut D::State,
        hidden: &Hidden,
        choices: &Array,
    ) -> Result<Array> {
        let rows = self.0.foresee(&target.0, state, hidden, choices)?;
        step("foresee")?;
        Ok(rows)
    }

    fn scores(&self, target: &FragileTarget<T>, state: &D::State, row: &Array) -> Result<Array> {
        step("scores")?;
        self.0.scores(&target.0, state, row)
    }

    fn commit(&self, state: D::State, kept: usize) -> Result<D::State> {
        step("commit")?;
        self.0.commit(state, kept)
    }

    fn mark(&self, state: &D::State) -> D::Mark {
        self.0.mark(state)
    }

    fn back(&self, state: &mut D::State, mark: &D::Mark) {
        self.0.back(state, mark);
    }

    fn fork(&self, state: &D::State, mark: &D::Mark) -> Result<D::State> {
        step("fork")?;
        self.0.fork(state, mark)
    }

    fn arrays<'s>(&self, state: &'s D::State) -> Vec<&'s Array> {
        self.0.arrays(state)
    }
}

impl<F: Family> Family for Fragile<F> {
    const NAME: &'static str = F::NAME;
    type Target = FragileTarget<F::Target>;
    type Drafter = FragileDrafter<F::Drafter>;

    fn knows(model_type: &str) -> bool {
        F::knows(model_type)
    }

    fn head(checkpoint: &Checkpoint) -> Option<HeadLocation> {
        F::head(checkpoint)
    }

    fn layers(checkpoint: &Checkpoint) -> Result<usize> {
        F::layers(checkpoint)
    }

    fn check_head(checkpoint: &Checkpoint) -> Result<()> {
        F::check_head(checkpoint)
    }

    fn standalone(checkpoint: &Checkpoint) -> Result<Standalone> {
        F::standalone(checkpoint)
    }

    fn head_advice(checkpoint: &Checkpoint) -> Option<String> {
        F::head_advice(checkpoint)
    }

    fn pair_doubt(target: &Checkpoint, head: &Checkpoint) -> Option<String> {
        F::pair_doubt(target, head)
    }

    fn load_target(checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self::Target> {
        Ok(FragileTarget(F::load_target(checkpoint, options)?))
    }

    fn load_drafter(checkpoint: &Checkpoint, target: &Self::Target, options: LoadOptions) -> Result<Self::Drafter> {
        Ok(FragileDrafter(F::load_drafter(checkpoint, &target.0, options)?))
    }
}

const TURN_END: &[u32] = &[7];
const TOKENS: usize = 10;

/// One message: its tokens, or what went wrong.
fn say(pair: &dyn Pair, prompt: &[u32], depth: Option<Depth>) -> Result<Vec<u32>> {
    let sampler = pair.sampler(&SamplingParams {
        temperature: 0.8,
        repetition_penalty: 1.1,
        seed: 2,
        ..SamplingParams::default()
    })?;
    let mut progress = |_| ControlFlow::Continue(());
    let limits = Limits {
        max_tokens: TOKENS,
        eos: Vec::new(),
    };
    let request = StartRequest {
        depth,
        reuse: true,
        turn_ends: TURN_END,
        accept: Acceptance::Equality,
        ..StartRequest::new(prompt, limits, &mut progress)
    };
    let mut decoder = pair.start(&sampler, request)?.expect("not stopped");
    let mut tokens = Vec::new();
    while let Some(round) = decoder.next_round()? {
        tokens.extend(round.tokens);
    }
    decoder.finish()?;
    Ok(tokens)
}

fn failing_everywhere<F: Family>(family: &str) {
    let dir = golden(family).join("hf");
    let checkpoint = Checkpoint::open(&dir).unwrap();
    let options = LoadOptions {
        dtype: Some(mlx_rs::Dtype::Float32),
        ..LoadOptions::default()
    };
    let pair = (Entry::of::<Fragile<F>>().load)(&checkpoint, Some(&checkpoint), options).unwrap();
    pair.keep(64 << 20);
    // A conversation whose first turn is kept, so that what fails has something to spoil.
    let turn: Vec<u32> = (0..70).map(|i| 20 + i * 5 % 80).chain([7]).collect();
    let next: Vec<u32> = turn.iter().copied().chain([31, 32, 33]).collect();
    let plain = say(pair.as_ref(), &next, None).unwrap();

    let parked = || Some(Depth::Measured(Rc::new(RefCell::new(Controller::new(None, 3, 0)))));
    let depths: [(&str, &dyn Fn() -> Option<Depth>); 3] = [
        ("plain", &|| None),
        ("drafting", &|| Some(Depth::block(4))),
        ("automatic", &parked),
    ];
    for (name, depth) in depths {
        let mut failed_at = Vec::new();
        for n in 0.. {
            LEFT.set(Some(n));
            let outcome = say(pair.as_ref(), &next, depth());
            let untouched = LEFT.replace(None).is_some();
            match outcome {
                Err(Error::Backend { message }) => {
                    let what = message.strip_prefix("injected: ").expect("no other failure");
                    failed_at.push(what.to_owned());
                }
                Err(other) => panic!("{family} {name}, step {n}: {other}"),
                Ok(tokens) => {
                    assert_eq!(tokens, plain);
                    assert!(untouched, "{family} {name}: step {n} failed and nobody said so");
                    break;
                }
            }
            let again = say(pair.as_ref(), &next, depth()).unwrap();
            assert_eq!(
                again, plain,
                "{family} {name}, after a failure at step {n} ({failed_at:?})"
            );
        }
        let kinds: &[&str] = match name {
            "plain" => &["forward", "logits"],
            _ => &["forward", "logits", "absorb", "draft", "verify", "rewind", "commit"],
        };
        for kind in kinds {
            assert!(
                failed_at.iter().any(|at| at == kind),
                "{family} {name}: {kind} never failed"
            );
        }
    }
}

#[test]
fn after_a_failure_at_any_step_the_next_message_is_as_if_nothing_had_been() {
    failing_everywhere::<qwen3_5::Family>("qwen3_5");
    failing_everywhere::<inkling::Family>("inkling");
}

/// A snapshot is lengths and handles: what it holds is no more than the states.
#[test]
fn a_snapshot_copies_no_slab() {
    let pair = load(&golden("qwen3_5").join("hf"), None);
    let prompt: Vec<u32> = (0..300).map(|i| i % 90).collect();
    let run = tests::run(pair.as_ref(), &prompt, Some(3), &SamplingParams::default(), 8);
    let snapshot: Snapshot = run.cache.snapshot();
    let bytes = |arrays: &mut dyn Iterator<Item = &Array>| arrays.map(|a| a.nbytes()).sum::<usize>();
    let slabs = bytes(&mut run.cache.layers.iter().flat_map(|l| l.kv.arrays()));
    let states = bytes(&mut run.cache.layers.iter().flat_map(|l| &l.state));
    assert!(slabs > 0 && states > 0);
    assert_eq!(bytes(&mut snapshot.arrays()), states);
}

const IN_CHILD: &str = "SLIPSTREAM_TEST_MEMORY";

/// MLX counts memory by process, and other tests allocate at the same time.
#[test]
fn memory_does_not_grow_with_rounds() {
    if std::env::var_os(IN_CHILD).is_some() {
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "faults::a_thousand_rounds_in_a_process_of_their_own",
            "--test-threads",
            "1",
        ])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && shown.contains("1 passed"),
        "{shown}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_thousand_rounds_in_a_process_of_their_own() {
    if std::env::var_os(IN_CHILD).is_none() {
        return;
    }
    let automatic = || Depth::Measured(Rc::new(RefCell::new(Controller::new(None, 4, 2))));
    for (family, depths) in [
        ("qwen3_5", vec![Depth::block(3), automatic()]),
        ("inkling", vec![Depth::block(3)]),
    ] {
        let dir = golden(family);
        let pair = load(&dir.join("hf"), None);
        let prompt = ids(&json(&dir.join("ref.json"))["prompt_short"]);
        let sampler = pair.sampler(&SamplingParams::default()).unwrap();
        for depth in depths {
            let mut progress = |_| ControlFlow::Continue(());
            let limits = Limits {
                max_tokens: 4000,
                eos: Vec::new(),
            };
            let request = StartRequest {
                depth: Some(depth.clone()),
                ..StartRequest::new(&prompt, limits, &mut progress)
            };
            let mut decoder = pair.start(&sampler, request).unwrap().unwrap();
            let mut held = Vec::new();
            let mut tokens = 0;
            for round in 0..1000 {
                let Some(got) = decoder.next_round().unwrap() else {
                    break;
                };
                tokens += got.tokens.len();
                if round % 100 == 99 {
                    held.push((tokens, mlx_rs::memory::active_memory().unwrap()));
                }
            }
            drop(decoder);
            assert_eq!(held.len(), 10, "{family}: the text ended after {tokens} tokens");
            let (first, last) = (held[1], held[9]);
            // Keys and values of so many tokens, rounded up to whole slabs, in every layer and in the head.
            let per_token = per_token(pair.as_ref(), &prompt);
            let slabs = (last.0 - first.0 + 2 * 256) * per_token;
            assert!(
                last.1 <= first.1 + slabs + (64 << 10),
                "{family} {depth:?}: {held:?}, {per_token} bytes a token"
            );
        }
    }
}

/// Bytes of keys and values of one token, the head's as those of as many layers more.
fn per_token(pair: &dyn Pair, prompt: &[u32]) -> usize {
    let run = tests::run(pair, prompt, None, &SamplingParams::default(), 2);
    let rows = |a: &Array| a.nbytes() / a.shape()[2] as usize;
    2 * run
        .cache
        .layers
        .iter()
        .flat_map(|l| l.kv.arrays())
        .map(rows)
        .sum::<usize>()
}
