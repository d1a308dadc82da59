//! Block-scaled FP8 checkpoints.

use models::{Speculation, inspect};
use serde_json::json;
use tests::golden;

use crate::heads::{copy, generate, load};

/// FP8 with one scale for 128 by 128 numbers, target and head, against the same numbers stored as they are.
#[test]
fn block_scaled_fp8_equals_the_numbers_it_stands_for() {
    let dir = tempfile::tempdir().unwrap();
    let (packed, plain) = (dir.path().join("packed"), dir.path().join("plain"));
    for to in [&packed, &plain] {
        copy(&golden("qwen3_5/hf"), to);
        std::fs::remove_file(to.join("model.safetensors.index.json")).unwrap();
    }
    let source = std::fs::read(golden("qwen3_5/hf").join("model.safetensors")).unwrap();
    let source = safetensors::SafeTensors::deserialize(&source).unwrap();
    let (mut fp8, mut f32s): (Vec<Owned>, Vec<Owned>) = (Vec::new(), Vec::new());
    for (name, tensor) in source.tensors() {
        let keeps = ["in_proj_a", "in_proj_b", "embed_tokens", "lm_head", "mtp.fc", "conv1d"];
        let own = Owned::new(&name, safetensors::Dtype::F32, tensor.shape(), tensor.data().to_vec());
        if tensor.shape().len() != 2 || keeps.iter().any(|k| name.contains(k)) {
            fp8.push(own.clone());
            f32s.push(own);
            continue;
        }
        let (bytes, scales, values) = to_fp8(tensor.shape(), tensor.data());
        let blocks: Vec<usize> = tensor.shape().iter().map(|n| n.div_ceil(128)).collect();
        fp8.push(Owned::new(&name, safetensors::Dtype::F8_E4M3, tensor.shape(), bytes));
        let scale_name = format!("{name}_scale_inv");
        fp8.push(Owned::new(&scale_name, safetensors::Dtype::F32, &blocks, scales));
        f32s.push(Owned::new(&name, safetensors::Dtype::F32, tensor.shape(), values));
    }
    for (to, tensors) in [(&packed, &fp8), (&plain, &f32s)] {
        let views = tensors.iter().map(|t| (&t.name, t.view()));
        safetensors::serialize_to_file(views, None, &to.join("model.safetensors")).unwrap();
    }
    let config = packed.join("config.json");
    let mut json = tests::json(&config);
    json["quantization_config"] =
        json!({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"});
    std::fs::write(&config, json.to_string()).unwrap();
    let inspection = inspect(&packed).unwrap();
    assert!(inspection.problems.is_empty(), "{:?}", inspection.problems);
    assert_eq!(inspection.mtp.tensors, 22);
    let (a, b) = (
        load(packed.clone(), None).unwrap().0,
        load(plain.clone(), None).unwrap().0,
    );
    for block in [Speculation::Off, Speculation::Block(3), Speculation::Block(5)] {
        let (a, b) = (generate(&a, block, 64), generate(&b, block, 64));
        assert_eq!(a.tokens, b.tokens);
        assert_eq!(
            a.stats.speculation.accepted_per_round,
            b.stats.speculation.accepted_per_round
        );
    }
    // The config's word without the tensors is refused, and so are tensors without the config's word.
    std::fs::copy(plain.join("model.safetensors"), packed.join("model.safetensors")).unwrap();
    assert_eq!(load(packed, None).unwrap_err().kind(), "unsupported_quantization");
}

#[derive(Clone)]
struct Owned {
    name: String,
    dtype: safetensors::Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Owned {
    fn new(name: &str, dtype: safetensors::Dtype, shape: &[usize], bytes: Vec<u8>) -> Self {
        let (name, shape) = (name.to_owned(), shape.to_vec());
        Self {
            name,
            dtype,
            shape,
            bytes,
        }
    }

    fn view(&self) -> safetensors::tensor::TensorView<'_> {
        safetensors::tensor::TensorView::new(self.dtype, self.shape.clone(), &self.bytes).unwrap()
    }
}

/// The value of an E4M3 byte: sign, four bits of exponent with bias 7, three of mantissa.
fn e4m3(byte: u8) -> f32 {
    let (sign, exponent, mantissa) = (byte >> 7, i32::from(byte >> 3 & 15), f32::from(byte & 7));
    let size = match exponent {
        0 => mantissa / 8.0 * 2f32.powi(-6),
        e => (1.0 + mantissa / 8.0) * 2f32.powi(e - 7),
    };
    if sign == 1 { -size } else { size }
}

/// A matrix in blocks of 128 by 128: bytes, scales, and the numbers they stand for.
fn to_fp8(shape: &[usize], data: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let numbers: Vec<f32> = data
        .chunks(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    let (rows, columns) = (shape[0], shape[1]);
    let across = columns.div_ceil(128);
    let mut scales = vec![0f32; rows.div_ceil(128) * across];
    let block = |at: usize| at / columns / 128 * across + at % columns / 128;
    for (at, x) in numbers.iter().enumerate() {
        scales[block(at)] = scales[block(at)].max(x.abs() / 448.0);
    }
    // All but the two that are not numbers.
    let codes: Vec<(u8, f32)> = (0..=255).filter(|b| b & 127 != 127).map(|b| (b, e4m3(b))).collect();
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for (at, x) in numbers.iter().enumerate() {
        let scale = scales[block(at)];
        let distance = |code: &&(u8, f32)| (code.1 * scale - x).abs();
        let (code, value) = codes.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
        bytes.push(*code);
        values.extend((value * scale).to_le_bytes());
    }
    let scales = scales.iter().flat_map(|s| s.to_le_bytes()).collect();
    (bytes, scales, values)
}
