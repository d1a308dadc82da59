// Generated from src-tauri/src/ipc.rs: npm run bindings

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
updatedAt: number, };

/**
 * A chat with its messages.
 */
export type Chat = { 
/**
 * The list entry.
 */
summary: ChatSummary, 
/**
 * Oldest first.
 */
messages: Array<Message>, };

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
error: AppError | null, };

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
drafter: string | null, };
