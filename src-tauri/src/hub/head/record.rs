//! What a head's folder says of itself.

use serde_json::{Value, json};

use super::{HeadPlan, Output};

pub(super) const NAME: &str = "slipstream-head.json";

const NOTE: &str = "`checked` files have the hash that the hub names for them. The others are made of parts of files, of \
                    which there is no hash: `sha256` is of what was written.";

/// The file's text; of each output its SHA-256, and whether the hub's hash was compared.
pub(super) fn text(plan: &HeadPlan, written: &[(&Output, String, bool)]) -> String {
    let files: Vec<Value> = written
        .iter()
        .map(|(output, sha256, is_checked)| {
            let from: Vec<Value> = output
                .pieces
                .iter()
                .map(|piece| {
                    json!({
                        "path": piece.file.path,
                        "hash": piece.file.etag,
                        "bytes": [piece.bytes.start, piece.bytes.end],
                    })
                })
                .collect();
            json!({
                "path": output.path,
                "bytes": output.len(),
                "sha256": sha256,
                "checked": is_checked,
                "from": from,
            })
        })
        .collect();
    let record = json!({
        "note": NOTE,
        "made_by": concat!("slipstream ", env!("CARGO_PKG_VERSION")),
        "repo": plan.repo,
        "commit": plan.commit,
        "tensors": plan.tensors,
        "files": files,
    });
    format!("{record:#}\n")
}
