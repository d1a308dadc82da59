//! The self-check finds out what makes a block equal single steps, and running in parts changes nothing here.

use std::rc::Rc;

use mlx_rs::{Array, Dtype};
use models::cache::Cache;
use models::families::FAMILIES;
use models::family::{Hidden, Target, Verified};
use models::generate::{SelfCheck, find_ways, self_check};
use models::nn::rows::{self, CHECKED_ROWS, Op, Probe, Recorded, RowPolicy, Way};
use models::registry::Pair;
use models::{Result, SamplingParams};
use tests::{builtin, cache_difference, golden, ids, json, load, run};

/// The CPU backend computes rows one by one, whatever their number.
#[test]
fn every_operation_of_every_family_is_found_and_needs_nothing_here() {
    let expected: [(&str, &[&str]); 3] = [
        ("qwen3_5", &["product", "attention", "rotation", "recurrence"]),
        ("qwen3_5_moe", &["product", "attention", "recurrence", "experts"]),
        ("inkling", &["product", "attention", "bias table", "experts"]),
    ];
    for (family, kinds) in expected {
        for (layout, drafter) in [("hf", None), ("mlx-q4", Some("mlx-q4-mtp"))] {
            let dir = golden(family);
            let pair = load(&dir.join(layout), drafter.map(|d| dir.join(d)).as_deref());
            let (check, _) = pair.self_check(None).unwrap();
            assert_eq!(check.block, 16, "{family} {layout}");
            for kind in kinds {
                assert!(check.ops.iter().any(|v| v.op.contains(kind)), "{kind}: {:?}", check.ops);
            }
            let packed = check.ops.iter().any(|v| v.op.contains("4-bit"));
            assert_eq!(packed, layout == "mlx-q4", "{:?}", check.ops);
            assert!(check.ops.iter().all(models::OpVerdict::is_native), "{:?}", check.ops);
            // What is known is taken over.
            let mut known = check.clone();
            known.block = 5;
            known.ops[0].rows = 3;
            let (again, _) = pair.self_check(Some(&known)).unwrap();
            assert_eq!(again, known);
            // Of another checkpoint it is not.
            if layout == "hf" {
                known.ops.pop();
                assert_eq!(pair.self_check(Some(&known)).unwrap().0, check);
            }
        }
    }
}

/// A policy for every operation that a pair's forward pass records.
fn policy(check: &SelfCheck, pair: &dyn Pair, way: &dyn Fn(&str) -> (usize, bool)) -> Rc<RowPolicy> {
    let mut known = check.clone();
    for op in &mut known.ops {
        (op.rows, op.gathered) = way(&op.op);
    }
    pair.self_check(Some(&known)).unwrap().1
}

#[test]
fn running_in_parts_gives_the_same_bits_and_is_what_happens() {
    for family in FAMILIES {
        let dir = golden(family.name);
        let prompt = ids(&json(&dir.join("ref.json"))["prompt_short"]);
        let drafter = dir.join("mlx-q4-mtp");
        let layouts = [("hf", None), ("mlx-q4", Some(drafter.as_path()))];
        for (layout, drafter) in layouts {
            let pair = load(&dir.join(layout), drafter);
            let (check, _) = pair.self_check(None).unwrap();
            let sampling = SamplingParams {
                temperature: 0.7,
                seed: 3,
                ..SamplingParams::default()
            };
            let plain = run(pair.as_ref(), &prompt, None, &sampling, 32);
            type Rule = fn(&str) -> (usize, bool);
            let ways: [(&str, Rule); 4] = [
                ("row by row", |_| (1, false)),
                ("in twos", |_| (2, false)),
                ("in sevens", |_| (7, false)),
                ("gathered", |op| (1, op.contains("product"))),
            ];
            for (name, way) in ways {
                let policy = policy(&check, pair.as_ref(), &way);
                let _installed = rows::install(policy);
                for block in [2, 5, 16] {
                    let mtp = run(pair.as_ref(), &prompt, Some(block), &sampling, 32);
                    let case = format!("{} {layout}, {name}, block {block}", family.name);
                    assert_eq!(mtp.tokens, plain.tokens, "{case}");
                    assert_eq!(cache_difference(&mtp.cache, &plain.cache), None, "{case}");
                }
            }
        }
    }
}

/// An operation on eight rows of two columns that follows `rule(from, to, gathered)`: what it adds to every row.
fn operation(rule: fn(i32, i32, bool) -> Result<f32>, can_gather: bool) -> Recorded {
    let probe: Probe = Box::new(move |from, to, gathered| {
        let rows: Vec<f32> = (from..to).flat_map(|t| [t as f32, 0.5]).collect();
        let x = Array::from_slice(&rows, &[1, to - from, 2]);
        Ok(x.add(Array::from_f32(rule(from, to, gathered)?))?)
    });
    let op = Op::Recurrence {
        heads: 1,
        key_dim: 1,
        value_dim: 1,
    };
    Recorded { op, probe, can_gather }
}

#[test]
fn a_kernel_that_changes_with_the_number_of_rows_is_found_out() {
    let way =
        |rule: fn(i32, i32, bool) -> Result<f32>, can_gather| find_ways(&[operation(rule, can_gather)]).unwrap()[0];
    // As the CUDA backend's packed products: another kernel from eight rows on.
    fn from(n: i32, f: i32, t: i32) -> f32 {
        if t - f >= n { 1e-7 } else { 0.0 }
    }
    assert_eq!(way(|f, t, _| Ok(from(8, f, t)), true), Way::Together(7));
    assert_eq!(way(|_, _, _| Ok(0.0), true), Way::Together(CHECKED_ROWS));
    assert!(way(|_, _, _| Ok(0.0), true).is_native());
    assert_eq!(way(|f, t, _| Ok(from(5, f, t)), true), Way::Together(4));
    // As its dense products: another kernel from two rows on; one that takes rows apart helps, if it agrees.
    let apart = |f, t, gathered| Ok(if gathered { 0.0 } else { from(2, f, t) });
    assert_eq!(way(apart, true), Way::Gathered);
    assert_eq!(way(apart, false), Way::Together(1));
    assert_eq!(
        way(|f, t, g| Ok(if g { 1e-7 } else { from(2, f, t) }), true),
        Way::Together(1)
    );
    // A device that has no such kernel says so.
    let refuses = |f, t, gathered| match gathered {
        true => Err(models::Error::NotLoaded),
        false => Ok(from(3, f, t)),
    };
    assert_eq!(way(refuses, true), Way::Together(2));
    // Only the last bit of one number differs.
    let bit = |f: i32, t: i32, _| Ok(if t - f > 3 { f32::from_bits(1) } else { 0.0 });
    assert_eq!(way(bit, false), Way::Together(3));
    // A zero with another sign is another number of bits.
    let probe: Probe = Box::new(|from, to, _| {
        let zero = if to - from > 1 { -0.0 } else { 0.0 };
        Ok(Array::from_slice(&vec![zero; (to - from) as usize], &[1, to - from, 1]))
    });
    let signed = Recorded {
        probe,
        ..operation(|_, _, _| Ok(0.0), false)
    };
    assert_eq!(find_ways(&[signed]).unwrap(), [Way::Together(1)]);
}

/// Two products of one kind share their kernels: what one shows counts for the other, which rounding may hide.
#[test]
fn what_is_found_of_one_product_holds_for_its_kind() {
    let dense = |inputs, outputs, dtype| Op::Dense {
        inputs,
        outputs,
        weights: dtype,
        dtype,
    };
    let one = |op, from: i32, gathers: bool| Recorded {
        op,
        probe: Box::new(move |f, t, gathered| {
            let off = if t - f >= from && !(gathered && gathers) {
                1e-3
            } else {
                0.0
            };
            Ok(Array::from_slice(&vec![off; (t - f) as usize], &[1, t - f, 1]))
        }),
        can_gather: true,
    };
    let (half, full) = (Dtype::Bfloat16, Dtype::Float32);
    let ways = |ops: [Recorded; 3]| find_ways(&ops).unwrap();
    let all = Way::Together(CHECKED_ROWS);
    // Too small to tell: row by row as soon as its kind depends on the number of rows.
    let small = || one(dense(64, 4, half), 99, true);
    let other = || one(dense(64, 64, full), 99, true);
    assert_eq!(
        ways([
            small(),
            one(dense(64, 1000, half), 2, true),
            one(dense(8, 600, half), 99, true)
        ]),
        [Way::Together(1), Way::Gathered, Way::Gathered]
    );
    assert_eq!(
        ways([small(), one(dense(64, 1000, half), 2, false), other()]),
        [Way::Together(1), Way::Together(1), all]
    );
    let six = Way::Together(6);
    assert_eq!(
        ways([one(dense(64, 1000, half), 7, true), small(), other()]),
        [six, Way::Together(1), all]
    );
}

/// A target whose scores, or whose memory, come out differently from some number of rows on.
struct Crooked {
    from: i32,
    in_memory: bool,
}

impl Target for Crooked {
    type Capture = ();

    fn new_cache(&self) -> Cache {
        Cache::new(1)
    }

    fn vocabulary(&self) -> usize {
        16
    }

    fn context(&self) -> usize {
        1000
    }

    fn dtype(&self) -> Dtype {
        Dtype::Float32
    }

    fn forward(&self, tokens: &Array, cache: &mut Cache) -> Result<Hidden> {
        let rows = tokens.shape()[1];
        let x = tokens.as_dtype(Dtype::Float32)?.reshape(&[1, rows, 1])?;
        let off = Array::from_f32(if (self.from..20).contains(&rows) { 1e-3 } else { 0.0 });
        let sum = x.sum_axes(&[1], true)?;
        let before = cache.layers[0]
            .state
            .first()
            .cloned()
            .unwrap_or(Array::from_slice(&[0f32], &[1, 1, 1]));
        let memory = before.add(sum)?;
        cache.layers[0].state = vec![if self.in_memory { memory.add(&off)? } else { memory }];
        cache.len += rows;
        Ok(Hidden::new(if self.in_memory { x } else { x.add(&off)? }))
    }

    fn logits(&self, hidden: &Hidden) -> Result<Array> {
        Ok(hidden.array().multiply(Array::from_slice(&[1f32; 16], &[16]))?)
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

    fn rewind(&self, _: &mut Cache, _: &Verified<()>, _: usize) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_target_that_is_not_exact_as_a_whole_is_limited_to_the_blocks_that_are() {
    for in_memory in [false, true] {
        for (from, block) in [(2, 1), (3, 2), (5, 4), (8, 7), (99, 16)] {
            let (check, _) = self_check(&Crooked { from, in_memory }, None).unwrap();
            assert_eq!(check.block, block, "from {from} rows, in memory: {in_memory}");
        }
    }
}

#[test]
fn the_engine_tells_what_was_checked_and_under_which_key() {
    use models::{DraftKind, Engine, LoadRequest, Measured};
    let engine = Engine::start();
    let load = |kind, key: &str, known: Option<SelfCheck>| {
        let request = LoadRequest {
            target: builtin("target"),
            drafter: (kind != DraftKind::None).then(|| builtin("drafter")),
            draft_kind: kind,
            measured: Measured {
                self_checks: known.map(|check| (key.to_owned(), check)).into_iter().collect(),
                ..Measured::default()
            },
            ..LoadRequest::default()
        };
        engine.load(request).unwrap()
    };
    let loaded = load(DraftKind::Auto, "", None);
    let check = loaded.self_check.expect("a drafter, so a check");
    assert_eq!(check.block, 16);
    assert!(
        loaded.check_key.starts_with("cpu") && loaded.check_key.contains(", MLX 0."),
        "{}",
        loaded.check_key
    );
    assert!(loaded.check_key.contains("float32"), "{}", loaded.check_key);
    // Known, so not found out again: what is said is believed.
    let known = SelfCheck { block: 2, ..check };
    let again = load(DraftKind::Auto, &loaded.check_key, Some(known.clone()));
    assert_eq!(again.self_check, Some(known));
    assert_eq!(again.check_key, loaded.check_key);
    // Of another device, version or checkpoint: no word on this one.
    let fresh = load(DraftKind::Auto, "cpu, MLX 0.1.0", again.self_check.clone());
    assert_eq!(fresh.self_check.unwrap().block, 16);
    assert_eq!(load(DraftKind::None, "", None).self_check, None);
}
