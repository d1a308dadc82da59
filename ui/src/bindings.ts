// Generated from src-tauri/src/ipc: npm run bindings

/**
 * A failure as the window sees it.
 */
export type AppError = { 
/**
 * Stable name of the kind, in snake case.
 */
kind: string, 
/**
 * What happened.
 */
message: string, 
/**
 * What to do about it.
 */
hint: string | null, };

/**
 * A chat in the list.
 */
export type ChatSummary = { 
/**
 * Its id.
 */
id: number, 
/**
 * Its title; made from the first message until renamed.
 */
title: string, 
/**
 * Unix milliseconds.
 */
createdAt: number, 
/**
 * Unix milliseconds of the last message.
 */
updatedAt: number, 
/**
 * Whether it stays at the top of the list.
 */
pinned: boolean, 
/**
 * Words that the person gave it.
 */
tags: Array<string>, };

/**
 * A chat with its messages.
 */
export type Chat = { 
/**
 * The list entry.
 */
summary: ChatSummary, 
/**
 * The branch that is shown, oldest first.
 */
messages: Array<Message>, 
/**
 * What holds for this chat alone.
 */
config: ChatConfig, 
/**
 * What was written and not sent.
 */
draft: string, };

/**
 * Who said a message.
 */
export type Role = "system" | "user" | "assistant";

/**
 * How a message stands.
 */
export type MessageStatus = "streaming" | "complete" | "length" | "stopped" | "failed" | "interrupted";

/**
 * One message.
 */
export type Message = { 
/**
 * Its id.
 */
id: number, 
/**
 * Its chat.
 */
chatId: number, 
/**
 * Who said it.
 */
role: Role, 
/**
 * Markdown.
 */
content: string, 
/**
 * The thinking block, if there was one.
 */
reasoning: string | null, 
/**
 * How it stands.
 */
status: MessageStatus, 
/**
 * Unix milliseconds.
 */
createdAt: number, 
/**
 * Figures of the generation; assistant messages only.
 */
run: Run | null, 
/**
 * Why it failed, if it did.
 */
error: AppError | null, 
/**
 * All versions of this message in the order they were made, itself among them.
 */
versions: Array<number>, 
/**
 * Whether the reply broke off and can go on from there.
 */
canContinue: boolean, };

/**
 * Speculation as asked for.
 */
export type SpeculationChoice = { "mode": "off" } | { "mode": "auto" } | { "mode": "block", 
/**
 * 2..=16, bonus included.
 */
size: number, };

/**
 * Figures of one generation: what the engine did, not what was asked for.
 */
export type Run = { 
/**
 * Display name of the target.
 */
model: string, 
/**
 * Whether the MTP decoder ran.
 */
speculating: boolean, 
/**
 * Why it did not, or why it ran to no avail.
 */
reason: string | null, 
/**
 * Tokens verified a round, bonus included; 1 when off.
 */
blockSize: number, 
/**
 * How the drafter was wired, where there is a choice.
 */
wiring: string | null, 
/**
 * Prompt tokens.
 */
promptTokens: number, 
/**
 * Generated tokens.
 */
tokens: number, 
/**
 * Milliseconds.
 */
prefillMs: number, 
/**
 * Milliseconds to the first token.
 */
ttftMs: number, 
/**
 * Milliseconds from the first token to the last.
 */
decodeMs: number, 
/**
 * Decode rate, prefill apart.
 */
tokensPerSecond: number, 
/**
 * Rounds.
 */
rounds: number, 
/**
 * Drafts proposed.
 */
drafted: number, 
/**
 * Drafts kept.
 */
accepted: number, 
/**
 * 0..=1.
 */
acceptanceRate: number, 
/**
 * Tokens by rounds.
 */
tokensPerRound: number, 
/**
 * For each draft position: kept by proposed.
 */
acceptanceByPosition: Array<number>, 
/**
 * Accepted drafts of each round, in order.
 */
acceptedPerRound: Array<number>, 
/**
 * The seed that reproduces it. Below 2^53.
 */
seed: number, };

/**
 * Options of one message.
 */
export type TurnOptions = { 
/**
 * Speculation for this reply.
 */
speculation: SpeculationChoice, 
/**
 * 0 is greedy; without a value the model's default.
 */
temperature: number | null, 
/**
 * Without a value the model's default.
 */
topP: number | null, 
/**
 * Without a value the model's default.
 */
topK: number | null, 
/**
 * Without a value the model's default.
 */
minP: number | null, 
/**
 * Without a value a fresh one. Below 2^53.
 */
seed: number | null, 
/**
 * Most tokens of the reply; without a value, what the context holds.
 */
maxTokens: number | null, 
/**
 * The template's thinking switch; without a value the template decides.
 */
thinking: boolean | null, };

/**
 * What a turn tells the window, in order: `started`, `prefill`*, `delta`*, then `done` or `failed`.
 */
export type TurnEvent = { "type": "started", 
/**
 * The chat, new or not.
 */
chat: ChatSummary, 
/**
 * The person's message.
 */
user: Message, 
/**
 * The reply, empty as yet.
 */
assistant: Message, } | { "type": "prefill", 
/**
 * Tokens read.
 */
done: number, 
/**
 * Tokens in all.
 */
total: number, } | { "type": "delta", 
/**
 * New text of the thinking block.
 */
reasoning: string, 
/**
 * New text of the answer.
 */
answer: string, 
/**
 * Figures up to now.
 */
run: Run, } | { "type": "done", 
/**
 * The stored reply.
 */
message: Message, 
/**
 * The chat, with its new title and time.
 */
chat: ChatSummary, } | { "type": "failed", 
/**
 * Why.
 */
error: AppError, 
/**
 * The stored reply, if one was begun.
 */
message: Message | null, };

/**
 * A model that can be loaded.
 */
export type LocalModel = { 
/**
 * `builtin` or the target's folder.
 */
id: string, 
/**
 * Display name.
 */
name: string, 
/**
 * The target's folder.
 */
path: string, 
/**
 * The drafter's folder, if it is one of its own.
 */
drafterPath: string | null, 
/**
 * One plain sentence about it, e.g. that it is a small demonstration model.
 */
note: string | null, 
/**
 * Bytes on disk, both parts.
 */
bytes: number, };

/**
 * What is loaded now.
 */
export type ModelStatus = { "state": "none" } | { "state": "loading", 
/**
 * What.
 */
model: LocalModel, } | { "state": "ready", 
/**
 * What.
 */
model: LocalModel, 
/**
 * Family name.
 */
family: string, 
/**
 * Whether it can speculate.
 */
canSpeculate: boolean, 
/**
 * Where the head was found, or why there is none.
 */
speculationNote: string, 
/**
 * The drafter's default block size; 1 without one.
 */
defaultBlockSize: number, 
/**
 * Tokens the context holds.
 */
context: number, 
/**
 * `cpu`, `metal` or `cuda`.
 */
device: string, 
/**
 * Activation type.
 */
dtype: string, 
/**
 * Milliseconds.
 */
loadMs: number, 
/**
 * Bytes held.
 */
memoryBytes: number, 
/**
 * Oddities of the checkpoint.
 */
warnings: Array<string>, 
/**
 * The checkpoint's sampling defaults.
 */
defaults: SamplingDefaults, } | { "state": "failed", 
/**
 * What.
 */
model: LocalModel, 
/**
 * Why.
 */
error: AppError, };

/**
 * A checkpoint's sampling defaults.
 */
export type SamplingDefaults = { 
/**
 * 0 is greedy.
 */
temperature: number, 
/**
 * Off at 1.
 */
topP: number, 
/**
 * Off at 0.
 */
topK: number, 
/**
 * Off at 0.
 */
minP: number, };

/**
 * What the person chose; kept in the database.
 */
export type Settings = { 
/**
 * Options of the next message.
 */
options: TurnOptions, 
/**
 * `system`, `light` or `dark`.
 */
theme: string, 
/**
 * Whether the first-run explanation was closed.
 */
welcomed: boolean, 
/**
 * Whether the side bar is open.
 */
sidebar: boolean, 
/**
 * `builtin` or a folder, loaded at start.
 */
model: string, 
/**
 * Drafter folder for `model`, if it is one of its own.
 */
drafter: string | null, 
/**
 * Named configurations for chats.
 */
presets: Array<Preset>, };

/**
 * Whether something of this size fits.
 */
export type Verdict = "fits" | "tight" | "tooLarge" | "unknown";

/**
 * A need against what the machine has.
 */
export type Need = { 
/**
 * The comparison.
 */
verdict: Verdict, 
/**
 * Bytes needed; without a value not known.
 */
bytes: number | null, 
/**
 * Bytes free now.
 */
free: number | null, 
/**
 * Bytes in all.
 */
total: number | null, };

/**
 * The machine, as far as its numbers can be read.
 */
export type Machine = { 
/**
 * Bytes of memory in all.
 */
memoryTotal: number | null, 
/**
 * Bytes of memory that programs could take now.
 */
memoryFree: number | null, 
/**
 * Bytes free where downloads go.
 */
diskFree: number | null, 
/**
 * Where downloads go.
 */
cacheDir: string, 
/**
 * Whether the environment forbids the network.
 */
offline: boolean, };

/**
 * A part of what is wanted: one repository at one revision.
 */
export type WantedPart = { 
/**
 * `OWNER/NAME`, or a URL of it.
 */
repo: string, 
/**
 * Branch, tag or commit; without one the main branch.
 */
revision: string | null, 
/**
 * Patterns over paths; none means what the loader needs.
 */
include: Array<string>, 
/**
 * Patterns over paths to leave out.
 */
exclude: Array<string>, 
/**
 * Only the MTP head's tensors, cut out of the weight files by byte range.
 */
headOnly: boolean, };

/**
 * Something to download: a target, or a target and its drafter.
 */
export type Wanted = { 
/**
 * Display name.
 */
name: string, 
/**
 * The target first, then its drafter.
 */
parts: Array<WantedPart>, 
/**
 * Bytes of memory that it needs when loaded, if known beforehand.
 */
memoryBytes: number | null, };

/**
 * A pair of the catalogue.
 */
export type CatalogPair = { 
/**
 * Its id in the catalogue.
 */
id: string, 
/**
 * What to download.
 */
wanted: Wanted, 
/**
 * A sentence about it.
 */
note: string | null, 
/**
 * Quantization in words, where stated.
 */
quantization: string | null, 
/**
 * Its licence, where stated.
 */
licence: string | null, 
/**
 * Bytes to download, where the catalogue knows them.
 */
downloadBytes: number | null, 
/**
 * Whether sizes and revisions were checked against the hub.
 */
verified: boolean, 
/**
 * The one for this machine; at most one.
 */
recommended: boolean, 
/**
 * Against the machine's memory.
 */
memory: Need, 
/**
 * Against the disk.
 */
disk: Need, 
/**
 * The pair on disk, whole.
 */
installed: LocalModel | null, };

/**
 * What can be downloaded by one click.
 */
export type CatalogView = { 
/**
 * The machine they are compared with.
 */
machine: Machine, 
/**
 * The recommended one first.
 */
pairs: Array<CatalogPair>, };

/**
 * A file of a plan.
 */
export type PlannedFile = { 
/**
 * Path in the repository.
 */
path: string, 
/**
 * Its bytes.
 */
bytes: number, 
/**
 * Bytes of it that are here already.
 */
there: number, };

/**
 * One repository of a plan.
 */
export type PlannedPart = { 
/**
 * `OWNER/NAME`.
 */
repo: string, 
/**
 * What the revision stands for now.
 */
commit: string, 
/**
 * Only the head, by byte range.
 */
headOnly: boolean, 
/**
 * What is fetched.
 */
files: Array<PlannedFile>, };

/**
 * What a download would fetch, pinned to commits.
 */
export type DownloadPlan = { 
/**
 * To start it by.
 */
id: string, 
/**
 * What was asked for.
 */
wanted: Wanted, 
/**
 * The target first.
 */
parts: Array<PlannedPart>, 
/**
 * Bytes in all.
 */
bytes: number, 
/**
 * Bytes that are here already.
 */
there: number, 
/**
 * Against the memory.
 */
memory: Need, 
/**
 * What is still to fetch, against the disk.
 */
disk: Need, };

/**
 * How a download stands.
 */
export type DownloadPhase = { "phase": "planning" } | { "phase": "transferring" } | { "phase": "waiting", 
/**
 * For what.
 */
reason: WaitReason, 
/**
 * Seconds to the next attempt, where known.
 */
seconds: number | null, } | { "phase": "verifying" } | { "phase": "paused" } | { "phase": "interrupted" } | { "phase": "failed", 
/**
 * Why.
 */
error: AppError, } | { "phase": "done", 
/**
 * What can be loaded; without one the files are no model that runs here.
 */
model: LocalModel | null, };

/**
 * What a download waits for.
 */
export type WaitReason = "network" | "server" | "writer";

/**
 * A download that was asked for.
 */
export type Download = { 
/**
 * Its id.
 */
id: string, 
/**
 * Display name.
 */
name: string, 
/**
 * What was asked for, pinned to commits once they are known.
 */
wanted: Wanted, 
/**
 * How it stands.
 */
state: DownloadPhase, 
/**
 * Bytes in all; without a value not known yet.
 */
bytes: number | null, 
/**
 * Bytes that are here.
 */
done: number, 
/**
 * Files in all.
 */
files: number, 
/**
 * Files that are whole.
 */
filesDone: number, 
/**
 * The file that is worked on.
 */
file: string | null, 
/**
 * Bytes a second, over the last seconds.
 */
speed: number | null, 
/**
 * Seconds that are left; without a value until the rate is steady.
 */
etaSeconds: number | null, 
/**
 * Load it when it is whole.
 */
thenChat: boolean, };

/**
 * What a cancelled download left behind.
 */
export type Cancelled = { 
/**
 * Bytes that are kept, and used if it is started again.
 */
kept: number, };

/**
 * A repository that a search found.
 */
export type FoundRepo = { 
/**
 * `OWNER/NAME`.
 */
repo: string, 
/**
 * Downloads, as the hub counts them.
 */
downloads: number | null, 
/**
 * Whether a licence has to be accepted first.
 */
gated: boolean, 
/**
 * Kind and format, as the hub tags it.
 */
tags: Array<string>, };

/**
 * Where the access token comes from.
 */
export type TokenSource = "none" | "environment" | "hubFile" | "keychain" | "file";

/**
 * What a checkpoint can be used as.
 */
export type ModelRole = "target" | "both" | "drafter" | "unknown";

/**
 * Where a checkpoint was found.
 */
export type ModelPlace = "builtin" | "cache" | "heads" | "folder";

/**
 * What keeps a checkpoint from loading.
 */
export type ModelHealth = "whole" | "incomplete" | "refused";

/**
 * A checkpoint on this machine.
 */
export type Shelved = { 
/**
 * To load it by; its drafter is the first of `drafters`.
 */
model: LocalModel, 
/**
 * What it can be used as.
 */
role: ModelRole, 
/**
 * Where it is.
 */
place: ModelPlace, 
/**
 * Whether it loads, as the loader itself says.
 */
health: ModelHealth, 
/**
 * Why it does not, one line each.
 */
problems: Array<AppError>, 
/**
 * Oddities that are no obstacle.
 */
warnings: Array<string>, 
/**
 * `OWNER/NAME`, if it is known where it comes from.
 */
repo: string | null, 
/**
 * Which commit of it.
 */
commit: string | null, 
/**
 * Family name.
 */
family: string | null, 
/**
 * Quantization in words.
 */
quantization: string | null, 
/**
 * Heads on this machine that go with it, the best first.
 */
drafters: Array<LocalModel>, 
/**
 * For a head: names of the targets here that it goes with.
 */
targets: Array<string>, };

/**
 * A place that is looked through.
 */
export type ModelFolder = { 
/**
 * Its path.
 */
path: string, 
/**
 * Whether it is there: a disk may be away.
 */
present: boolean, 
/**
 * Whether the person added it, and may take it away.
 */
added: boolean, 
/**
 * Checkpoints found in it.
 */
models: number, };

/**
 * All models on this machine.
 */
export type ShelfView = { 
/**
 * Chat models first.
 */
models: Array<Shelved>, 
/**
 * Where was looked.
 */
folders: Array<ModelFolder>, 
/**
 * Bytes of all of them, each file counted once.
 */
bytes: number, };

/**
 * What deleting a checkpoint would free.
 */
export type Deletion = { 
/**
 * Bytes that the disk gets back.
 */
frees: number, 
/**
 * Bytes of it that something else uses, and that stay.
 */
shared: number, 
/**
 * Whether it lies in a folder that another program may count on.
 */
foreign: boolean, };

/**
 * What holds for one chat alone.
 */
export type ChatConfig = { 
/**
 * Instructions before the first message; empty for none.
 */
systemPrompt: string, 
/**
 * The chat's own options; without them the settings' options hold.
 */
options: TurnOptions | null, };

/**
 * A configuration with a name, to be used again.
 */
export type Preset = { 
/**
 * Its name.
 */
name: string, 
/**
 * What it sets.
 */
config: ChatConfig, };

/**
 * A stretch of text around what was searched for.
 */
export type SnippetPiece = { 
/**
 * The text.
 */
text: string, 
/**
 * Whether it is what was searched for.
 */
hit: boolean, };

/**
 * A message that was found.
 */
export type SearchHit = { 
/**
 * Its chat.
 */
chatId: number, 
/**
 * The chat's title.
 */
title: string, 
/**
 * The message; it may lie on a branch that is not shown.
 */
messageId: number, 
/**
 * Who said it.
 */
role: Role, 
/**
 * Unix milliseconds.
 */
createdAt: number, 
/**
 * The words and what is around the first of them.
 */
pieces: Array<SnippetPiece>, };

/**
 * What one round added to an answer.
 */
export type RoundText = { 
/**
 * The length of its text, in UTF-16 units as JavaScript counts them.
 */
length: number, 
/**
 * Its tokens; none if it is not known how the text came.
 */
tokens: number, 
/**
 * Drafts proposed.
 */
drafted: number, 
/**
 * Drafts kept; the last token of the round is the model's own.
 */
accepted: number, };

/**
 * A text file that goes with a message.
 */
export type Attachment = { 
/**
 * The file's name, without its folder.
 */
name: string, 
/**
 * All of it.
 */
text: string, 
/**
 * Its length for the model that is loaded, if that could be asked.
 */
tokens: number | null, };

/**
 * What chats can be written as.
 */
export type ExportFormat = "markdown" | "json" | "html";

/**
 * What an import brought.
 */
export type Imported = { 
/**
 * The new chats.
 */
chats: Array<ChatSummary>, 
/**
 * One sentence for each chat that could not be read.
 */
leftOut: Array<string>, };
