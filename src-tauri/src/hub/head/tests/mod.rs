//! A repository in memory, and heads made of it.

mod fetching;
mod planning;

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
use crate::hub::verify::hex;

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
    waits: Mutex<Vec<WaitReason>>,
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
            sha256: path.ends_with(".safetensors").then(|| hex(Sha256::digest(bytes))),
            git_oid: Some(hex(Sha1::new()
                .chain_update(format!("blob {}\0", bytes.len()))
                .chain_update(bytes)
                .finalize())),
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

    fn waiting(&self, reason: WaitReason) {
        self.waits.lock().unwrap().push(reason);
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
