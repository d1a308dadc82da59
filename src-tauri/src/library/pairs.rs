//! Which draft head goes with which target.
//!
//! Sizes alone cannot tell: heads of different releases have the same shapes and would draft badly. So a pair is one
//! that the catalogue or the person made, or one whose names come from the same base; the loader then checks shapes.

/// Words of a name that tell the packing or the kind, not the model.
const PACKING: [&str; 32] = [
    "mtp",
    "mlx",
    "head",
    "draft",
    "drafter",
    "bf16",
    "fp16",
    "f16",
    "fp8",
    "bf8",
    "fp4",
    "mxfp4",
    "mxfp8",
    "nvfp4",
    "dwq",
    "optiq",
    "gptq",
    "awq",
    "int4",
    "int8",
    "quantized",
    "affine",
    "mixed",
    "text",
    "vlm",
    "oq2e",
    "oq4e",
    "oq4",
    "oq6e",
    "oq8e",
    "ud",
    "only",
];

/// The model that a repository or folder is made from: `mlx-community/Qwen3.8-27B-MTP-4bit` is `qwen3.8 27b`.
pub(super) fn base(name: &str) -> String {
    let last = name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(name);
    let last = last.split(" @ ").next().unwrap_or(last).to_lowercase();
    let words: Vec<&str> = last
        .split(['-', '_', ' '])
        .filter(|word| !word.is_empty() && !PACKING.contains(word) && !is_bits(word))
        .collect();
    words.join(" ")
}

/// `4bit`, `3.5bpw`, `gs64`, `q4`.
fn is_bits(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    ["bit", "bits", "bpw"]
        .iter()
        .any(|end| word.strip_suffix(end).is_some_and(number))
        || ["gs", "q", "w"]
            .iter()
            .any(|start| word.strip_prefix(start).is_some_and(number))
}

/// How well a head goes with a target, by where both come from; nothing if it does not.
pub(super) fn rank(target: &str, head: &str, catalogue: &[(String, String)]) -> Option<u32> {
    if catalogue.iter().any(|(a, b)| a == target && b == head) {
        return Some(3);
    }
    let (a, b) = (base(target), base(head));
    if a.is_empty() || a != b {
        return None;
    }
    // The same owner made both from the same weights.
    let owner = |name: &str| name.split_once('/').map(|(owner, _)| owner.to_owned());
    Some(if owner(target).is_some() && owner(target) == owner(head) {
        2
    } else {
        1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_forgets_packing_and_owner_but_not_the_release() {
        let cases = [
            ("mlx-community/Qwen3.8-27B-4bit", "qwen3.8 27b"),
            ("mlx-community/Qwen3.8-27B-MTP-bf16", "qwen3.8 27b"),
            ("Qwen/Qwen3.8-27B", "qwen3.8 27b"),
            ("mlx-community/Qwen3.6-35B-A3B-MTP-4bit", "qwen3.6 35b a3b"),
            ("thinkingmachines/Inkling-Small", "inkling small"),
            ("mlx-community/Inkling-Small-mlx-4bit", "inkling small"),
            ("x/Qwen3.8-27B-mixed-3.5bpw-MLX", "qwen3.8 27b"),
            ("a/b @ 0123456", "b"),
        ];
        for (name, expected) in cases {
            assert_eq!(base(name), expected, "{name}");
        }
    }

    #[test]
    fn heads_of_another_release_do_not_go_with_a_target() {
        assert_eq!(rank("a/Qwen3.8-27B-4bit", "a/Qwen3.6-27B-MTP-4bit", &[]), None);
        assert_eq!(rank("a/Qwen3.8-27B-4bit", "a/Qwen3.8-27B-MTP-4bit", &[]), Some(2));
        assert_eq!(rank("a/Qwen3.8-27B-4bit", "b/Qwen3.8-27B-MTP-4bit", &[]), Some(1));
        let known = [("a/Some-Chat".to_owned(), "c/Other-Head".to_owned())];
        assert_eq!(rank("a/Some-Chat", "c/Other-Head", &known), Some(3));
        assert_eq!(rank("mlx", "mtp", &[]), None);
    }
}
