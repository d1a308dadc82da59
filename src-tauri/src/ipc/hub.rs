//! Models on this machine, in the catalogue and on their way here.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{AppError, LocalModel, PairVerdict};

/// Whether something of this size fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// With room to spare.
    Fits,
    /// Only when other programs make room.
    Tight,
    /// Not at all.
    TooLarge,
    /// The machine's own number could not be read, or the need is not known.
    Unknown,
}

/// A need against what the machine has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Need {
    /// The comparison.
    pub verdict: Verdict,
    /// Bytes needed; without a value not known.
    pub bytes: Option<f64>,
    /// Bytes free now.
    pub free: Option<f64>,
    /// Bytes in all.
    pub total: Option<f64>,
    /// Bytes that the person lets models have, if less than the need.
    pub limit: Option<f64>,
}

/// The machine, as far as its numbers can be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Bytes of memory in all.
    pub memory_total: Option<f64>,
    /// Bytes of memory that programs could take now.
    pub memory_free: Option<f64>,
    /// Bytes free where downloads go.
    pub disk_free: Option<f64>,
    /// Where downloads go.
    pub cache_dir: String,
    /// Whether the environment forbids the network.
    pub offline: bool,
}

/// A part of what is wanted: one repository at one revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub struct WantedPart {
    /// `OWNER/NAME`, or a URL of it.
    pub repo: String,
    /// Branch, tag or commit; without one the main branch.
    pub revision: Option<String>,
    /// What was asked for, where `revision` is the commit that it led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub asked: Option<String>,
    /// Patterns over paths; none means what the loader needs.
    pub include: Vec<String>,
    /// Patterns over paths to leave out.
    pub exclude: Vec<String>,
    /// Only the MTP head's tensors, cut out of the weight files by byte range.
    pub head_only: bool,
}

/// Something to download: a target, or a target and its drafter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// Display name.
    pub name: String,
    /// The target first, then its drafter.
    pub parts: Vec<WantedPart>,
}

/// A pair of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct CatalogPair {
    /// Its id in the catalogue.
    pub id: String,
    /// What to download.
    pub wanted: Wanted,
    /// A sentence about it.
    pub note: Option<String>,
    /// Quantization in words, where stated.
    pub quantization: Option<String>,
    /// Its licence, where stated.
    pub licence: Option<String>,
    /// Bytes to download, where the catalogue knows them.
    pub download_bytes: Option<f64>,
    /// Whether sizes and revisions were checked against the hub.
    pub verified: bool,
    /// The one for this machine; at most one.
    pub recommended: bool,
    /// Against the machine's memory.
    pub memory: Need,
    /// Against the disk.
    pub disk: Need,
    /// The pair on disk, whole.
    pub installed: Option<LocalModel>,
    /// What speculation was measured to be worth for it here.
    pub measured: Option<PairVerdict>,
}

/// What can be downloaded by one click.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct CatalogView {
    /// The machine they are compared with.
    pub machine: Machine,
    /// The recommended one first.
    pub pairs: Vec<CatalogPair>,
}

/// A file of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFile {
    /// Path in the repository.
    pub path: String,
    /// Its bytes.
    pub bytes: f64,
    /// Bytes of it that are here already.
    pub there: f64,
}

/// One repository of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPart {
    /// `OWNER/NAME`.
    pub repo: String,
    /// What the revision stands for now.
    pub commit: String,
    /// Only the head, by byte range.
    pub head_only: bool,
    /// Bytes of the weights that a head alone stands for and that stay where they are.
    pub in_place_of: Option<f64>,
    /// What is fetched.
    pub files: Vec<PlannedFile>,
}

/// What a download would fetch, pinned to commits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct DownloadPlan {
    /// To start it by.
    pub id: String,
    /// What was asked for.
    pub wanted: Wanted,
    /// The target first.
    pub parts: Vec<PlannedPart>,
    /// Bytes in all.
    pub bytes: f64,
    /// Bytes that are here already.
    pub there: f64,
    /// Against the memory.
    pub memory: Need,
    /// What is still to fetch, against the disk.
    pub disk: Need,
}

/// How a download stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", tag = "phase")]
pub enum DownloadPhase {
    /// Asking the hub what there is.
    Planning,
    /// Bytes arrive.
    Transferring,
    /// Bytes do not arrive, and it goes on by itself.
    Waiting {
        /// For what.
        reason: WaitReason,
        /// Seconds to the next attempt, where known.
        seconds: Option<f64>,
    },
    /// The hash is being computed.
    Verifying,
    /// Stopped by the person; what there is is kept.
    Paused,
    /// The app ended under it; what there is is kept.
    Interrupted,
    /// It does not go on by itself.
    Failed {
        /// Why.
        error: AppError,
    },
    /// All files are here and whole.
    Done {
        /// What can be chatted with; without one it is no chat model.
        model: Option<LocalModel>,
        /// What the files make.
        fetched: Fetched,
    },
}

/// What the files of a download make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Fetched {
    /// A chat model.
    Model,
    /// A draft head.
    Head,
    /// Neither: the files that were asked for.
    Files,
}

/// What a download waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum WaitReason {
    /// A way to the server.
    Network,
    /// The server, which asked for patience or failed.
    Server,
    /// Another program that writes the same file.
    Writer,
}

/// A download that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Download {
    /// Its id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// What was asked for, pinned to commits once they are known.
    pub wanted: Wanted,
    /// How it stands.
    pub state: DownloadPhase,
    /// Bytes in all; without a value not known yet.
    pub bytes: Option<f64>,
    /// Bytes that are here.
    pub done: f64,
    /// Files in all.
    pub files: u32,
    /// Files that are whole.
    pub files_done: u32,
    /// The file that is worked on.
    pub file: Option<String>,
    /// Bytes a second, over the last seconds.
    pub speed: Option<f64>,
    /// Seconds that are left; without a value until the rate is steady.
    pub eta_seconds: Option<f64>,
    /// Load it when it is whole.
    pub then_chat: bool,
}

/// What a cancelled download left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Bytes that are kept, and used if it is started again.
    pub kept: f64,
}

/// A repository that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct FoundRepo {
    /// `OWNER/NAME`.
    pub repo: String,
    /// Downloads, as the hub counts them.
    pub downloads: Option<f64>,
    /// Whether a licence has to be accepted first.
    pub gated: bool,
    /// Kind and format, as the hub tags it.
    pub tags: Vec<String>,
}

/// Where the access token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum TokenSource {
    /// There is none.
    None,
    /// `HF_TOKEN`; it wins over what is stored here.
    Environment,
    /// The token file of the Hugging Face tools.
    HubFile,
    /// The system's keychain.
    Keychain,
    /// A file of this app that only you may read: there is no keychain.
    File,
}

/// Whether there is an access token, without a character of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    /// Where the one that is used comes from.
    pub source: TokenSource,
    /// Whether the environment forbids to use one.
    pub switched_off: bool,
    /// Places that hold something unusable, or cannot be read.
    pub problems: Vec<String>,
}

/// What a checkpoint can be used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ModelRole {
    /// A chat model.
    Target,
    /// A chat model with a head of its own.
    Both,
    /// A draft head; no chat model.
    Drafter,
    /// It could not be told.
    Unknown,
}

/// Where a checkpoint was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ModelPlace {
    /// It comes with the app.
    Builtin,
    /// The Hugging Face cache.
    Cache,
    /// A head that the app cut out of a larger checkpoint.
    Heads,
    /// A folder of the person or of another program.
    Folder,
}

/// What keeps a checkpoint from loading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ModelHealth {
    /// It loads.
    Whole,
    /// Something is missing that can be fetched.
    Incomplete,
    /// It is no model of this app, or damaged.
    Refused,
}

/// A checkpoint on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Shelved {
    /// To load it by; its drafter is the first of `drafters`.
    pub model: LocalModel,
    /// What it can be used as.
    pub role: ModelRole,
    /// Where it is.
    pub place: ModelPlace,
    /// Whether it loads, as the loader itself says.
    pub health: ModelHealth,
    /// Why it does not, one line each.
    pub problems: Vec<AppError>,
    /// Oddities that are no obstacle.
    pub warnings: Vec<String>,
    /// `OWNER/NAME`, if it is known where it comes from.
    pub repo: Option<String>,
    /// Which commit of it.
    pub commit: Option<String>,
    /// Family name.
    pub family: Option<String>,
    /// Quantization in words.
    pub quantization: Option<String>,
    /// Heads on this machine that go with it, the best first.
    pub drafters: Vec<LocalModel>,
    /// For a head: names of the targets here that it goes with.
    pub targets: Vec<String>,
    /// Against the machine's memory, with the best head.
    pub memory: Need,
    /// What speculation was measured to be worth here, by its heads.
    pub measured: Vec<PairVerdict>,
}

/// A place that is looked through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ModelFolder {
    /// Its path.
    pub path: String,
    /// Whether it is there: a disk may be away.
    pub present: bool,
    /// Whether the person added it, and may take it away.
    pub added: bool,
    /// Checkpoints found in it.
    pub models: u32,
}

/// All models on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ShelfView {
    /// Chat models first.
    pub models: Vec<Shelved>,
    /// Where was looked.
    pub folders: Vec<ModelFolder>,
    /// Bytes of all of them, each file counted once.
    pub bytes: f64,
}

/// All models: those on this machine and those that can be downloaded by one click.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ModelsView {
    /// On this machine.
    pub shelf: ShelfView,
    /// The catalogue, or why there is none.
    pub catalog: Option<CatalogView>,
    /// Why the catalogue cannot be shown.
    pub catalog_error: Option<AppError>,
}

/// What deleting a checkpoint would free.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// Bytes that the disk gets back.
    pub frees: f64,
    /// Bytes of it that something else uses, and that stay.
    pub shared: f64,
    /// Whether it lies in a folder that another program may count on.
    pub foreign: bool,
}
