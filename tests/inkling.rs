//! The Inkling family: what its layouts, its head and its many convolutions must keep.

use std::collections::BTreeMap;
use std::path::Path;

use mlx_rs::{Array, Dtype, ops};
use models::SamplingParams;
use models::cache::Cache;
use models::checkpoint::Checkpoint;
use models::families::inkling::{Drafter, Family, Target};
use models::family::{Drafter as _, Family as _, LoadOptions, Target as _};
use models::generate::Limits;
use models::text::Tokenizer;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype as Stored, TensorView};
use serde_json::{Value, json};
use tests::{cache_difference, golden, greedy, ids, json, load, run, run_wired, same_bits, trained};

pub(crate) const OPTIONS: LoadOptions = LoadOptions {
    dtype: Some(Dtype::Float32),
    dry: false,
    kv: models::cache::KvFormat::Plain,
};

pub(crate) fn target(dir: &Path) -> Target {
    Family::load_target(&Checkpoint::open(dir).unwrap(), OPTIONS).unwrap()
}

pub(crate) fn tiny(layout: &str) -> Target {
    target(&golden("inkling").join(layout))
}

fn drafter(layout: &str, target: &Target) -> Drafter {
    let checkpoint = Checkpoint::open(&golden("inkling").join(layout)).unwrap();
    Family::load_drafter(&checkpoint, target, OPTIONS).unwrap()
}

pub(crate) fn prompt(which: &str) -> Vec<u32> {
    ids(&json(&golden("inkling").join("ref.json"))[format!("prompt_{which}")])
}

fn row(tokens: &[u32]) -> Array {
    Array::from_slice(tokens, &[1, tokens.len() as i32])
}

/// Runs pieces one after the other; the scores of all rows and the cache.
pub(crate) fn pieces<'t>(target: &Target, pieces: impl IntoIterator<Item = &'t [u32]>) -> (Array, Cache) {
    let mut cache = target.new_cache();
    let logits = pieces
        .into_iter()
        .map(|piece| {
            let hidden = target.forward(&row(piece), &mut cache).unwrap();
            target.logits(&hidden).unwrap()
        })
        .collect::<Vec<_>>();
    (ops::concatenate(&logits, 1).unwrap(), cache)
}

pub(crate) type Tensors = BTreeMap<String, (Stored, Vec<usize>, Vec<u8>)>;

/// A copy of a tiny checkpoint with config and tensors changed.
pub(crate) fn changed(layout: &str, change: impl FnOnce(&mut Value, &mut Tensors)) -> tempfile::TempDir {
    let (source, copy) = (golden("inkling").join(layout), tempfile::tempdir().unwrap());
    let mut config = json(&source.join("config.json"));
    let bytes = std::fs::read(source.join("model.safetensors")).unwrap();
    let mut tensors: Tensors = SafeTensors::deserialize(&bytes)
        .unwrap()
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec())))
        .collect();
    change(&mut config, &mut tensors);
    std::fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    safetensors::serialize_to_file(views, None, &copy.path().join("model.safetensors")).unwrap();
    copy
}

#[test]
fn block_config_marks_local_ids_sliding_and_dense() {
    let target = tiny("hf");
    for layout in ["hf", "mlx-mtp", "mlx-q4-mtp"] {
        // Loading takes the tensors of dense MLPs only, and every one of them.
        let drafter = drafter(layout, &target);
        let sliding: Vec<bool> = (0..drafter.blocks()).map(|j| drafter.is_sliding(j)).collect();
        assert_eq!(sliding, [true, false, true], "{layout}");
        assert_eq!(drafter.block_size(), 5, "{layout}: blocks and two more");
    }
}

#[test]
fn drafter_forward_has_one_row_of_token_scores_a_draft() {
    let target = tiny("hf");
    let (drafter, tokens) = (drafter("hf", &target), prompt("short"));
    let mut cache = target.new_cache();
    let hidden = target.forward(&row(&tokens), &mut cache).unwrap();
    for wiring in 0..drafter.wirings().len() {
        let mut state = drafter.new_state(wiring);
        drafter.absorb(&target, &mut state, &row(&tokens), &hidden).unwrap();
        let mut shapes = Vec::new();
        let drafts = drafter.draft(&target, &mut state, 6, None, &mut |logits, i| {
            assert_eq!(i, shapes.len());
            shapes.push(logits.shape().to_vec());
            Ok(ops::indexing::argmax_axis(logits, -1, None)?.as_dtype(Dtype::Uint32)?)
        });
        assert_eq!(drafts.unwrap().shape(), [1, 6]);
        assert_eq!(shapes, vec![vec![1, 1, target.vocabulary() as i32]; 6]);
    }
}

#[test]
fn every_wiring_gives_the_same_text_greedy_and_sampled() {
    let sampled = SamplingParams {
        temperature: 0.9,
        top_k: 20,
        seed: 3,
        ..greedy()
    };
    let pair = load(&golden("inkling").join("hf"), None);
    assert_eq!(pair.wirings()[0], "contract");
    assert!(pair.wirings().contains(&"sglang"));
    for (prompt, sampling, blocks) in [
        (vec![7], &greedy(), &[5][..]),
        (prompt("short"), &sampled, &[2, 4, 8]),
        (prompt("long"), &greedy(), &[3, 6]),
    ] {
        let plain = run(pair.as_ref(), &prompt, None, sampling, 24);
        for &wiring in pair.wirings() {
            for &block in blocks {
                let limits = Limits {
                    max_tokens: 24,
                    eos: Vec::new(),
                };
                let mtp = run_wired(pair.as_ref(), &prompt, Some(block), Some(wiring), sampling, limits);
                let case = format!("{wiring}, block {block}, {} tokens", prompt.len());
                assert_eq!(mtp.tokens, plain.tokens, "{case}");
                assert_eq!(cache_difference(&mtp.cache, &plain.cache), None, "{case}");
                assert_eq!(mtp.syncs, 1 + mtp.drafted.len(), "{case}: waits");
            }
        }
    }
}

/// A block that reads the sequence must have read all of it, in pieces or at once, whatever was drafted in between.
#[test]
fn blocks_with_a_history_hold_the_whole_shifted_sequence() {
    let target = tiny("hf");
    let (drafter, tokens) = (drafter("hf", &target), prompt("long"));
    let hidden = target.forward(&row(&tokens), &mut target.new_cache()).unwrap();
    let history = drafter.wirings().iter().position(|w| *w == "sglang").unwrap();
    let n = 20;
    let pairs = |from: usize, to: usize| {
        (
            row(&tokens[from + 1..=to]),
            hidden.rows(from as i32, to as i32).unwrap(),
        )
    };
    let mut whole = drafter.new_state(history);
    let (next, states) = pairs(0, n);
    drafter.absorb(&target, &mut whole, &next, &states).unwrap();
    let mut rounds = drafter.new_state(history);
    let (next, states) = pairs(0, 1);
    drafter.absorb(&target, &mut rounds, &next, &states).unwrap();
    let mut at = 1;
    for kept in [0, 2, 4, 1, 3, 0, 3] {
        let pick = &mut |logits: &Array, _| Ok(ops::indexing::argmax_axis(logits, -1, None)?.as_dtype(Dtype::Uint32)?);
        drafter.draft(&target, &mut rounds, 4, None, pick).unwrap();
        // Rows behind those that are kept are some other tokens'.
        let mut rows: Vec<u32> = tokens[at + 1..at + 2 + kept].to_vec();
        rows.resize(5, 3);
        let states = hidden.rows(at as i32, at as i32 + 5).unwrap();
        drafter.foresee(&target, &mut rounds, &states, &row(&rows)).unwrap();
        rounds = drafter.commit(rounds, kept).unwrap();
        at += kept + 1;
    }
    assert_eq!(at, n + 1);
    let (next, states) = pairs(n, n + 1);
    drafter.absorb(&target, &mut whole, &next, &states).unwrap();
    assert_eq!(cache_difference(rounds.cache(), whole.cache()), None);
    let held: Vec<i32> = whole.cache().layers.iter().map(|l| l.kv.len()).collect();
    assert_eq!(held, [21, 20, 19], "each block has one pair less");
}

#[test]
fn an_unknown_wiring_is_refused_by_name() {
    let pair = load(&golden("inkling").join("hf"), None);
    let error = models::family::wiring_place(pair.wirings(), Some("upside-down")).unwrap_err();
    assert!(error.to_string().contains("upside-down") && error.to_string().contains("sglang"));
}

#[test]
fn verify_four_accept_one_and_go_on_equals_never_having_speculated() {
    let (tokens, block, more) = (prompt("long"), [3u32, 34, 65, 96, 127], [8u32, 90, 11]);
    for layout in ["hf", "mlx-q4"] {
        let target = tiny(layout);
        let mut cache = target.new_cache();
        target.forward(&row(&tokens), &mut cache).unwrap();
        let verified = target.verify(&row(&block), &mut cache).unwrap();
        target.rewind(&mut cache, &verified, 2).unwrap(); // the bonus and one draft
        for token in more {
            target.forward(&row(&[token]), &mut cache).unwrap();
        }
        let single = [&block[..2], &more[..]].concat();
        let (_, expected) = pieces(&target, std::iter::once(tokens.as_slice()).chain(single.chunks(1)));
        assert!(cache.layers.iter().all(|layer| layer.state.len() == 4));
        assert_eq!(cache_difference(&cache, &expected), None, "{layout}");
    }
}

#[test]
fn a_prompt_in_pieces_of_any_size_equals_one_shot() {
    let tokens = prompt("long");
    for layout in ["hf", "mlx-q4"] {
        let target = tiny(layout);
        let (logits, cache) = pieces(&target, [tokens.as_slice()]);
        for size in 1..tokens.len() {
            let (other, other_cache) = pieces(&target, tokens.chunks(size));
            assert!(same_bits(&logits, &other), "{layout}: scores in pieces of {size}");
            assert_eq!(
                cache_difference(&cache, &other_cache),
                None,
                "{layout}: pieces of {size}"
            );
        }
    }
}

/// The last row sees what its window and the three rows before each convolution reach, and nothing older.
#[test]
fn a_sliding_window_ends_where_it_says() {
    // Two sliding layers of window 8: each reaches 7 keys back, keys and values 3 more, its other convolutions 3 each.
    let reach = 2 * (7 + 3 + 3 + 3);
    let copy = changed("hf", |config, tensors| {
        config["text_config"]["num_hidden_layers"] = json!(2);
        tensors.retain(|name, _| !name.contains(".layers.2."));
    });
    let (target, tokens) = (target(copy.path()), prompt("long"));
    let last = |tokens: &[u32]| {
        let (logits, _) = pieces(&target, [tokens]);
        ops::split_equal(&logits, tokens.len() as i32, 1)
            .unwrap()
            .pop()
            .unwrap()
    };
    let end = last(&tokens);
    for back in 0..tokens.len() {
        let mut other = tokens.clone();
        let place = tokens.len() - 1 - back;
        other[place] = (other[place] + 1) % 150;
        let same = same_bits(&end, &last(&other));
        assert_eq!(same, back > reach, "a change {back} back");
    }
}

#[test]
fn a_cached_prefix_carries_all_four_convolutions() {
    let (target, tokens) = (tiny("hf"), prompt("long"));
    let (prefix, rest) = tokens.split_at(40);
    let (_, cache) = pieces(&target, [prefix]);
    let go_on = |mut cache: Cache| target.logits(&target.forward(&row(rest), &mut cache).unwrap()).unwrap();
    let (whole, _) = pieces(&target, [tokens.as_slice()]);
    let expected = ops::split_at_indices(&whole, &[40], 1).unwrap().pop().unwrap();
    assert!(same_bits(&go_on(cache.clone()), &expected));
    for layer in 0..3 {
        for slot in 0..4 {
            let mut damaged = cache.clone();
            let state = &mut damaged.layers[layer].state[slot];
            *state = ops::zeros_like(&*state).unwrap();
            assert!(!same_bits(&go_on(damaged), &expected), "state {slot} of layer {layer}");
        }
    }
}

/// Published 4-bit experts against the same numbers unpacked here, by the formats' definitions.
#[test]
fn the_trained_checkpoint_says_the_same_and_accepts_its_drafts() {
    let Some(dir) = trained("inkling-tiny") else {
        eprintln!("skipped: inkling-tiny is not here (CHECKPOINTS_ROOT)");
        return;
    };
    let (pair, tokenizer) = (load(&dir, None), Tokenizer::load(&dir).unwrap());
    let chat = |text: &str| {
        let text = format!("<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n");
        tokenizer.encode(&text).unwrap()
    };
    for (question, n) in [
        ("What is the capital of France?", 64),
        ("Explain how a stack works.", 300),
    ] {
        let prompt = chat(question);
        let plain = run(pair.as_ref(), &prompt, None, &greedy(), n);
        for block in [4, 6] {
            let mtp = run(pair.as_ref(), &prompt, Some(block), &greedy(), n);
            assert_eq!(mtp.tokens, plain.tokens, "{n} tokens, block {block}");
            let share = |depth: usize| {
                let tried = mtp.drafted.iter().filter(|d| **d > depth).count();
                let right = mtp.accepted.iter().filter(|a| **a > depth).count();
                format!("{:.0} %", 100.0 * right as f64 / tried as f64)
            };
            let by_depth: Vec<String> = (0..block - 1).map(share).collect();
            let mean = mtp.accepted.iter().sum::<usize>() as f64 / mtp.accepted.len() as f64;
            eprintln!("inkling-tiny, {n} tokens, block {block}: {mean:.2} accepted a round; by depth {by_depth:?}");
            assert!(mean > 2.0, "block {block}: {mean}");
        }
    }
}
