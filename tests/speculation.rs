//! Speculation changes nothing but speed: tokens and caches, bit for bit, with it on and off.

use mlx_rs::{Array, Dtype};
use models::SamplingParams;
use models::cache::Cache;
use models::checkpoint::Checkpoint;
use models::families::{FAMILIES, inkling, qwen3_5};
use models::family::{Family, LoadOptions, Target, restore_and_replay};
use models::generate::Limits;
use models::registry::Pair;
use tests::{builtin, cache_difference, golden, greedy, ids, json, load, run, run_to, same_bits};

fn sampled(temperature: f32, seed: u64) -> SamplingParams {
    SamplingParams {
        temperature,
        top_p: 0.9,
        top_k: 20,
        seed,
        ..SamplingParams::default()
    }
}

/// A family's tiny pair, and its reference's prompts.
struct Tiny {
    name: String,
    pair: Box<dyn Pair>,
    short: Vec<u32>,
    long: Vec<u32>,
}

/// Every family, unpacked with its own head and packed with a separate one. (`mlx` holds the numbers of `hf`; the parity
/// tests run it.)
fn pairs() -> Vec<Tiny> {
    let layouts = [("hf", None), ("mlx-q4", Some("mlx-q4-mtp"))];
    let mut pairs = Vec::new();
    for family in FAMILIES {
        let dir = golden(family.name);
        let reference = json(&dir.join("ref.json"));
        for (layout, drafter) in layouts {
            pairs.push(Tiny {
                name: format!("{} {layout}", family.name),
                pair: load(&dir.join(layout), drafter.map(|d| dir.join(d)).as_deref()),
                short: ids(&reference["prompt_short"]),
                long: ids(&reference["prompt_long"]),
            });
        }
    }
    pairs
}

/// Every family, unpacked.
fn unpacked() -> Vec<(&'static str, Box<dyn Pair>)> {
    FAMILIES
        .iter()
        .map(|family| (family.name, load(&golden(family.name).join("hf"), None)))
        .collect()
}

#[test]
fn tokens_and_caches_are_equal_for_every_block_size_temperature_and_seed() {
    for Tiny {
        name,
        pair,
        short: prompt,
        ..
    } in pairs()
    {
        let mut settings = vec![
            greedy(),
            sampled(1.0, 1),
            sampled(0.3, 2),
            sampled(0.7, 3),
            sampled(1.5, 4),
        ];
        settings.push(SamplingParams {
            min_p: 0.05,
            ..sampled(1.0, 7)
        });
        settings.push(SamplingParams {
            repetition_penalty: 1.3,
            ..greedy()
        });
        settings.push(SamplingParams {
            presence_penalty: 0.5,
            frequency_penalty: 0.3,
            ..sampled(0.8, 3)
        });
        settings.push(SamplingParams {
            logit_bias: vec![(3, 4.0), (9, -100.0)],
            ..sampled(0.8, 3)
        });
        for (i, setting) in settings.into_iter().enumerate() {
            let plain = run(pair.as_ref(), &prompt, None, &setting, 36);
            // Every block size greedily, and half of them at temperature 1; two with every other setting.
            let blocks: Vec<usize> = match i {
                0 => (2..=16).collect(),
                1 => (2..=16).step_by(2).collect(),
                i if i % 2 == 0 => vec![2, 5],
                _ => vec![3, 16],
            };
            for block in blocks {
                let case = format!("{name}, block {block}, {setting:?}");
                let mtp = run(pair.as_ref(), &prompt, Some(block), &setting, 36);
                assert_eq!(mtp.tokens, plain.tokens, "{case}");
                assert_eq!(cache_difference(&mtp.cache, &plain.cache), None, "{case}");
            }
        }
    }
}

#[test]
fn long_runs_stay_equal() {
    for Tiny {
        name,
        pair,
        long: prompt,
        ..
    } in pairs()
    {
        for (setting, block) in [(greedy(), 9), (sampled(1.0, 5), 3)] {
            let plain = run(pair.as_ref(), &prompt, None, &setting, 300);
            let mtp = run(pair.as_ref(), &prompt, Some(block), &setting, 300);
            assert_eq!(mtp.tokens, plain.tokens, "{name}, block {block}");
            assert_eq!(
                cache_difference(&mtp.cache, &plain.cache),
                None,
                "{name}, block {block}"
            );
        }
    }
}

#[test]
fn the_built_in_pair_stays_equal_at_every_temperature() {
    let pair = load(&builtin("target"), Some(&builtin("drafter")));
    let prompt: Vec<u32> = (0..40).map(|i| (i * 37 + 11) % 8000).collect();
    for setting in [greedy(), sampled(1.0, 12)] {
        let plain = run(pair.as_ref(), &prompt, None, &setting, 40);
        for block in [2, 4, 6] {
            let mtp = run(pair.as_ref(), &prompt, Some(block), &setting, 40);
            assert_eq!(mtp.tokens, plain.tokens, "block {block}, {setting:?}");
            assert_eq!(
                cache_difference(&mtp.cache, &plain.cache),
                None,
                "block {block}, {setting:?}"
            );
        }
    }
}

/// 16-bit activations round differently from f32, but alike in a block and alone.
#[test]
fn half_precision_activations_stay_equal() {
    for (family, dtype) in (FAMILIES.iter()).flat_map(|f| [(f, Dtype::Bfloat16), (f, Dtype::Float16)]) {
        let checkpoint = Checkpoint::open(&golden(family.name).join("hf")).unwrap();
        let options = LoadOptions {
            dtype: Some(dtype),
            ..LoadOptions::default()
        };
        let pair = (family.load)(&checkpoint, Some(&checkpoint), options).unwrap();
        let plain = run(pair.as_ref(), &[11, 5, 93, 40, 7], None, &greedy(), 60);
        for block in [2, 4, 16] {
            let mtp = run(pair.as_ref(), &[11, 5, 93, 40, 7], Some(block), &greedy(), 60);
            assert_eq!(mtp.tokens, plain.tokens, "{}, {dtype:?}, block {block}", family.name);
            assert_eq!(
                cache_difference(&mtp.cache, &plain.cache),
                None,
                "{}, {dtype:?}, block {block}",
                family.name
            );
        }
    }
}

#[test]
fn one_wait_a_round_and_none_a_draft() {
    for (name, pair) in unpacked() {
        for block in [2, 3, 6, 16] {
            let mtp = run(pair.as_ref(), &[11, 5, 93], Some(block), &greedy(), 50);
            // The prompt's first token is read once, then each round once.
            assert_eq!(mtp.syncs, 1 + mtp.drafted.len(), "{name}, block {block}");
        }
        let plain = run(pair.as_ref(), &[11, 5, 93], None, &greedy(), 50);
        assert_eq!(plain.syncs, 50, "{name}");
    }
}

#[test]
fn an_end_token_ends_the_run_wherever_it_falls_in_a_block() {
    for (name, pair) in unpacked() {
        let prompt = [11, 5, 93, 40, 7, 128, 64];
        let all = run(pair.as_ref(), &prompt, None, &greedy(), 40).tokens;
        for (i, end) in all.iter().enumerate() {
            if all[..i].contains(end) {
                continue;
            }
            let limits = || Limits {
                max_tokens: 40,
                eos: vec![*end],
            };
            let plain = run_to(pair.as_ref(), &prompt, None, &greedy(), limits());
            assert_eq!(plain.tokens, all[..=i]);
            for block in [2, 3, 4, 6] {
                let mtp = run_to(pair.as_ref(), &prompt, Some(block), &greedy(), limits());
                assert_eq!(mtp.tokens, plain.tokens, "{name}, end at {i}, block {block}");
                assert_eq!(
                    cache_difference(&mtp.cache, &plain.cache),
                    None,
                    "{name}, end at {i}, block {block}"
                );
            }
        }
    }
}

#[test]
fn every_token_limit_is_kept_exactly() {
    for (name, pair) in unpacked() {
        let prompt = [11, 5, 93, 40, 7, 128, 64];
        for n in 1..=20 {
            let plain = run(pair.as_ref(), &prompt, None, &greedy(), n);
            assert_eq!(plain.tokens.len(), n);
            for block in [2, 3, 6] {
                let mtp = run(pair.as_ref(), &prompt, Some(block), &greedy(), n);
                assert_eq!(mtp.tokens, plain.tokens, "{name}, {n} tokens, block {block}");
                assert_eq!(
                    cache_difference(&mtp.cache, &plain.cache),
                    None,
                    "{name}, {n} tokens, block {block}"
                );
            }
        }
    }
}

/// Prompt lengths around the borders of chunks and cache slabs.
#[test]
fn prompts_of_any_length_agree() {
    for (name, pair) in unpacked() {
        for n in [
            1usize, 2, 3, 15, 16, 17, 63, 64, 65, 253, 254, 255, 256, 257, 509, 510, 511, 512, 513, 1030,
        ] {
            let prompt: Vec<u32> = (0..n as u32).map(|i| (i * 29 + 7) % 150).collect();
            let plain = run(pair.as_ref(), &prompt, None, &greedy(), 12);
            let mtp = run(pair.as_ref(), &prompt, Some(4), &greedy(), 12);
            assert_eq!(mtp.tokens, plain.tokens, "{name}, {n} tokens");
            assert_eq!(cache_difference(&mtp.cache, &plain.cache), None, "{name}, {n} tokens");
        }
    }
}

fn targets<F: Family>() -> Vec<(String, F::Target)> {
    ["hf", "mlx-q4"]
        .map(|layout| {
            let checkpoint = Checkpoint::open(&golden(F::NAME).join(layout)).unwrap();
            let options = LoadOptions {
                dtype: Some(Dtype::Float32),
                ..LoadOptions::default()
            };
            let target = F::load_target(&checkpoint, options).unwrap();
            (format!("{} {layout}", F::NAME), target)
        })
        .into()
}

fn row(tokens: &[u32]) -> Array {
    Array::from_slice(tokens, &[1, tokens.len() as i32])
}

fn prefilled(target: &impl Target) -> Cache {
    let mut cache = target.new_cache();
    target.forward(&row(&[11, 5, 93, 40, 7, 128, 64]), &mut cache).unwrap();
    cache
}

fn block_equals_single_steps<F: Family>() {
    let tokens: Vec<u32> = (0..16).map(|i| (i * 31 + 3) % 150).collect();
    for (name, target) in targets::<F>() {
        for n in 2..=16 {
            let (mut together, mut one_by_one) = (prefilled(&target), prefilled(&target));
            let block = target
                .logits(&target.forward(&row(&tokens[..n]), &mut together).unwrap())
                .unwrap();
            let steps: Vec<Array> = (0..n)
                .map(|i| {
                    target
                        .logits(&target.forward(&row(&tokens[i..=i]), &mut one_by_one).unwrap())
                        .unwrap()
                })
                .collect();
            let steps = mlx_rs::ops::concatenate(&steps, 1).unwrap();
            assert!(same_bits(&block, &steps), "{name}: logits of {n} rows");
            assert_eq!(
                cache_difference(&together, &one_by_one),
                None,
                "{name}: caches after {n} rows"
            );
        }
    }
}

#[test]
fn a_block_equals_single_steps_bit_for_bit() {
    block_equals_single_steps::<qwen3_5::Family>();
    block_equals_single_steps::<inkling::Family>();
}

fn rewinding<F: Family>() {
    let tokens: Vec<u32> = (0..6).map(|i| (i * 31 + 3) % 150).collect();
    for (name, target) in targets::<F>() {
        for keep in 0..=6usize {
            let mut expected = prefilled(&target);
            if keep > 0 {
                target.forward(&row(&tokens[..keep]), &mut expected).unwrap();
            }
            let mut fast = prefilled(&target);
            let verified = target.verify(&row(&tokens), &mut fast).unwrap();
            target.rewind(&mut fast, &verified, keep).unwrap();
            assert_eq!(cache_difference(&fast, &expected), None, "{name}: rewind to {keep}");
            let mut slow = prefilled(&target);
            let verified = target.verify(&row(&tokens), &mut slow).unwrap();
            restore_and_replay(&target, &mut slow, &verified, keep).unwrap();
            assert_eq!(cache_difference(&slow, &expected), None, "{name}: replay of {keep}");
        }
    }
}

#[test]
fn rewinding_equals_never_having_run_the_rest() {
    rewinding::<qwen3_5::Family>();
    rewinding::<inkling::Family>();
}

fn state_left_as_it_was<F: Family>() {
    let tokens = [3u32, 34, 65, 96];
    for (name, target) in targets::<F>() {
        let mut expected = prefilled(&target);
        target.forward(&row(&tokens[..2]), &mut expected).unwrap();
        for layer in 0..expected.layers.len() {
            for slot in 0..expected.layers[layer].state.len() {
                let mut cache = prefilled(&target);
                let verified = target.verify(&row(&tokens), &mut cache).unwrap();
                let kept = cache.layers[layer].state[slot].clone();
                target.rewind(&mut cache, &verified, 2).unwrap();
                cache.layers[layer].state[slot] = kept;
                let found = cache_difference(&cache, &expected);
                assert_eq!(found, Some(format!("state {slot} of layer {layer}")), "{name}");
            }
        }
    }
}

/// The comparison itself must notice a state that was not taken back.
#[test]
fn a_recurrent_state_left_as_it_was_is_caught() {
    state_left_as_it_was::<qwen3_5::Family>();
    state_left_as_it_was::<inkling::Family>();
}
