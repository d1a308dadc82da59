use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::*;
use crate::hub::RemoteFile;

const COMMIT: &str = "c0ffee0000000000000000000000000000000000";

type Tensor<'a> = (&'a str, Dtype, &'a [usize]);

/// A repository in memory, and what was asked of it.
#[derive(Default)]
struct Repo {
    files: BTreeMap<String, Vec<u8>>,
    /// Lengths that the listing tells in place of the true ones.
    lengths: HashMap<String, u64>,
    served: AtomicU64,
    asked: Mutex<Vec<(String, Range<u64>)>>,
    /// After so many bytes of weights connections break, or hang if `hangs`.
    breaks_after: Option<u64>,
    hangs: bool,
    /// Every stretch comes with so many bytes too few or too many.
    off_by: i64,
}

/// Bytes that differ from tensor to tensor and along each.
fn content(name: &str, length: usize) -> Vec<u8> {
    let seed = name
        .bytes()
        .fold(7u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    (0..length)
        .map(|i| seed.wrapping_add((i * 7 + i / 251) as u8))
        .collect()
}

fn safetensors_of(tensors: &[Tensor<'_>], format: Option<&str>) -> Vec<u8> {
    let (mut infos, mut data) = (Vec::new(), Vec::new());
    for (name, dtype, shape) in tensors {
        let length = shape.iter().product::<usize>() * dtype.bitsize() / 8;
        let info = TensorInfo {
            dtype: *dtype,
            shape: shape.to_vec(),
            data_offsets: (data.len(), data.len() + length),
        };
        infos.push(((*name).to_owned(), info));
        data.extend(content(name, length));
    }
    let said = format.map(|format| HashMap::from([("format".to_owned(), format.to_owned())]));
    with_header(
        &serde_json::to_vec(&Metadata::new(said, infos).unwrap()).unwrap(),
        &data,
    )
}

fn with_header(header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header, data].concat()
}

impl Repo {
    fn new(files: Vec<(&str, Vec<u8>)>) -> Self {
        let mut repo = Repo::default();
        repo.files
            .insert("config.json".to_owned(), br#"{"model_type": "tiny"}"#.to_vec());
        repo.files
            .extend(files.into_iter().map(|(path, bytes)| (path.to_owned(), bytes)));
        repo
    }

    fn index(mut self, pairs: &[(&str, &str)]) -> Self {
        let map: BTreeMap<_, _> = pairs.iter().copied().collect();
        let text = json!({ "weight_map": map }).to_string();
        self.files
            .insert("model.safetensors.index.json".to_owned(), text.into_bytes());
        self
    }

    fn listing(&self) -> Listing {
        let files = self.files.iter().map(|(path, bytes)| RemoteFile {
            path: path.clone(),
            size: Some(self.lengths.get(path).copied().unwrap_or(bytes.len() as u64)),
            sha256: path
                .ends_with(".safetensors")
                .then(|| journal::hex(Sha256::digest(bytes))),
            git_oid: Some(journal::hex(
                Sha1::new()
                    .chain_update(format!("blob {}\0", bytes.len()))
                    .chain_update(bytes)
                    .finalize(),
            )),
        });
        Listing {
            repo: "tiny-org/tiny-model".parse().unwrap(),
            revision: "main".to_owned(),
            commit: COMMIT.to_owned(),
            files: files.collect(),
            gated: false,
            private: false,
            license: None,
            offline: false,
        }
    }

    async fn plan(&self, root: &Path) -> Result<HeadPlan, HubError> {
        plan::plan(self, &self.listing(), root).await
    }

    async fn fetch(&self, plan: &HeadPlan) -> Result<PathBuf, HubError> {
        fetch::fetch(self, plan, &|_| {}, &CancelToken::new()).await
    }

    async fn refusal(&self) -> String {
        let dir = tempfile::tempdir().unwrap();
        match self.plan(dir.path()).await {
            Err(HubError::NoHead { repo, message }) => format!("{repo}: {message}"),
            other => panic!("{other:?}"),
        }
    }

    fn served(&self) -> u64 {
        self.served.load(Ordering::SeqCst)
    }

    fn asked(&self, path: &str) -> usize {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .filter(|(asked, _)| asked == path)
            .count()
    }
}

impl Source for Repo {
    async fn read(&self, file: &PartFile, bytes: Range<u64>, sink: Sink<'_>) -> Result<(), HubError> {
        assert_eq!(
            (file.commit.as_str(), file.repo.to_string().as_str()),
            (COMMIT, "tiny-org/tiny-model")
        );
        self.asked.lock().unwrap().push((file.path.clone(), bytes.clone()));
        let all = &self.files[&file.path];
        let end = (bytes.end as i64 + self.off_by) as usize;
        let from = &all[bytes.start as usize..end.min(all.len())];
        for some in from.chunks(1000) {
            let is_broken = self
                .breaks_after
                .is_some_and(|after| self.served() + some.len() as u64 > after);
            if is_broken && self.hangs {
                std::future::pending::<()>().await;
            }
            if is_broken {
                return Err(HubError::Stalled {
                    host: "content".to_owned(),
                    what: file.path.clone(),
                });
            }
            self.served.fetch_add(some.len() as u64, Ordering::SeqCst);
            sink(some)?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// The head lies at the end of the second of three shards, in two places.
fn sharded() -> Repo {
    let wide = [64, 1024];
    let layer: Tensor<'_> = ("model.layers.0.w", Dtype::BF16, &[512, 1024]);
    let shards = [
        safetensors_of(&[layer, ("model.norm", Dtype::BF16, &[8])], Some("pt")),
        safetensors_of(
            &[
                ("mtp.a", Dtype::F32, &wide),
                ("mtp.b", Dtype::F32, &[3]),
                ("model.layers.1.w", Dtype::BF16, &[512, 1024]),
                ("mtp.fc.weight", Dtype::BF16, &wide),
                ("mtp.norm", Dtype::BF16, &[5]),
            ],
            Some("pt"),
        ),
        safetensors_of(&[("model.layers.2.w", Dtype::BF16, &[512, 1024])], Some("pt")),
    ];
    let [a, b, c] = shards;
    Repo::new(vec![
        ("m-1.safetensors", a),
        ("m-2.safetensors", b),
        ("m-3.safetensors", c),
    ])
    .index(&[
        ("model.layers.0.w", "m-1.safetensors"),
        ("model.norm", "m-1.safetensors"),
        ("model.layers.1.w", "m-2.safetensors"),
        ("mtp.a", "m-2.safetensors"),
        ("mtp.b", "m-2.safetensors"),
        ("mtp.fc.weight", "m-2.safetensors"),
        ("mtp.norm", "m-2.safetensors"),
        ("model.layers.2.w", "m-3.safetensors"),
    ])
}

/// Each tensor has the bytes it was made of.
fn holds(path: &Path, tensors: &[Tensor<'_>]) {
    let bytes = std::fs::read(path).unwrap();
    let found = SafeTensors::deserialize(&bytes).unwrap();
    let mut names: Vec<String> = found.tensors().into_iter().map(|(name, _)| name).collect();
    names.sort();
    let mut wanted: Vec<&str> = tensors.iter().map(|(name, ..)| *name).collect();
    wanted.sort_unstable();
    assert_eq!(names, wanted);
    for (name, dtype, shape) in tensors {
        let tensor = found.tensor(name).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (*dtype, *shape), "{name}");
        assert_eq!(tensor.data(), content(name, tensor.data().len()), "{name}");
    }
}

const HEAD: [Tensor<'static>; 4] = [
    ("mtp.a", Dtype::F32, &[64, 1024]),
    ("mtp.b", Dtype::F32, &[3]),
    ("mtp.fc.weight", Dtype::BF16, &[64, 1024]),
    ("mtp.norm", Dtype::BF16, &[5]),
];

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn only_the_heads_bytes_come() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let all: u64 = repo
        .files
        .iter()
        .filter(|(p, _)| p.ends_with("tensors"))
        .map(|(_, b)| b.len() as u64)
        .sum();
    let head = 64 * 1024 * 6 + 12 + 10;
    assert_eq!((plan.tensors(), plan.in_place_of(), plan.present()), (4, all, 0));
    assert!(plan.total() > head && plan.total() < head + 1000, "{}", plan.total());
    assert_eq!((repo.asked("m-1.safetensors"), repo.asked("m-3.safetensors")), (0, 0));
    let planned = repo.served();

    let told = Mutex::new(Vec::new());
    let progress = |there| told.lock().unwrap().push(there);
    let dir = fetch::fetch(&repo, &plan, &progress, &CancelToken::new())
        .await
        .unwrap();
    assert_eq!(dir, root.path().join("tiny-org--tiny-model").join(COMMIT));
    assert_eq!(
        names_in(&dir),
        ["config.json", "model.safetensors", "slipstream-head.json"]
    );
    assert_eq!(
        std::fs::read(dir.join("config.json")).unwrap(),
        repo.files["config.json"]
    );
    holds(&dir.join("model.safetensors"), &HEAD);
    assert_eq!(
        repo.served() - planned,
        head + repo.files["config.json"].len() as u64,
        "each byte once"
    );
    assert_eq!(repo.asked("m-2.safetensors"), 1 + 2, "the header, and the two places");
    let told = told.into_inner().unwrap();
    assert!(
        told.is_sorted() && told.last() == Some(&plan.total()),
        "{:?}",
        told.last()
    );
    assert_eq!(
        (plan.present(), names_in(dir.parent().unwrap())),
        (plan.total(), vec![COMMIT.to_owned()])
    );

    let before = repo.served();
    assert_eq!(repo.fetch(&plan).await.unwrap(), dir);
    assert_eq!(repo.served(), before, "it is there");
}

#[tokio::test]
async fn the_folder_says_what_it_is_and_what_was_checked() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let dir = repo.fetch(&plan).await.unwrap();
    let record: Value = serde_json::from_slice(&std::fs::read(dir.join("slipstream-head.json")).unwrap()).unwrap();
    assert_eq!(
        (&record["repo"], &record["commit"]),
        (&json!("tiny-org/tiny-model"), &json!(COMMIT))
    );
    let [config, weights] = &record["files"].as_array().unwrap()[..] else {
        panic!("{record}");
    };
    assert_eq!(
        (&config["path"], &config["checked"]),
        (&json!("config.json"), &json!(true))
    );
    assert_eq!(
        (&weights["path"], &weights["checked"]),
        (&json!("model.safetensors"), &json!(false))
    );
    let bytes = std::fs::read(dir.join("model.safetensors")).unwrap();
    assert_eq!(weights["sha256"], json!(journal::hex(Sha256::digest(&bytes))));
    assert_eq!(weights["from"][0]["path"], "m-2.safetensors");
    assert_eq!(
        weights["from"][0]["hash"],
        json!(journal::hex(Sha256::digest(&repo.files["m-2.safetensors"])))
    );
    assert_eq!(weights["from"].as_array().unwrap().len(), 2);
}

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
async fn a_file_that_is_all_head_is_taken_as_it_is_and_checked() {
    let head = safetensors_of(&HEAD, None);
    let model = safetensors_of(&[("model.w", Dtype::U8, &[9])], None);
    let mut repo = Repo::new(vec![("m.safetensors", model), ("mtp.safetensors", head.clone())])
        .index(&[("model.w", "m.safetensors")]);
    let root = tempfile::tempdir().unwrap();
    let plan = repo.plan(root.path()).await.unwrap();
    assert_eq!(repo.asked("m.safetensors"), 0, "a file beside the index comes first");
    repo.files.get_mut("mtp.safetensors").unwrap()[5000] ^= 1;
    let failure = repo.fetch(&plan).await.unwrap_err();
    assert_eq!(failure.kind(), "hash_mismatch");
    assert!(!plan.dir().exists());
    assert!(
        plan.present() < 100,
        "what came was thrown away, but for the config: {}",
        plan.present()
    );
    repo.files.insert("mtp.safetensors".to_owned(), head.clone());
    let dir = repo.fetch(&plan).await.unwrap();
    assert_eq!(std::fs::read(dir.join("model.safetensors")).unwrap(), head);
    let record = std::fs::read_to_string(dir.join("slipstream-head.json")).unwrap();
    assert!(!record.contains(r#""checked": false"#), "{record}");
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
                json!({"mtp.a": {"dtype": "F32", "shape": [1 << 62, 8], "data_offsets": [0, 4]}}),
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

/// A connection that breaks costs nothing twice.
#[tokio::test]
async fn a_broken_connection_goes_on_from_the_last_byte() {
    let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let before = repo.served();
    for at in [10_000, 100_000, 300_000] {
        repo.breaks_after = Some(before + at);
        assert_eq!(repo.fetch(&plan).await.unwrap_err().kind(), "stalled");
        let prefix = plan.outputs[1].prefix.len() as u64;
        assert_eq!(plan.present(), repo.served() - before + prefix);
        assert!(!plan.dir().exists());
    }
    repo.breaks_after = None;
    let dir = repo.fetch(&plan).await.unwrap();
    let own: u64 = plan.outputs.iter().map(|output| output.prefix.len() as u64).sum();
    assert_eq!(repo.served() - before, plan.total() - own, "each byte once");
    holds(&dir.join("model.safetensors"), &HEAD);
}

/// A killed program leaves a file longer than its journal.
#[tokio::test]
async fn a_kill_costs_less_than_a_stretch() {
    let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let before = repo.served();
    repo.breaks_after = Some(before + 350_000);
    repo.hangs = true;
    tokio::select! {
        _ = repo.fetch(&plan) => panic!("it hangs"),
        () = async { while repo.served() < before + 349_000 { tokio::time::sleep(Duration::from_millis(5)).await; } } => {}
    }
    let kept = plan.present();
    assert!((262_000..350_000).contains(&kept), "{kept}");
    repo.breaks_after = None;
    let dir = repo.fetch(&plan).await.unwrap();
    let twice = repo.served() - before - (plan.total() - plan.outputs[1].prefix.len() as u64);
    assert!((1..262_144).contains(&twice), "{twice}");
    holds(&dir.join("model.safetensors"), &HEAD);
}

#[tokio::test]
async fn what_the_disk_lost_is_fetched_again() {
    for damage in ["bytes", "end", "journal", "nonsense"] {
        let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
        let plan = repo.plan(root.path()).await.unwrap();
        repo.breaks_after = Some(repo.served() + 380_000);
        repo.fetch(&plan).await.unwrap_err();
        let work = root.path().join("tiny-org--tiny-model").join(format!(".{COMMIT}.part"));
        let (data, journal) = (work.join("files/model.safetensors"), work.join("1.journal"));
        let mut bytes = std::fs::read(&data).unwrap();
        match damage {
            "bytes" => {
                bytes[300_000..310_000].fill(0);
                std::fs::write(&data, bytes).unwrap();
            }
            "end" => std::fs::write(&data, &bytes[..200_000]).unwrap(),
            "journal" => std::fs::remove_file(&journal).unwrap(),
            _ => std::fs::write(&journal, b"9 \xff\xff\n18446744073709551615 ff\n-1 x\n\n").unwrap(),
        }
        repo.breaks_after = None;
        let dir = repo.fetch(&plan).await.unwrap();
        holds(&dir.join("model.safetensors"), &HEAD);
    }
}

#[tokio::test]
async fn halves_of_another_content_are_thrown_away() {
    let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    repo.breaks_after = Some(repo.served() + 380_000);
    repo.fetch(&plan).await.unwrap_err();
    assert!(plan.present() > 300_000);
    // The same commit with another content is not to be, but must not be mixed.
    let shard = repo.files.get_mut("m-2.safetensors").unwrap();
    let last = shard.len() - 1;
    shard[last] ^= 1;
    repo.breaks_after = None;
    let other = repo.plan(root.path()).await.unwrap();
    assert_eq!(other.present(), 0);
    let before = repo.served();
    repo.fetch(&other).await.unwrap();
    assert!(repo.served() - before > 390_000, "from the start");
}

#[tokio::test]
async fn a_damaged_head_in_place_is_made_anew() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let dir = repo.fetch(&plan).await.unwrap();
    for name in ["model.safetensors", "slipstream-head.json", "config.json"] {
        std::fs::remove_file(dir.join(name)).unwrap();
        assert!(plan.present() < plan.total(), "{name}");
        repo.fetch(&plan).await.unwrap();
        holds(&dir.join("model.safetensors"), &HEAD);
    }
}

#[tokio::test]
async fn two_at_once_fetch_it_once() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let before = repo.served();
    let (one, two) = tokio::join!(repo.fetch(&plan), repo.fetch(&plan));
    assert_eq!(one.unwrap(), two.unwrap());
    assert!(repo.served() - before < plan.total());
}

#[tokio::test]
async fn a_cancelled_one_says_what_it_keeps() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let cancel = CancelToken::new();
    let stop = |there| {
        if there > 200_000 {
            cancel.cancel();
        }
    };
    // The first of the two places is fetched to its end; the second is not begun.
    let failure = fetch::fetch(&repo, &plan, &stop, &cancel).await.unwrap_err();
    let kept = 64 * 1024 * 4 + 12 + plan.outputs[0].len() + plan.outputs[1].prefix.len() as u64;
    assert_eq!(failure, HubError::Cancelled { kept });
    assert_eq!(plan.present(), kept);
}

#[tokio::test]
async fn stretches_of_another_length_are_refused() {
    for off_by in [-1, 1] {
        let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
        let plan = repo.plan(root.path()).await.unwrap();
        let config = plan.outputs[0].clone();
        repo.off_by = off_by;
        let weights = HeadPlan {
            outputs: plan.outputs[1..].to_vec(),
            ..plan.clone()
        };
        assert_eq!(
            repo.fetch(&weights).await.unwrap_err().kind(),
            "length_mismatch",
            "{off_by}"
        );
        assert_eq!(
            repo.plan(root.path()).await.unwrap_err().kind(),
            "length_mismatch",
            "{off_by}"
        );
        assert!(!plan.dir().exists() && config.len() > 0);
    }
}
