//! Which tensors are the head's, and what is to be fetched of which file.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::Value;

use super::header::{self, Header};
use super::{HeadPlan, Output, Piece, Source};
use crate::hub::select::is_allowed;
use crate::hub::{HubError, Listing, PartFile};

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Folder in which some publishers put the head, under names of their own.
const FOLDER: &str = "mtp/";
/// Larger ones are not read to memory.
const MAX_JSON: u64 = 25_000_000;

/// One request each: a head lies together, and one that does not is no head of a model that is known.
const MAX_PIECES: usize = 2000;

/// Whether a tensor belongs to a head, whatever the model around it is called.
fn is_heads(tensor: &str) -> bool {
    tensor.starts_with("mtp.") || tensor.contains(".mtp.")
}

/// Looks in the files that the index names for a head, then in files beside it, then in the folder `mtp`, and last in
/// all that the index names without a word of a head.
pub(super) async fn plan<S: Source>(source: &S, listing: &Listing, root: &Path) -> Result<HeadPlan, HubError> {
    let no_head = |message: &str| HubError::NoHead {
        repo: listing.repo.to_string(),
        message: message.to_owned(),
    };
    let config = part(listing, CONFIG).ok_or_else(|| no_head("it has no `config.json`"))?;
    let weights: Vec<PartFile> = listing
        .files
        .iter()
        .filter(|file| file.path.ends_with(".safetensors") && is_allowed(&file.path))
        .filter(|file| file.path != "consolidated.safetensors")
        .map(|file| listing.part_file(file))
        .collect();
    let (top, below): (Vec<_>, Vec<_>) = weights.iter().partition(|file| !file.path.contains('/'));
    let folder: Vec<&PartFile> = below
        .into_iter()
        .filter(|file| file.path.strip_prefix(FOLDER).is_some_and(|name| !name.contains('/')))
        .collect();
    let index = read_index(source, listing).await?;
    let named: BTreeSet<&str> = index.values().map(String::as_str).collect();
    let told: BTreeSet<&str> = (index.iter())
        .filter(|(tensor, _)| is_heads(tensor))
        .map(|(_, file)| file.as_str())
        .collect();
    let (own, beside): (Vec<_>, Vec<_>) = top.into_iter().partition(|file| named.contains(file.path.as_str()));

    let mut outputs = vec![output_of(CONFIG, config)?];
    let mut headers = Vec::new();
    for file in &told {
        let file = own
            .iter()
            .find(|own| own.path == **file)
            .ok_or_else(|| no_head(&format!("its index puts the head in `{file}`, which is not there")))?;
        headers.push(header::read(source, file).await?);
    }
    let lost = index
        .iter()
        .filter(|(tensor, _)| is_heads(tensor))
        .find(|(tensor, file)| {
            let header = headers.iter().find(|header| header.file.path == **file);
            header.is_none_or(|header| !header.tensors.contains_key(*tensor))
        });
    if let Some((tensor, file)) = lost {
        return Err(no_head(&format!(
            "its index puts `{tensor}` in `{file}`, which does not hold it"
        )));
    }
    if headers.is_empty() {
        headers = with_head(source, &beside).await?;
    }
    let tensors;
    if headers.is_empty() && !folder.is_empty() {
        tensors = whole_folder(source, listing, &folder, &mut outputs).await?;
    } else {
        if headers.is_empty() {
            headers = with_head(source, &own).await?;
        }
        if headers.is_empty() {
            return Err(no_head(
                "none of its weight files holds tensors named `mtp.…`; if it is a drafter itself, download it whole",
            ));
        }
        let (output, count) = weights_of(headers)?;
        outputs.push(output);
        tensors = count;
    }
    Ok(HeadPlan {
        repo: listing.repo.clone(),
        commit: listing.commit.clone(),
        outputs,
        tensors,
        in_place_of: weights.iter().filter_map(|file| file.size).sum(),
        root: root.to_owned(),
    })
}

fn part(listing: &Listing, path: &str) -> Option<PartFile> {
    listing.file(path).map(|file| listing.part_file(file))
}

fn output_of(path: &str, file: PartFile) -> Result<Output, HubError> {
    if file.size.is_none() {
        let message = format!("`{}`: the hub does not tell its length", file.path);
        return Err(header::no_head(&file, message));
    }
    Ok(Output::whole(path, file))
}

/// The headers of those files that hold a head's tensors.
async fn with_head<S: Source>(source: &S, files: &[&PartFile]) -> Result<Vec<Header>, HubError> {
    let mut headers = Vec::new();
    for file in files {
        let header = header::read(source, file).await?;
        if header.tensors.keys().any(|tensor| is_heads(tensor)) {
            headers.push(header);
        }
    }
    Ok(headers)
}

/// All of the folder `mtp`, in which names tell nothing.
async fn whole_folder<S: Source>(
    source: &S,
    listing: &Listing,
    folder: &[&PartFile],
    outputs: &mut Vec<Output>,
) -> Result<usize, HubError> {
    let mut tensors = 0;
    for file in folder {
        tensors += header::read(source, file).await?.tensors.len();
        outputs.push(output_of(&file.path, (*file).clone())?);
    }
    let config = format!("{FOLDER}{CONFIG}");
    if let Some(file) = part(listing, &config) {
        outputs.push(output_of(&config, file)?);
    }
    Ok(tensors)
}

/// Tensor name to file name; empty without an index.
async fn read_index<S: Source>(source: &S, listing: &Listing) -> Result<BTreeMap<String, String>, HubError> {
    let Some(file) = part(listing, INDEX) else {
        return Ok(BTreeMap::new());
    };
    let bad = |message: &str| header::no_head(&file, format!("`{INDEX}`: {message}"));
    let size = file
        .size
        .filter(|size| *size <= MAX_JSON)
        .ok_or_else(|| bad("its length is not plausible"))?;
    let bytes = header::all(source, &file, 0, size).await?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| bad(&e.to_string()))?;
    let map = value
        .get("weight_map")
        .and_then(Value::as_object)
        .ok_or_else(|| bad("it has no `weight_map`"))?;
    let pairs = map
        .iter()
        .map(|(tensor, file)| Some((tensor.clone(), file.as_str()?.to_owned())));
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| bad("a tensor names no file"))
}

/// A safetensors file of the head's tensors alone, and their number.
fn weights_of(headers: Vec<Header>) -> Result<(Output, usize), HubError> {
    if let [only] = &headers[..]
        && only.tensors.keys().all(|tensor| is_heads(tensor))
    {
        return Ok((output_of(WEIGHTS, only.file.clone())?, only.tensors.len()));
    }
    let mut chosen: Vec<(String, TensorInfo, usize)> = Vec::new();
    for (at, header) in headers.iter().enumerate() {
        let heads = header.tensors.iter().filter(|(tensor, _)| is_heads(tensor));
        chosen.extend(heads.map(|(tensor, info)| (tensor.clone(), info.clone(), at)));
    }
    // Wide elements first, as writers do, so that each tensor is aligned; then as they lie.
    chosen.sort_by_key(|(tensor, info, at)| {
        let width = std::cmp::Reverse(info.dtype.bitsize());
        (width, *at, info.data_offsets, tensor.clone())
    });
    let mut pieces: Vec<Piece> = Vec::new();
    let mut tensors: Vec<(String, TensorInfo)> = Vec::new();
    let (mut seen, mut end) = (HashSet::new(), 0);
    for (tensor, mut info, at) in chosen {
        let header = &headers[at];
        if !seen.insert(tensor.clone()) {
            return Err(header::no_head(
                &header.file,
                format!("`{tensor}` is in two of its files"),
            ));
        }
        let (from, to) = info.data_offsets;
        let bytes = header.start + from as u64..header.start + to as u64;
        info.data_offsets = (end, end + (to - from));
        end = info.data_offsets.1;
        tensors.push((tensor, info));
        match pieces.last_mut() {
            Some(last) if last.bytes.end == bytes.start && last.file.path == header.file.path => {
                last.bytes.end = bytes.end;
            }
            _ => pieces.push(Piece {
                file: header.file.clone(),
                bytes,
            }),
        }
    }
    pieces.retain(|piece| !piece.bytes.is_empty());
    if pieces.len() > MAX_PIECES {
        let message = format!(
            "it is in {} places, too many to fetch one by one; download it whole",
            pieces.len()
        );
        return Err(header::no_head(&headers[0].file, message));
    }
    let count = tensors.len();
    let output = Output {
        path: WEIGHTS.to_owned(),
        prefix: header_bytes(&headers, tensors).map_err(|e| header::no_head(&headers[0].file, e))?,
        pieces,
        etag: None,
    };
    Ok((output, count))
}

fn header_bytes(headers: &[Header], tensors: Vec<(String, TensorInfo)>) -> Result<Vec<u8>, String> {
    // The loader goes by what the original says of its layout. One converted file makes it a converted head there too.
    let formats: Vec<&String> = headers.iter().filter_map(|header| header.format.as_ref()).collect();
    let format = formats.iter().find(|format| **format == "mlx").or(formats.first());
    let said = format.map(|format| HashMap::from([("format".to_owned(), (*format).clone())]));
    let metadata = Metadata::new(said, tensors).map_err(|e| e.to_string())?;
    let mut text = serde_json::to_vec(&metadata).map_err(|e| e.to_string())?;
    // Data begins at a multiple of 8.
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    Ok(bytes)
}
