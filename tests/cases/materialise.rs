//! Makes the checkpoint of a case: a fixture folder, and operations on its files and tensors in order.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use fancy_regex::Regex;
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::{Map, Value, json};

use super::{list, number, text};

const INDEX: &str = "model.safetensors.index.json";

/// One tensor, its numbers as stored.
#[derive(Clone)]
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

type Tensors = BTreeMap<String, Tensor>;
type Metadata = Option<HashMap<String, String>>;

/// Fills `out/model` and, for a pair, `out/drafter`.
pub(crate) fn materialise(case: &Value, out: &Path) {
    build(case, &out.join("model"));
    if let Some(drafter) = case.get("drafter") {
        build(drafter, &out.join("drafter"));
    }
}

/// A fixture by its name, e.g. `qwen3_5/hf`: beside the cases, or the copy among the goldens.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let beside = super::root().join("../oracle/out").join(name);
    if beside.is_dir() { beside } else { tests::golden(name) }
}

fn build(spec: &Value, out: &Path) {
    std::fs::create_dir_all(out).unwrap();
    let base = fixture(text(&spec["base"]));
    for entry in std::fs::read_dir(&base).unwrap_or_else(|e| panic!("{}: {e}", base.display())) {
        let from = entry.unwrap().path();
        // Written anew, so that a read-only fixture does not make a read-only copy.
        std::fs::write(out.join(from.file_name().unwrap()), std::fs::read(&from).unwrap()).unwrap();
    }
    let dir = Folder(out);
    for op in list(&spec["ops"]) {
        dir.apply(op);
    }
}

struct Folder<'a>(&'a Path);

impl Folder<'_> {
    fn apply(&self, op: &Value) {
        let file = text(&op["file"]);
        let to = text(&op["to"]);
        match text(&op["op"]) {
            "config" => self.config(op),
            "replace_text" => {
                let old = self.text(file);
                assert!(old.contains(text(&op["old"])), "{op}");
                self.put(file, &old.replace(text(&op["old"]), text(&op["new"])));
            }
            "flatten_text_config" => self.flatten(text(&op["model_type"])),
            "write_file" => self.put(file, text(&op["text"])),
            "write_bytes" => {
                let hex = text(&op["hex"]);
                let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
                std::fs::write(self.path(file), bytes).unwrap();
            }
            "copy_file" => drop(std::fs::copy(self.path(file), self.path(to)).unwrap()),
            "rename_file" => std::fs::rename(self.path(file), self.path(to)).unwrap(),
            "delete_file" => std::fs::remove_file(self.path(file)).unwrap(),
            "truncate_file" => {
                let bytes = std::fs::read(self.path(file)).unwrap();
                std::fs::write(self.path(file), &bytes[..bytes.len() - number(&op["cut"])]).unwrap();
            }
            "header_length" => {
                let mut bytes = std::fs::read(self.path(file)).unwrap();
                bytes[..8].copy_from_slice(&op["length"].as_u64().unwrap().to_le_bytes());
                std::fs::write(self.path(file), bytes).unwrap();
            }
            "header_entry" => self.header_entry(file, text(&op["name"]), op["set"].as_object().unwrap()),
            "index" => self.index(op),
            _ => self.apply_to_tensors(op),
        }
    }

    fn apply_to_tensors(&self, op: &Value) {
        let file = text(&op["file"]);
        let (mut tensors, mut metadata) = self.read(file);
        let hits = |tensors: &Tensors| -> Vec<String> {
            let regex = pattern(text(&op["match"]));
            let hits: Vec<String> = tensors.keys().filter(|n| regex.is_match(n).unwrap()).cloned().collect();
            assert!(!hits.is_empty(), "{op} matches nothing");
            hits
        };
        match text(&op["op"]) {
            "delete_tensors" => {
                for name in hits(&tensors) {
                    tensors.remove(&name);
                }
            }
            "rename_tensors" => {
                let (regex, to) = (pattern(text(&op["match"])), replacement(text(&op["to"])));
                let count = tensors.len();
                tensors = std::mem::take(&mut tensors)
                    .into_iter()
                    .map(|(name, tensor)| (regex.replace_all(&name, to.as_str()).into_owned(), tensor))
                    .collect();
                assert_eq!(tensors.len(), count, "{op} makes one name of two");
            }
            "move_tensors" | "copy_tensors" => return self.transfer(op, tensors, metadata, hits),
            "add_tensor" => {
                let shape: Vec<usize> = list(&op["shape"]).iter().map(number).collect();
                let dtype = dtype(op["dtype"].as_str().unwrap_or("F32"));
                let count: usize = shape.iter().product();
                let mut tensor = Tensor {
                    dtype,
                    shape,
                    bytes: vec![0; count * dtype.bitsize() / 8],
                };
                tensor.change(|_| op["fill"].as_f64().unwrap_or(0.0));
                tensors.insert(text(&op["name"]).to_owned(), tensor);
            }
            "slice_tensors" => {
                let shape: Vec<usize> = list(&op["shape"]).iter().map(number).collect();
                for name in hits(&tensors) {
                    let tensor = tensors.get_mut(&name).unwrap();
                    *tensor = tensor.corner(&shape);
                }
            }
            "add_scalar" => {
                let value = op["value"].as_f64().unwrap();
                for name in hits(&tensors) {
                    tensors.get_mut(&name).unwrap().change(|x| x + value);
                }
            }
            "unfuse_experts" => tensors = unfuse(tensors),
            "metadata" => metadata = Some(serde_json::from_value(op["set"].clone()).unwrap()),
            other => panic!("operation {other} is not known here"),
        }
        self.write(file, &tensors, metadata);
    }

    fn transfer(&self, op: &Value, mut from: Tensors, metadata: Metadata, hits: impl Fn(&Tensors) -> Vec<String>) {
        let (file, to) = (text(&op["file"]), text(&op["to"]));
        let is_new = !self.path(to).exists();
        let (mut target, mut target_metadata) = self.read(to);
        if is_new {
            target_metadata = metadata.clone();
        }
        if let Some(set) = op.get("metadata").filter(|v| !v.is_null()) {
            target_metadata = Some(serde_json::from_value(set.clone()).unwrap());
        }
        let is_move = op["op"] == "move_tensors";
        for name in hits(&from) {
            let mut tensor = if is_move {
                from.remove(&name).unwrap()
            } else {
                from[&name].clone()
            };
            if let Some(fill) = op["fill"].as_f64() {
                tensor.change(|_| fill);
            } else if let Some(add) = op["add"].as_f64() {
                tensor.change(|x| x + add);
            }
            target.insert(name, tensor);
        }
        self.write(to, &target, target_metadata);
        if is_move {
            self.write(file, &from, metadata);
        }
    }

    fn config(&self, op: &Value) {
        let file = op["file"].as_str().unwrap_or("config.json");
        let mut config = self.json(file);
        for (path, value) in op["set"].as_object().into_iter().flatten() {
            let (holder, key) = holder(&mut config, path);
            match holder {
                Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
                Value::Object(object) => drop(object.insert(key, value.clone())),
                other => panic!("{path} leads into {other}"),
            }
        }
        for path in list(&op["remove"]) {
            let (holder, key) = holder(&mut config, text(path));
            drop(holder.as_object_mut().unwrap().shift_remove(&key));
        }
        self.put(file, &config.to_string());
    }

    fn flatten(&self, model_type: &str) {
        let config = self.json("config.json");
        let mut flat = config["text_config"].as_object().unwrap().clone();
        flat.insert("model_type".to_owned(), model_type.into());
        flat.insert("eos_token_id".to_owned(), config["eos_token_id"].clone());
        self.put("config.json", &Value::from(flat).to_string());
    }

    /// Changes what a header says of one tensor and leaves the data as it is.
    fn header_entry(&self, file: &str, name: &str, set: &Map<String, Value>) {
        let bytes = std::fs::read(self.path(file)).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        header[name].as_object_mut().unwrap().extend(set.clone());
        let mut out = header.to_string().into_bytes();
        out.resize(out.len().next_multiple_of(8), b' ');
        let mut file_bytes = (out.len() as u64).to_le_bytes().to_vec();
        file_bytes.extend(out);
        file_bytes.extend(&bytes[8 + length..]);
        std::fs::write(self.path(file), file_bytes).unwrap();
    }

    fn index(&self, op: &Value) {
        let file = op["file"].as_str().unwrap_or(INDEX);
        if op["delete"] == true {
            return std::fs::remove_file(self.path(file)).unwrap();
        }
        let mut map: BTreeMap<String, Value> = match self.path(file).exists() {
            true => serde_json::from_value(self.json(file)["weight_map"].clone()).unwrap(),
            false => BTreeMap::new(),
        };
        if let Some(files) = op["rebuild"].as_array() {
            map = files
                .iter()
                .flat_map(|f| self.read(text(f)).0.into_keys().map(move |name| (name, f.clone())))
                .collect();
        }
        for (key, to) in op["set"].as_object().into_iter().flatten() {
            let regex = pattern(key);
            let hits: Vec<String> = map.keys().filter(|n| regex.is_match(n).unwrap()).cloned().collect();
            let names = if hits.is_empty() { vec![key.clone()] } else { hits };
            map.extend(names.into_iter().map(|name| (name, to.clone())));
        }
        if let Some(remove) = op["remove"].as_str() {
            let regex = pattern(remove);
            map.retain(|name, _| !regex.is_match(name).unwrap());
        }
        self.put(file, &json!({"metadata": {}, "weight_map": map}).to_string());
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap()
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&self.text(file)).unwrap()
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, file: &str) -> (Tensors, Metadata) {
        let Ok(bytes) = std::fs::read(self.path(file)) else {
            return (Tensors::new(), None);
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let read = |(name, view): (String, TensorView<'_>)| {
            let tensor = Tensor {
                dtype: view.dtype(),
                shape: view.shape().to_vec(),
                bytes: view.data().to_vec(),
            };
            (name, tensor)
        };
        (
            tensors.tensors().into_iter().map(read).collect(),
            header.metadata().clone(),
        )
    }

    fn write(&self, file: &str, tensors: &Tensors, metadata: Metadata) {
        let views = tensors
            .iter()
            .map(|(name, t)| (name, TensorView::new(t.dtype, t.shape.clone(), &t.bytes).unwrap()));
        let metadata = metadata.or_else(|| Some(HashMap::from([("format".to_owned(), "pt".to_owned())])));
        let bytes = safetensors::serialize(views, metadata.filter(|m| !m.is_empty())).unwrap();
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

impl Tensor {
    /// Maps every number, in its stored type.
    fn change(&mut self, f: impl Fn(f64) -> f64) {
        fn each<const N: usize>(bytes: &mut [u8], f: impl Fn([u8; N]) -> [u8; N]) {
            for chunk in bytes.chunks_exact_mut(N) {
                let new = f((&*chunk).try_into().unwrap());
                chunk.copy_from_slice(&new);
            }
        }
        let b = &mut self.bytes;
        match self.dtype {
            Dtype::F32 => each(b, |x| (f(f64::from(f32::from_le_bytes(x))) as f32).to_le_bytes()),
            Dtype::F16 => each(b, |x| f16::from_f64(f(f16::from_le_bytes(x).to_f64())).to_le_bytes()),
            Dtype::BF16 => each(b, |x| bf16::from_f64(f(bf16::from_le_bytes(x).to_f64())).to_le_bytes()),
            Dtype::U32 => each(b, |x| (f(f64::from(u32::from_le_bytes(x))) as u32).to_le_bytes()),
            Dtype::I32 => each(b, |x| (f(f64::from(i32::from_le_bytes(x))) as i32).to_le_bytes()),
            Dtype::U8 => each(b, |x: [u8; 1]| [f(f64::from(x[0])) as u8]),
            other => panic!("numbers of type {other:?}"),
        }
    }

    /// The leading part of each axis.
    fn corner(&self, shape: &[usize]) -> Self {
        let shape: Vec<usize> = (self.shape.iter().enumerate())
            .map(|(axis, n)| shape.get(axis).map_or(*n, |cut| (*n).min(*cut)))
            .collect();
        let item = self.dtype.bitsize() / 8;
        let mut bytes = Vec::new();
        for at in 0..shape.iter().product::<usize>() {
            let (mut rest, mut from, mut stride) = (at, 0, 1);
            for (cut, whole) in shape.iter().zip(&self.shape).rev() {
                from += rest % cut * stride;
                rest /= cut;
                stride *= whole;
            }
            bytes.extend(&self.bytes[from * item..(from + 1) * item]);
        }
        Self {
            dtype: self.dtype,
            shape,
            bytes,
        }
    }

    /// Entry `at` of the first axis, its rows `from..to`.
    fn rows(&self, at: usize, from: usize, to: usize) -> Self {
        let row = self.shape[2] * self.dtype.bitsize() / 8;
        let start = at * self.shape[1] * row;
        Self {
            dtype: self.dtype,
            shape: vec![to - from, self.shape[2]],
            bytes: self.bytes[start + from * row..start + to * row].to_vec(),
        }
    }
}

/// `experts.gate_up_proj` and `experts.down_proj` to one tensor an expert.
fn unfuse(tensors: Tensors) -> Tensors {
    let mut out = Tensors::new();
    for (name, tensor) in tensors {
        if let Some(path) = name.strip_suffix("gate_up_proj").filter(|p| p.ends_with("experts.")) {
            let (experts, rows) = (tensor.shape[0], tensor.shape[1]);
            for e in 0..experts {
                out.insert(format!("{path}{e}.gate_proj.weight"), tensor.rows(e, 0, rows / 2));
                out.insert(format!("{path}{e}.up_proj.weight"), tensor.rows(e, rows / 2, rows));
            }
        } else if let Some(path) = name.strip_suffix("down_proj").filter(|p| p.ends_with("experts.")) {
            for e in 0..tensor.shape[0] {
                out.insert(
                    format!("{path}{e}.down_proj.weight"),
                    tensor.rows(e, 0, tensor.shape[1]),
                );
            }
        } else {
            out.insert(name, tensor);
        }
    }
    out
}

/// The object or list a JSON pointer's last key belongs to, made on the way where it is missing.
fn holder<'v>(value: &'v mut Value, pointer: &str) -> (&'v mut Value, String) {
    let mut keys: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|k| k.replace("~1", "/").replace("~0", "~"))
        .collect();
    let last = keys.pop().unwrap();
    let mut at = value;
    for key in keys {
        at = match at {
            Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
            other => other.as_object_mut().unwrap().entry(key).or_insert_with(|| json!({})),
        };
    }
    (at, last)
}

fn pattern(regex: &str) -> Regex {
    Regex::new(regex).unwrap_or_else(|e| panic!("{regex}: {e}"))
}

/// Python's `\1` and `\g<1>` as this library writes them.
fn replacement(to: &str) -> String {
    let named = pattern(r"\\g<(\w+)>")
        .replace_all(&to.replace('$', "$$"), "$${$1}")
        .into_owned();
    pattern(r"\\(\d+)").replace_all(&named, "$${$1}").into_owned()
}

fn dtype(name: &str) -> Dtype {
    serde_json::from_value(name.into()).unwrap()
}
