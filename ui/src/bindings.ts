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
 * How long a reply thought.
 */
export type Thought = { 
/**
 * Tokens that the model chose.
 */
tokens: number, 
/**
 * Milliseconds.
 */
ms: number, 
/**
 * Whether the model was still at it.
 */
open: boolean, 
/**
 * `budget` or `person`, where the model did not end it by itself.
 */
ended: string | null, };

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
 * How long it thought; `None` without thinking, and where that was not kept.
 */
thought: Thought | null, 
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
 * What speculation may do to the text.
 */
export type ExactnessChoice = "exact" | "fast";

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
 * `off`, `unavailable`, `fixed`, `on`, `parked` or `probing`; empty for replies of earlier versions.
 */
state: string, 
/**
 * The state in one plain sentence, with its numbers.
 */
sentence: string, 
/**
 * Why it did not, or why it ran to no avail.
 */
reason: string | null, 
/**
 * What speculation may have done to the text.
 */
exactness: ExactnessChoice, 
/**
 * What that rests on, in one plain sentence.
 */
exactnessSentence: string, 
/**
 * Tokens verified a round, bonus included, as it was last; 1 when off or parked.
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
 * Rounds with drafts; all rounds when off.
 */
rounds: number, 
/**
 * Rounds without drafts while it was on.
 */
plainRounds: number, 
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
 * Accepted drafts of each round with drafts, in order.
 */
acceptedPerRound: Array<number>, 
/**
 * Drafts of each of these rounds; empty for replies of earlier versions, whose rounds had `block_size - 1`.
 */
draftedPerRound: Array<number>, 
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
 * What it may do to the text.
 */
exactness: ExactnessChoice, 
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
thinking: boolean | null, 
/**
 * Tokens of thinking after which the model is made to answer; without a value it ends by itself.
 */
thinkingBudget: number | null, };

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
 * How long it thought up to now.
 */
thought: Thought | null, 
/**
 * Figures up to now, at most four times a second: they grow with the reply.
 */
run: Run | null, 
/**
 * How it came, at most four times a second and with the last text.
 */
origin: ProvenanceNews | null, } | { "type": "done", 
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
 * Whether there is a head, and whether it fits.
 */
speculating: Speculating, 
/**
 * Where the head was found, or why there is none that can be used.
 */
speculationNote: string, 
/**
 * What exact mode rests on here, in one plain sentence.
 */
exactnessNote: string, 
/**
 * Operations that exact mode runs row by row here.
 */
inParts: Array<string>, 
/**
 * Tokens of the largest block that is exact here.
 */
exactBlock: number, 
/**
 * Drafts a round that automatic depth begins with; 0 is parked.
 */
autoDepth: number, 
/**
 * What target passes cost here, by rows; empty where it was not measured.
 */
costs: Array<RowCost>, 
/**
 * One draft step, in milliseconds, where it was measured.
 */
draftMs: number | null, 
/**
 * The drafter's default block size; 1 without one.
 */
defaultBlockSize: number, 
/**
 * Whether it has thinking that can be ended.
 */
canThink: boolean, 
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
 * How keys and values are held.
 */
kv: KvChoice, 
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
 * Whether a loaded model can speculate.
 */
export type Speculating = "ready" | "unavailable" | "mismatch";

/**
 * What a target pass costs.
 */
export type RowCost = { 
/**
 * Tokens it runs.
 */
rows: number, 
/**
 * Milliseconds.
 */
ms: number, 
/**
 * In passes of one token.
 */
ratio: number, };

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
presets: Array<Preset>, 
/**
 * `system` or the tag of a language that the window has.
 */
language: string, 
/**
 * How the next load holds keys and values.
 */
kv: KvChoice, 
/**
 * Most memory for models, in billions of bytes; without a value what the machine lends.
 */
memoryLimitGb: number | null, 
/**
 * Whether Enter sends a message; else it is a new line, and Enter with Command or Control sends.
 */
enterSends: boolean, };

/**
 * How keys and values are held.
 */
export type KvChoice = "plain" | "eight" | "four";

/**
 * Where chats and settings are kept.
 */
export type DataFolder = { 
/**
 * The folder.
 */
path: string, 
/**
 * The environment variable that names another one.
 */
variable: string, 
/**
 * Whether it does so now.
 */
chosen: boolean, 
/**
 * Deleted chats that can still be taken back.
 */
deletedChats: number, };

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
total: number | null, 
/**
 * Bytes that the person lets models have, if less than the need.
 */
limit: number | null, };

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
 * What was asked for, where `revision` is the commit that it led to.
 */
asked?: string, 
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
parts: Array<WantedPart>, };

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
installed: LocalModel | null, 
/**
 * What speculation was measured to be worth for it here.
 */
measured: PairVerdict | null, };

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
 * Bytes of the weights that a head alone stands for and that stay where they are.
 */
inPlaceOf: number | null, 
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
 * What can be chatted with; without one it is no chat model.
 */
model: LocalModel | null, 
/**
 * What the files make.
 */
fetched: Fetched, };

/**
 * What the files of a download make.
 */
export type Fetched = "model" | "head" | "files";

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
 * Whether there is an access token, without a character of it.
 */
export type TokenView = { 
/**
 * Where the one that is used comes from.
 */
source: TokenSource, 
/**
 * Whether the environment forbids to use one.
 */
switchedOff: boolean, 
/**
 * Places that hold something unusable, or cannot be read.
 */
problems: Array<string>, };

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
targets: Array<string>, 
/**
 * Against the machine's memory, with the best head.
 */
memory: Need, 
/**
 * What speculation was measured to be worth here, by its heads.
 */
measured: Array<PairVerdict>, };

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
 * All models: those on this machine and those that can be downloaded by one click.
 */
export type ModelsView = { 
/**
 * On this machine.
 */
shelf: ShelfView, 
/**
 * The catalogue, or why there is none.
 */
catalog: CatalogView | null, 
/**
 * Why the catalogue cannot be shown.
 */
catalogError: AppError | null, };

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
 * Measurements of one quantity.
 */
export type Spread = { 
/**
 * The middle one.
 */
median: number, 
/**
 * The smallest.
 */
min: number, 
/**
 * The largest.
 */
max: number, 
/**
 * All of them, in the order in which they were measured.
 */
values: Array<number>, };

/**
 * What two sets of measurements allow to be said.
 */
export type Call = "higher" | "lower" | "noise" | "tooFew";

/**
 * The ratio of two medians.
 */
export type Ratio = { 
/**
 * First by second.
 */
value: number, 
/**
 * What the noise allows: 99 of 100 resamples from five measurements on, with three or four the extremes and as much
 * again; absent with fewer.
 */
low: number | null, 
/**
 * The other end.
 */
high: number | null, 
/**
 * What may be said.
 */
call: Call, };

/**
 * One of the two ways to run a request.
 */
export type Side = "off" | "on";

/**
 * What a whole round of so many rows costs: drafting, the check and the choices. Rounds of plain decoding are those of the
 * side or arm without speculation.
 */
export type Cost = { 
/**
 * Tokens checked at once; 1 is plain decoding.
 */
rows: number, 
/**
 * Rounds it was measured on.
 */
rounds: number, 
/**
 * Median milliseconds of a round.
 */
ms: number, 
/**
 * By those of a round of plain decoding; absent where that was not measured.
 */
ratio: number | null, };

/**
 * How often drafts were kept while the sequence had a certain length.
 */
export type ContextAcceptance = { 
/**
 * Tokens, from.
 */
from: number, 
/**
 * Up to, this one not included.
 */
to: number, 
/**
 * Drafts proposed.
 */
drafted: number, 
/**
 * Drafts kept.
 */
accepted: number, };

/**
 * A side's or a block size's figures over its repetitions.
 */
export type SideFigures = { 
/**
 * What ran: a block that was larger than what is exact here is told as it was cut.
 */
speculation: SpeculationChoice, 
/**
 * What was asked for and ran as this, where that is something else.
 */
asked: Array<SpeculationChoice>, 
/**
 * Whether the MTP decoder ran.
 */
speculating: boolean, 
/**
 * Why it did not.
 */
reason: string | null, 
/**
 * Decode rate; absent where runs were too short to have one.
 */
tokensPerSecond: Spread | null, 
/**
 * Milliseconds to the first token.
 */
ttftMs: Spread | null, 
/**
 * Milliseconds from the request to the last token.
 */
totalMs: Spread | null, 
/**
 * Tokens by rounds; 1 when off.
 */
tokensPerRound: number, 
/**
 * Kept by proposed; absent without drafts.
 */
acceptanceRate: number | null, 
/**
 * For each draft position: kept by proposed.
 */
acceptanceByPosition: Array<number>, };

/**
 * A token and its score.
 */
export type ScoredToken = { 
/**
 * Its id.
 */
token: number, 
/**
 * What it reads as.
 */
text: string, 
/**
 * The model's logit, before sampling settings.
 */
logit: number, };

/**
 * Where two texts part.
 */
export type Difference = { 
/**
 * Which side departed from the first run with speculation off; `off` when plain decoding does not repeat itself.
 */
side: Side, 
/**
 * Place of the first differing token in the reply, from 0.
 */
position: number, 
/**
 * The text both begin with, its end.
 */
before: string, 
/**
 * How the first run goes on.
 */
expected: string, 
/**
 * How the departing one goes on.
 */
found: string, 
/**
 * Ids of the first run from there; the first is absent where the run had ended.
 */
expectedTokens: Array<number>, 
/**
 * Ids of the departing one.
 */
foundTokens: Array<number>, 
/**
 * The model's best token there, run plainly; absent where it could not be asked.
 */
first: ScoredToken | null, 
/**
 * The one after it.
 */
second: ScoredToken | null, 
/**
 * How far the best is ahead.
 */
margin: number | null, 
/**
 * The first token of the first run from there, with its score; absent where that run had ended.
 */
ofExpected: ScoredToken | null, 
/**
 * Likewise of the departing one.
 */
ofFound: ScoredToken | null, 
/**
 * How far the scores of these two are apart: of the first run's token less that of the other.
 */
apart: number | null, 
/**
 * Operations that do not give a block the bits of single rows on this device and were run at once all the same.
 */
suspects: Array<string>, 
/**
 * What the self-check said when it was run anew because of this; absent in fast mode, where plain decoding does not
 * repeat itself, and where it could not be run.
 */
recheck: Recheck | null, };

/**
 * A self-check that was run anew.
 */
export type Recheck = { 
/**
 * Kinds of operation that were compared.
 */
checked: number, 
/**
 * Tokens of the largest block that is exact as a whole.
 */
block: number, 
/**
 * What the load rested on.
 */
blockBefore: number, };

/**
 * Whether both sides said the same.
 */
export type Agreement = { "verdict": "identical", 
/**
 * Tokens of the reply that were checked.
 */
tokens: number, 
/**
 * Runs that were compared with the first.
 */
runs: number, } | { "verdict": "different", 
/**
 * Where and how.
 */
difference: Difference, } | { "verdict": "unknown" };

/**
 * How a comparison is started.
 */
export type CompareRequest = { 
/**
 * A message to run again, with the conversation before it: a reply as it was made, one of the person's as it would be
 * answered now.
 */
messageId: number | null, 
/**
 * A new prompt, where there is no message.
 */
prompt: string | null, 
/**
 * The settings of both sides; its speculation is that of the side with it.
 */
options: TurnOptions, 
/**
 * Measured runs a side.
 */
repetitions: number, };

/**
 * A comparison that has ended.
 */
export type Comparison = { 
/**
 * What was run, where, with which versions.
 */
setup: Setup, 
/**
 * The message it was started from.
 */
messageId: number | null, 
/**
 * Whether the reply that it was started from says what plain decoding said here; absent without a reply, and where one
 * of the two is not whole.
 */
matchesReply: boolean | null, 
/**
 * The last message of the prompt.
 */
prompt: string, 
/**
 * Tokens in the prompt.
 */
promptTokens: number, 
/**
 * The seed of all runs.
 */
seed: number, 
/**
 * Runs a side that were asked for.
 */
repetitions: number, 
/**
 * Whether it was stopped before the end.
 */
stopped: boolean, 
/**
 * Whether both sides said the same.
 */
agreement: Agreement, 
/**
 * The text with speculation off.
 */
offText: string, 
/**
 * The text with speculation on.
 */
onText: string, 
/**
 * Off, over the measured runs.
 */
off: SideFigures, 
/**
 * On.
 */
on: SideFigures, 
/**
 * Decode rate on by off; absent where one side has none.
 */
speedup: Ratio | null, 
/**
 * What rounds cost.
 */
costs: Array<Cost>, 
/**
 * Each run.
 */
runs: Array<MeasuredRun>, };

/**
 * What both comparisons and benchmarks record of their surroundings.
 */
export type Setup = { 
/**
 * Unix milliseconds of the start.
 */
startedAt: number, 
/**
 * This app's version.
 */
appVersion: string, 
/**
 * MLX's.
 */
mlxVersion: string, 
/**
 * Display name of the target.
 */
model: string, 
/**
 * The target's folder.
 */
target: string, 
/**
 * The drafter's folder, if it is one of its own.
 */
drafter: string | null, 
/**
 * Device, versions, checkpoint and activation type: what the self-check depends on.
 */
checkKey: string, 
/**
 * `cpu`, `metal` or `cuda`.
 */
device: string, 
/**
 * Activation type.
 */
dtype: string, 
/**
 * `exact` or `fast`.
 */
exactness: string, 
/**
 * Operations that exact mode does not run at once on this device.
 */
inParts: Array<string>, 
/**
 * The machine before.
 */
before: Conditions, 
/**
 * The machine after.
 */
after: Conditions, };

/**
 * The state of the machine. What cannot be read is absent.
 */
export type Conditions = { 
/**
 * Name of the processor or chip.
 */
chip: string | null, 
/**
 * Its logical cores.
 */
cores: number | null, 
/**
 * Name of the graphics processor, if it is one of its own.
 */
gpu: string | null, 
/**
 * Bytes of memory.
 */
memoryBytes: number | null, 
/**
 * Name and version of the system.
 */
os: string | null, 
/**
 * What the system calls its power mode.
 */
powerMode: string | null, 
/**
 * `mains` or `battery`.
 */
powerSource: string | null, 
/**
 * What the system says of heat.
 */
thermal: string | null, 
/**
 * Load averages of 1, 5 and 15 minutes.
 */
load: [number, number, number] | null, 
/**
 * Bytes swapped out.
 */
swapUsedBytes: number | null, };

/**
 * One run, as measured.
 */
export type MeasuredRun = { 
/**
 * Id of the prompt in the set; absent in a comparison.
 */
prompt: string | null, 
/**
 * What was asked for.
 */
speculation: SpeculationChoice, 
/**
 * From 1.
 */
repetition: number, 
/**
 * Place in the order of all runs, from 1.
 */
order: number, 
/**
 * Tokens in the prompt.
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
 * Decode rate by its timed rounds; absent where they were too few.
 */
tokensPerSecond: number | null, 
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
accepted: number, };

/**
 * What a comparison tells while it runs: `started`, then for each run `run`, `prefill`*, `delta`*, `measured`; at the end
 * `done` or `failed`.
 */
export type CompareEvent = { "type": "started", 
/**
 * Runs there are going to be, warm-ups included.
 */
runs: number, 
/**
 * The model's name.
 */
model: string, 
/**
 * The last message of the prompt.
 */
prompt: string, } | { "type": "run", 
/**
 * Which side.
 */
side: Side, 
/**
 * From 1; 0 is the warm-up, which is not measured.
 */
repetition: number, } | { "type": "prefill", 
/**
 * Which side.
 */
side: Side, 
/**
 * Tokens read.
 */
done: number, 
/**
 * Tokens in all.
 */
total: number, } | { "type": "delta", 
/**
 * Which side.
 */
side: Side, 
/**
 * New text, thinking included.
 */
text: string, 
/**
 * Tokens up to now.
 */
tokens: number, 
/**
 * Rate up to now.
 */
tokensPerSecond: number, } | { "type": "measured", 
/**
 * Which side.
 */
side: Side, 
/**
 * Its figures.
 */
run: MeasuredRun, } | { "type": "done", 
/**
 * Its id in the history; absent where it could not be stored, or there was nothing to keep.
 */
id: number | null, 
/**
 * What came out.
 */
comparison: Comparison, } | { "type": "failed", 
/**
 * Why.
 */
error: AppError, };

/**
 * A kind of prompt in the benchmark's set.
 */
export type PromptKind = "code" | "facts" | "prose" | "list" | "rewrite" | "long" | "predictable" | "unpredictable";

/**
 * How a benchmark is started.
 */
export type BenchRequest = { 
/**
 * Kinds of prompts; none means all.
 */
kinds: Array<PromptKind>, 
/**
 * What to measure; off is added where it is missing.
 */
arms: Array<SpeculationChoice>, 
/**
 * Runs of each prompt with each of them.
 */
repetitions: number, 
/**
 * Most tokens a run.
 */
maxTokens: number, };

/**
 * One way to speculate over the whole prompt set.
 */
export type Arm = { 
/**
 * Its figures; a value for each repetition of the whole set.
 */
figures: SideFigures, 
/**
 * Decode rate by that without speculation; absent for off itself, and for what did not speculate.
 */
speedup: Ratio | null, 
/**
 * Short runs before the measured ones, until two in a row took about the same time.
 */
warmUps: number, 
/**
 * Whether they came to that.
 */
settled: boolean, 
/**
 * By the length of the sequence.
 */
acceptanceByContext: Array<ContextAcceptance>, 
/**
 * Tokens that were compared with those without speculation; 0 for what did not speculate.
 */
checkedTokens: number, 
/**
 * Prompts whose tokens are others than without speculation.
 */
differing: Array<string>, };

/**
 * One way to speculate on one prompt.
 */
export type PromptFigures = { 
/**
 * Its id in the set.
 */
prompt: string, 
/**
 * Its kind.
 */
kind: PromptKind, 
/**
 * What ran.
 */
speculation: SpeculationChoice, 
/**
 * Decode rate; absent where runs were too short to have one.
 */
tokensPerSecond: Spread | null, 
/**
 * By that without speculation.
 */
speedup: Ratio | null, 
/**
 * Kept by proposed; absent without drafts.
 */
acceptanceRate: number | null, };

/**
 * What a benchmark says in the end.
 */
export type Winner = { "verdict": "fastest", 
/**
 * What ran.
 */
speculation: SpeculationChoice, 
/**
 * By how much.
 */
ratio: Ratio, } | { "verdict": "off" } | { "verdict": "noise" } | { "verdict": "unknown" };

/**
 * A benchmark that has ended.
 */
export type BenchReport = { 
/**
 * Version of this format.
 */
version: number, 
/**
 * What was run, where, with which versions.
 */
setup: Setup, 
/**
 * Ids of the prompts.
 */
promptIds: Array<string>, 
/**
 * Runs of each prompt with each way.
 */
repetitions: number, 
/**
 * Most tokens a run.
 */
maxTokens: number, 
/**
 * 0 is greedy.
 */
temperature: number, 
/**
 * The seed of all runs.
 */
seed: number, 
/**
 * Whether it was stopped before the end.
 */
stopped: boolean, 
/**
 * What may be said.
 */
winner: Winner, 
/**
 * Over all prompts.
 */
arms: Array<Arm>, 
/**
 * Prompt by prompt.
 */
prompts: Array<PromptFigures>, 
/**
 * What whole rounds cost.
 */
costs: Array<Cost>, 
/**
 * What the target's forward pass alone costs by its tokens, T(K); measured when the pair was loaded, and empty where it
 * was not.
 */
passes: Array<RowCost>, 
/**
 * One step of the drafter alone, in milliseconds; measured likewise.
 */
draftMs: number | null, 
/**
 * Each run.
 */
runs: Array<MeasuredRun>, };

/**
 * What became worse since the last benchmark of the same pair on the same machine.
 */
export type Regression = { 
/**
 * What, in words: `tokens/s, block 3`.
 */
what: string, 
/**
 * It was.
 */
before: number, 
/**
 * It is.
 */
after: number, 
/**
 * After by before, where both were measured more than once.
 */
ratio: Ratio | null, 
/**
 * What changed between the two, in words.
 */
changes: Array<string>, };

/**
 * What a benchmark tells while it runs; `done` or `failed` is the last.
 */
export type BenchEvent = { "type": "started", 
/**
 * Runs there are going to be, warm-ups included.
 */
runs: number, 
/**
 * The model's name.
 */
model: string, } | { "type": "run", 
/**
 * Runs that are over.
 */
done: number, 
/**
 * Id of the prompt.
 */
prompt: string, 
/**
 * What is asked for.
 */
speculation: SpeculationChoice, 
/**
 * From 1; 0 is the warm-up.
 */
repetition: number, } | { "type": "measured", 
/**
 * Its figures.
 */
run: MeasuredRun, } | { "type": "done", 
/**
 * Its id in the history; absent where it could not be stored, or there was nothing to keep.
 */
id: number | null, 
/**
 * What came out.
 */
report: BenchReport, 
/**
 * Against the last benchmark of this pair on this machine.
 */
regressions: Array<Regression>, } | { "type": "failed", 
/**
 * Why.
 */
error: AppError, };

/**
 * What has to be the same for a measurement to hold. What cannot be read is absent.
 */
export type Circumstances = { 
/**
 * This app's version.
 */
appVersion: string, 
/**
 * MLX's.
 */
mlxVersion: string, 
/**
 * Activation type; absent where any would do.
 */
dtype: string | null, 
/**
 * What the system calls its power mode.
 */
powerMode: string | null, 
/**
 * `mains` or `battery`.
 */
powerSource: string | null, };

/**
 * What a verdict rests on.
 */
export type VerdictSource = { "kind": "benchmark", 
/**
 * Its prompts.
 */
prompts: number, 
/**
 * Runs of each with each way to speculate.
 */
repetitions: number, } | { "kind": "replies", 
/**
 * How many.
 */
replies: number, 
/**
 * Drafts a round that most of them found best.
 */
depth: number, };

/**
 * What speculation is worth for a pair on this machine.
 */
export type PairVerdict = { 
/**
 * The drafter's folder, if it is one of its own.
 */
drafter: string | null, 
/**
 * What may be said; never `unknown`.
 */
says: Winner, 
/**
 * Whether a way to speculate was slower than none, beyond the noise.
 */
someSlower: boolean, 
/**
 * By what.
 */
source: VerdictSource, 
/**
 * Unix milliseconds.
 */
measuredAt: number, 
/**
 * Under which versions and power.
 */
under: Circumstances, 
/**
 * What changed since, in words: the verdict is stale where anything did.
 */
changes: Array<string>, };

/**
 * A comparison or benchmark in the history.
 */
export type Measurement = { 
/**
 * Its id among those of its kind.
 */
id: number, 
/**
 * Unix milliseconds.
 */
createdAt: number, 
/**
 * The model's name.
 */
model: string, 
/**
 * This app's version then.
 */
appVersion: string, 
/**
 * MLX's version then.
 */
mlxVersion: string, 
/**
 * Whether all texts were the same; absent where that was not found out.
 */
identical: boolean | null, 
/**
 * Speed-up, only where it is beyond the noise.
 */
speedup: number | null, };

/**
 * A benchmark as text to paste.
 */
export type BenchTexts = { 
/**
 * For people.
 */
markdown: string, 
/**
 * For programs, with raw numbers.
 */
json: string, };

/**
 * The history, the newest first.
 */
export type Measurements = { 
/**
 * Comparisons.
 */
comparisons: Array<Measurement>, 
/**
 * Benchmarks.
 */
benches: Array<Measurement>, };

/**
 * A benchmark of the history.
 */
export type OpenBench = { 
/**
 * What came out.
 */
report: BenchReport, 
/**
 * Against the one before it of the same pair on the same machine.
 */
regressions: Array<Regression>, };

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
 * What one round added to a reply.
 */
export type RoundText = { 
/**
 * The length of its text in the answer, in UTF-16 units as JavaScript counts them.
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
 * Drafts kept: its first tokens. Behind them is one of the model's own, unless the reply ended before.
 */
accepted: number, 
/**
 * The part of `length` that each token showed, none for one without text; empty for replies of earlier versions.
 */
pieces: Array<number>, 
/**
 * Likewise of the thinking block; empty where no token showed any of it.
 */
thinking: Array<number>, 
/**
 * The first draft that was rejected, as text; the last token took its place.
 */
rejected: string | null, 
/**
 * Whether its tokens were said in the model's place, to end its thinking.
 */
said: boolean, };

/**
 * How long some rounds in a row took.
 */
export type PaceBin = { 
/**
 * How many they are.
 */
rounds: number, 
/**
 * Their tokens.
 */
tokens: number, 
/**
 * Milliseconds from the read before the first of them to that of the last.
 */
ms: number, };

/**
 * How a reply came.
 */
export type Provenance = { 
/**
 * Its rounds in order; without drafts, one for each token.
 */
rounds: Array<RoundText>, 
/**
 * Its pace while it was written, reading the prompt apart; at most 200.
 */
pace: Array<PaceBin>, };

/**
 * What is new of how a reply comes.
 */
export type ProvenanceNews = { 
/**
 * The place of the first of `rounds`: they take that of all from there on.
 */
from: number, 
/**
 * Rounds that are new, or of which more was shown.
 */
rounds: Array<RoundText>, 
/**
 * The pace up to now.
 */
pace: Array<PaceBin>, };

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
 * A PDF that was picked; the window reads its text.
 */
export type PickedPdf = { 
/**
 * To ask for its bytes, once.
 */
id: number, 
/**
 * The file's name, without its folder.
 */
name: string, };

/**
 * What became of the files that were picked.
 */
export type Picked = { 
/**
 * Those that are text.
 */
files: Array<Attachment>, 
/**
 * Those that are still to be read.
 */
pdfs: Array<PickedPdf>, 
/**
 * One failure for each of the others.
 */
refused: Array<AppError>, };

/**
 * What was dropped on the window.
 */
export type Dropped = { 
/**
 * Folders, which may hold models.
 */
folders: Array<string>, 
/**
 * What became of the files.
 */
files: Picked, };

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
 * How many were here already.
 */
already: number, 
/**
 * One sentence for each chat that could not be read.
 */
leftOut: Array<string>, };
