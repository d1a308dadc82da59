//! Keys and values held packed: less memory, other numbers, and speculation that changes none of them.

use models::checkpoint::Checkpoint;
use models::families::FAMILIES;
use models::family::LoadOptions;
use models::registry::Pair;
use models::{Engine, Error, KvFormat, LoadRequest, SamplingParams};
use tests::{cache_difference, golden, greedy, run};

fn pair(kv: KvFormat) -> Box<dyn Pair> {
    let checkpoint = Checkpoint::open(&golden("qwen3_5").join("hf")).unwrap();
    let options = LoadOptions {
        dtype: Some(mlx_rs::Dtype::Float32),
        kv,
        ..LoadOptions::default()
    };
    let family = FAMILIES.iter().find(|f| f.name == "qwen3_5").unwrap();
    (family.load)(&checkpoint, Some(&checkpoint), options).unwrap()
}

fn slab_bytes(run: &tests::Run) -> usize {
    let slabs = run.cache.layers.iter().flat_map(|l| l.kv.arrays());
    slabs.map(|a| a.nbytes()).sum()
}

#[test]
fn speculation_leaves_packed_text_and_cache_alone() {
    let prompt: Vec<u32> = (0..40).map(|i| (i * 37 + 11) % 90).collect();
    let sampled = SamplingParams {
        temperature: 0.8,
        seed: 4,
        ..SamplingParams::default()
    };
    let as_is = run(pair(KvFormat::Plain).as_ref(), &prompt, None, &greedy(), 24);
    for (bits, least) in [(8, 3), (4, 5)] {
        let pair = pair(KvFormat::Packed(bits));
        for setting in [greedy(), sampled.clone()] {
            let plain = run(pair.as_ref(), &prompt, None, &setting, 24);
            for block in [2, 5] {
                let mtp = run(pair.as_ref(), &prompt, Some(block), &setting, 24);
                assert_eq!(mtp.tokens, plain.tokens, "{bits} bits, block {block}");
                assert_eq!(
                    cache_difference(&mtp.cache, &plain.cache),
                    None,
                    "{bits} bits, block {block}"
                );
            }
            assert!(slab_bytes(&plain) * least < slab_bytes(&as_is), "{bits} bits");
        }
        let packed = run(pair.as_ref(), &prompt, None, &greedy(), 24);
        assert!(
            cache_difference(&packed.cache, &as_is.cache).is_some(),
            "packed numbers are rounded"
        );
    }
}

/// What was found of one format says nothing of another.
#[test]
fn a_self_check_is_known_by_its_format_too() {
    let engine = Engine::start();
    let key = |kv| {
        let loaded = engine.load(LoadRequest {
            target: golden("qwen3_5").join("hf"),
            kv,
            ..LoadRequest::default()
        });
        loaded.unwrap().check_key
    };
    let keys = [KvFormat::Plain, KvFormat::Packed(8), KvFormat::Packed(4)].map(key);
    assert!(
        keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2],
        "{keys:?}"
    );
}

#[test]
fn rows_that_cannot_be_packed_are_refused_by_size() {
    let engine = Engine::start();
    let load = |kv| {
        engine.load(LoadRequest {
            target: golden("inkling").join("hf"),
            kv,
            ..LoadRequest::default()
        })
    };
    let refused = load(KvFormat::Packed(8)).unwrap_err();
    assert!(
        matches!(&refused, Error::Usage { message } if message.contains("of 16 numbers") && message.contains("without packing")),
        "{refused}"
    );
    load(KvFormat::Plain).unwrap();
}
