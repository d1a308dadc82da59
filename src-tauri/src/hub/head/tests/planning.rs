//! Which bytes are the head, and what cannot be one.

use super::*;

#[tokio::test]
async fn a_head_over_two_shards_is_put_together_aligned() {
    let a = [("x.mtp.n", Dtype::U8, &[3][..]), ("model.w", Dtype::U8, &[9])];
    let b = [
        ("model.v", Dtype::F32, &[2][..]),
        ("x.mtp.s", Dtype::F32, &[5]),
        ("x.mtp.q", Dtype::BF16, &[3]),
    ];
    let repo = Repo::new(vec![
        ("a.safetensors", safetensors_of(&a, Some("pt"))),
        ("b.safetensors", safetensors_of(&b, Some("mlx"))),
    ]);
    let root = tempfile::tempdir().unwrap();
    let dir = repo.fetch(&repo.plan(root.path()).await.unwrap()).await.unwrap();
    let path = dir.join("model.safetensors");
    holds(&path, &[a[0], b[1], b[2]]);
    let bytes = std::fs::read(&path).unwrap();
    let (start, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    for (name, info) in metadata.tensors() {
        let width = info.dtype.bitsize() / 8;
        assert_eq!((8 + start + info.data_offsets.0) % width, 0, "{name} is aligned");
    }
    assert_eq!(
        metadata.metadata().as_ref().unwrap()["format"],
        "mlx",
        "one converted file counts"
    );
}

#[tokio::test]
async fn a_head_in_the_folder_keeps_its_folder() {
    let bare = safetensors_of(&[("fc.weight", Dtype::U8, &[9])], None);
    let repo = Repo::new(vec![
        ("m.safetensors", safetensors_of(&[("model.w", Dtype::U8, &[9])], None)),
        ("mtp/weights.safetensors", bare.clone()),
        ("mtp/config.json", b"{}".to_vec()),
        ("mtp/deep/other.safetensors", bare.clone()),
        ("other/x.safetensors", bare.clone()),
    ])
    .index(&[("model.w", "m.safetensors")]);
    let root = tempfile::tempdir().unwrap();
    let dir = repo.fetch(&repo.plan(root.path()).await.unwrap()).await.unwrap();
    assert_eq!(names_in(&dir), ["config.json", "mtp", "slipstream-head.json"]);
    assert_eq!(names_in(&dir.join("mtp")), ["config.json", "weights.safetensors"]);
    assert_eq!(std::fs::read(dir.join("mtp/weights.safetensors")).unwrap(), bare);
}

#[tokio::test]
async fn an_index_that_lies_is_found_out() {
    let model = || safetensors_of(&[("model.w", Dtype::U8, &[9])], None);
    let lost = Repo::new(vec![("m.safetensors", model())]).index(&[("mtp.a", "m.safetensors")]);
    assert_eq!(
        lost.refusal().await,
        "tiny-org/tiny-model: its index puts `mtp.a` in `m.safetensors`, which does not hold it"
    );
    let gone = Repo::new(vec![("m.safetensors", model())]).index(&[("mtp.a", "n.safetensors")]);
    assert!(
        gone.refusal()
            .await
            .contains("puts the head in `n.safetensors`, which is not there")
    );
    let outside = Repo::new(vec![("m.safetensors", model())]).index(&[("mtp.a", "../../n.safetensors")]);
    assert!(outside.refusal().await.contains("which is not there"));
    let both = [("model.w", Dtype::U8, &[9][..]), ("mtp.a", Dtype::U8, &[4])];
    let silent = Repo::new(vec![("m.safetensors", safetensors_of(&both, None))]).index(&[("model.w", "m.safetensors")]);
    let root = tempfile::tempdir().unwrap();
    assert_eq!(silent.plan(root.path()).await.unwrap().tensors(), 1);
    for (text, said) in [
        ("[]", "no `weight_map`"),
        ("{", "EOF"),
        (r#"{"weight_map": {"a": 1}}"#, "names no file"),
    ] {
        let mut broken = Repo::new(vec![("m.safetensors", model())]);
        broken
            .files
            .insert("model.safetensors.index.json".to_owned(), text.as_bytes().to_vec());
        let refusal = broken.refusal().await;
        assert!(
            refusal.contains("model.safetensors.index.json") && refusal.contains(said),
            "{refusal}"
        );
    }
    let mut huge = lost;
    huge.lengths
        .insert("model.safetensors.index.json".to_owned(), 30_000_000);
    assert!(huge.refusal().await.contains("not plausible"));
}

#[tokio::test]
async fn headers_that_cannot_be_are_refused_before_they_are_read() {
    let entry = |from: u64, to: u64| json!({"dtype": "U8", "shape": [to - from], "data_offsets": [from, to]});
    let header = |value: Value, data: usize| with_header(value.to_string().as_bytes(), &vec![0; data]);
    for (bytes, said) in [
        (b"short".to_vec(), "too few for a header"),
        (with_length(u64::MAX), "claims 18446744073709551615 bytes"),
        (with_length(1 << 62), "claims"),
        (b"version https://git-lfs.github.com/spec/v1\noid".to_vec(), "claims"),
        (with_length(193), "claims 193 bytes, the file has 200"),
        (with_header(b"{]", b""), "header is broken"),
        (with_header(b"\xff\xff", b""), "header is broken"),
        (
            header(json!({"mtp.a": entry(0, 4), "mtp.b": entry(2, 6)}), 6),
            "header is broken",
        ),
        (
            header(json!({"mtp.a": entry(0, 4), "mtp.b": entry(5, 6)}), 6),
            "header is broken",
        ),
        (
            header(
                json!({"mtp.a": {"dtype": "F32", "shape": [1u64 << 62, 8], "data_offsets": [0, 4]}}),
                4,
            ),
            "broken",
        ),
        (
            header(
                json!({"mtp.a": {"dtype": "U8", "shape": [5], "data_offsets": [0, 4]}}),
                4,
            ),
            "broken",
        ),
        (
            header(
                json!({"mtp.a": {"dtype": "U8", "shape": [4], "data_offsets": [4, 0]}}),
                4,
            ),
            "broken",
        ),
        (
            header(
                json!({"mtp.a": {"dtype": "X9", "shape": [4], "data_offsets": [0, 4]}}),
                4,
            ),
            "broken",
        ),
        (header(json!({"mtp.a": entry(0, 4)}), 5), "does not describe"),
        (header(json!({"mtp.a": entry(0, 4)}), 3), "does not describe"),
    ] {
        let repo = Repo::new(vec![("m.safetensors", bytes)]);
        let refusal = repo.refusal().await;
        assert!(
            refusal.contains("`m.safetensors`") && refusal.contains(said),
            "{refusal}"
        );
    }
    // The hub tells of a terabyte, and the header says that it fills the most of it.
    let mut bomb = Repo::new(vec![("m.safetensors", with_length(100_000_000))]);
    bomb.lengths.insert("m.safetensors".to_owned(), 1 << 40);
    bomb.files.insert(
        "m.safetensors".to_owned(),
        [with_length(100_000_000), vec![b' '; 200_000]].concat(),
    );
    assert!(bomb.refusal().await.contains("claims 100000000 bytes"));
    assert_eq!(bomb.served(), 128 << 10);
}

/// 200 bytes that begin with a header's length.
fn with_length(length: u64) -> Vec<u8> {
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.resize(200, b' ');
    bytes
}

#[tokio::test]
async fn a_long_header_is_read_to_its_end() {
    let names: Vec<String> = (0..3000)
        .map(|i| format!("model.layers.{i}.a_rather_long_name.weight"))
        .collect();
    let mut tensors: Vec<Tensor<'_>> = names.iter().map(|name| (name.as_str(), Dtype::U8, &[1][..])).collect();
    tensors.push(("mtp.a", Dtype::U8, &[7]));
    let repo = Repo::new(vec![("m.safetensors", safetensors_of(&tensors, None))]);
    let root = tempfile::tempdir().unwrap();
    let dir = repo.fetch(&repo.plan(root.path()).await.unwrap()).await.unwrap();
    assert_eq!(repo.asked("m.safetensors"), 3);
    holds(&dir.join("model.safetensors"), &tensors[3000..]);
}

#[tokio::test]
async fn what_has_no_head_is_refused_by_name() {
    let plain = [
        ("model.w", Dtype::U8, &[9][..]),
        ("model.mtpx.w", Dtype::U8, &[1]),
        ("amtp.w", Dtype::U8, &[1]),
    ];
    let none = Repo::new(vec![("m.safetensors", safetensors_of(&plain, None))]);
    assert!(
        none.refusal()
            .await
            .contains("none of its weight files holds tensors named")
    );
    let mut bare = Repo::new(vec![]);
    assert!(bare.refusal().await.contains("none of its weight files"));
    bare.files.clear();
    assert!(bare.refusal().await.contains("it has no `config.json`"));
    let head = safetensors_of(&[("mtp.a", Dtype::U8, &[9])], None);
    let twice = Repo::new(vec![("a.safetensors", head.clone()), ("b.safetensors", head.clone())]);
    assert!(twice.refusal().await.contains("`mtp.a` is in two of its files"));
    let copy = Repo::new(vec![
        ("consolidated.safetensors", head.clone()),
        (".hidden.safetensors", head),
    ]);
    assert!(copy.refusal().await.contains("none of its weight files"));
    let names: Vec<String> = (0..5000)
        .map(|i| format!("{}.{i:05}", ["mtp", "model"][i % 2]))
        .collect();
    let scattered: Vec<Tensor<'_>> = names.iter().map(|name| (name.as_str(), Dtype::U8, &[1][..])).collect();
    let repo = Repo::new(vec![("m.safetensors", safetensors_of(&scattered, None))]);
    assert!(repo.refusal().await.contains("it is in 2500 places"));
    let mut untold = Repo::new(vec![("m.safetensors", safetensors_of(&HEAD, None))]);
    untold.files.get_mut("m.safetensors").unwrap().truncate(4);
    assert!(untold.refusal().await.contains("it has 4 bytes"));
}
