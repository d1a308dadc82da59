//! The app's commands for design work in a browser: `vite` alone, no Rust. Never part of a build.
//!
//! `?scene=` picks a state: `first`, `loading`, `none`, `failed`, `nohead`, `refuse`, `long`, `fast` (12,000 tokens at 500 a second), `slow`, `many` (2,000 chats), `imported` (without figures, one of them without a reply), and of models `empty`, `downloads`,
//! `diskfull`, `offline`.

import { mockIPC, mockWindows } from "@tauri-apps/api/mocks";
import type { Channel } from "@tauri-apps/api/core";
import type { AppError, Chat, LocalModel, Message, ModelStatus, Run, Settings, TurnEvent, TurnOptions } from "../bindings";
import { initial } from "../state/settings";
import * as compare from "./compare";
import * as library from "./library";
import * as models from "./models";
import { CODE, replyTo, TITLES } from "./texts";

const scene = new URLSearchParams(location.search).get("scene") ?? "";
const now = Date.now();
const DAY = 86_400_000;

const builtin: LocalModel = {
  id: "builtin",
  name: "Slipstream Tiny",
  path: "/app/models/tiny",
  drafterPath: null,
  note: "It is a small demonstration model: it knows a few facts, simple sums and short texts, and is often wrong beyond them.",
  bytes: 3_240_000,
};
const big: LocalModel = { ...builtin, id: "/models/Qwen3.5-4B-4bit", name: "Qwen3.5-4B-4bit", path: "/models/Qwen3.5-4B-4bit", note: null, bytes: 2_910_000_000 };

const ready = (model: LocalModel): ModelStatus => ({
  state: "ready",
  model,
  family: "qwen3_5",
  canSpeculate: scene !== "nohead",
  speculationNote: scene === "nohead" ? "No MTP head in this model." : "The MTP head is part of the checkpoint.",
  speculating: scene === "nohead" ? "unavailable" : "ready",
  exactnessNote: "exact: 2 of 14 kinds of operation run row by row, as on this machine a block would round them otherwise",
  inParts: [],
  exactBlock: 16,
  canThink: true, autoDepth: scene === "nohead" ? 0 : 2,
  costs: [{ rows: 1, ms: 21.4, ratio: 1 }, { rows: 2, ms: 23.1, ratio: 1.08 }, { rows: 4, ms: 29.8, ratio: 1.39 }, { rows: 8, ms: 44.2, ratio: 2.07 }],
  draftMs: 1.9,
  defaultBlockSize: scene === "nohead" ? 1 : 3,
  context: 2048,
  device: "cpu",
  dtype: "f32",
  loadMs: 38,
  memoryBytes: 4_120_000,
  kv: "plain",
  warnings: [],
  defaults: { temperature: 0.7, topP: 0.95, topK: 20, minP: 0 },
});

const missing: AppError = {
  kind: "checkpoint_incomplete",
  message: "The folder has no config.json.",
  hint: "Choose the folder that holds config.json and the .safetensors files.",
};

let status: ModelStatus = ready(builtin);
if (scene === "loading") status = { state: "loading", model: big };
if (scene === "none") status = { state: "none" };
if (scene === "failed") status = { state: "failed", model: big, error: missing };

let settings: Settings = { ...initial.settings, welcomed: scene !== "first" };
const watchers: Channel<ModelStatus>[] = [];
const tell = (next: ModelStatus): ModelStatus => {
  status = next;
  for (const watcher of watchers) watcher.onmessage(next);
  return next;
};

let ids = 1000;
let stopped = false;
let answering = false;
const chats: Chat[] = [];

function figures(tokens: number, blockSize: number, elapsed: number, reason: string | null): Run {
  const depth = blockSize - 1;
  const acceptedPerRound: number[] = [];
  let made = 0;
  for (let i = 0; made < tokens; i += 1) {
    const kept = depth === 0 ? 0 : Math.min(depth, [2, 2, 1, 2, 0, 2, 1, 2, 2, 2, 0, 1][(i * 7 + (i >> 3)) % 12]!);
    acceptedPerRound.push(kept);
    made += kept + 1;
  }
  const rounds = acceptedPerRound.length;
  const accepted = acceptedPerRound.reduce((a, b) => a + b, 0);
  const share = (p: number): number => acceptedPerRound.filter((n) => n > p).length / Math.max(1, rounds);
  return {
    model: builtin.name, speculating: depth > 0, state: depth > 0 ? "on" : "off", sentence: depth > 0 ? "on: a round with 2 drafts gives 2.47 tokens, so speculation is 1.71 times plain" : "speculation is switched off",
    exactness: "exact", exactnessSentence: "exact: on this machine a block of tokens gives what single tokens give", plainRounds: 0, draftedPerRound: [], reason, blockSize, wiring: null, promptTokens: 38, tokens: made, prefillMs: 312, ttftMs: 402,
    decodeMs: elapsed, tokensPerSecond: elapsed > 0 ? (made / elapsed) * 1000 : 0, rounds, drafted: rounds * depth, accepted,
    acceptanceRate: depth > 0 ? accepted / Math.max(1, rounds * depth) : 0, tokensPerRound: made / Math.max(1, rounds),
    acceptanceByPosition: Array.from({ length: depth }, (_, p) => share(p)), acceptedPerRound: depth > 0 ? acceptedPerRound : [], seed: 4182077319,
  };
}

const runFor = (options: TurnOptions, tokens: number, elapsed: number): Run => {
  const { speculation: choice } = options;
  const off = choice.mode === "off" || scene === "nohead";
  return figures(tokens, off ? 1 : choice.mode === "block" ? choice.size : 3, elapsed, off ? (scene === "nohead" ? "No MTP head in this model." : null) : null);
};

const message = (chatId: number, role: Message["role"], content: string, patch: Partial<Message> = {}): Message => {
  const id = (ids += 1);
  return {
    id, chatId, role, content, reasoning: null, thought: null, status: "complete", createdAt: now, run: null, error: null, versions: [id],
    canContinue: patch.status === "stopped" || patch.status === "interrupted", ...patch,
  };
};

function seedChats(): void {
  TITLES.forEach((title, index) => {
    const id = index + 1;
    const updatedAt = now - [0.001, 0.01, 1, 1.1, 3, 4, 6, 12, 40][index]! * DAY;
    const run = figures(index === 1 ? 2600 : 141, 3, index === 1 ? 61_000 : 3350, null);
    const messages = [message(id, "user", title), message(id, "assistant", CODE, { run, reasoning: "The person wants a short account.\n\nI give one with code." })];
    if (index === 1) messages.push(message(id, "user", "And shorter?"), message(id, "assistant", "A stack gives back last what it", { status: "stopped", run: figures(9, 3, 210, null) }));
    if (index === 2)
      messages.push(
        message(id, "user", "Go on"),
        message(id, "assistant", "The sea is", {
          status: "failed", run: figures(4, 3, 99, null),
          error: { kind: "out_of_memory", message: "The model ran out of memory after 4 tokens.", hint: "Close other programs or start a new chat, then try again." },
        }),
      );
    if (index === 3) messages.push(message(id, "user", "More"), message(id, "assistant", "Then it", { status: "interrupted", run: figures(2, 1, 99, "Turned off for this message.") }));
    if (index === 4) for (let n = 0; n < 199; n += 1) messages.push(message(id, "user", `Question ${n}`), message(id, "assistant", CODE, { run }));
    const patch = index === 3 ? { pinned: true } : index === 0 ? { tags: ["work"] } : {};
    chats.push({ ...library.begin(library.summary(id, title, updatedAt, patch)), messages });
  });
}
/** As they come from other programs. */
function seedImported(n: number): void {
  for (let at = 0; at < n; at += 1) {
    const id = (ids += 1);
    const title = `${TITLES[at % TITLES.length]} (${at + 1})`;
    const messages = [message(id, "user", title), message(id, "assistant", `${CODE}\n\n`.repeat(at % 4)), message(id, "user", "And then?")].slice(0, 2 + (at % 2));
    chats.push({ ...library.begin(library.summary(id, title, now - at * 0.2 * DAY, at % 50 === 7 ? { tags: ["work"] } : {})), messages });
  }
}

if (scene !== "first") seedChats();
if (scene === "many") seedImported(2000);
if (scene === "imported") seedImported(8);

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
const chatOf = (id: number): Chat => chats.find((c) => c.summary.id === id)!;

async function turn(chat: Chat, user: Message, options: TurnOptions, on: (e: TurnEvent) => void): Promise<void> {
  stopped = false;
  answering = false;
  const place = chat.messages.indexOf(user) + 1;
  const made = message(chat.summary.id, "assistant", "", { status: "streaming" });
  const reply = chat.messages[place] ? library.branch(chat, place, made) : made;
  chat.messages = [...chat.messages.slice(0, place), reply];
  on({ type: "started", chat: chat.summary, user, assistant: reply });
  const slow = scene === "slow" ? 8 : 1;
  for (let done = 0; done <= 38 * slow && !stopped; done += 8) {
    on({ type: "prefill", done, total: 38 * slow });
    await pause(60);
  }
  const { reasoning, answer } = scene === "fast" ? { reasoning: "", answer: CODE } : replyTo(user.content, scene === "long");
  const text = scene === "fast" ? `${answer}\n\n`.repeat(200).slice(0, 48_000) : reasoning + answer;
  const begin = performance.now();
  let at = 0;
  let run = runFor(options, 1, 1);
  let thought: Message["thought"] = null;
  while (at < text.length && !stopped) {
    const step = text.slice(at, at + (scene === "fast" ? 68 : 7));
    const inReasoning = Math.max(0, Math.min(step.length, reasoning.length - at));
    at += step.length;
    run = runFor(options, Math.ceil(at / 4), performance.now() - begin);
    if (at <= reasoning.length) thought = { tokens: Math.ceil(at / 4), ms: performance.now() - begin, open: at < reasoning.length && !answering, ended: answering ? "person" : null };
    if (answering && at < reasoning.length) at = reasoning.length;
    on({ type: "delta", thought, reasoning: step.slice(0, inReasoning), answer: step.slice(inReasoning), run, origin: null });
    await pause(34);
  }
  const shown = text.slice(0, at);
  const stored: Message = { ...reply, run, thought, reasoning: reasoning ? shown.slice(0, reasoning.length) : null, content: shown.slice(reasoning.length), status: stopped ? "stopped" : "complete", canContinue: stopped };
  chat.messages = chat.messages.map((m) => (m.id === stored.id ? stored : m));
  chat.summary = { ...chat.summary, updatedAt: Date.now() };
  on({ type: "done", message: stored, chat: chat.summary });
}

async function load(path: string): Promise<ModelStatus> {
  const before = status;
  const model = path === "builtin" ? builtin : { ...big, id: path, path, name: path.split("/").at(-1) ?? path };
  tell({ state: "loading", model });
  await pause(1500);
  if (!path.includes("Qwen") && path !== "builtin") {
    tell(before);
    throw missing;
  }
  return tell(ready(model));
}

mockWindows("main");
// eslint-disable-next-line @typescript-eslint/no-explicit-any
mockIPC(async (command, payload): Promise<unknown> => {
  const args = payload as Record<string, any>;
  switch (command) {
    case "list_chats":
      return chats.map((c) => c.summary);
    case "open_chat":
      return structuredClone(chatOf(args.chatId));
    case "send_message": {
      if (scene === "refuse") throw { kind: "engine_busy", message: "The engine is busy with another window.", hint: "Wait until it is done, then send again." } satisfies AppError;
      let chat = args.chatId === null ? undefined : chatOf(args.chatId);
      if (!chat) {
        chats.push((chat = library.begin(library.summary((ids += 1), args.text.slice(0, 48), Date.now()))));
      }
      const user = message(chat.summary.id, "user", args.text);
      chat.messages.push(user);
      void turn(chat, user, args.options, (e) => args.onEvent.onmessage(e));
      return null;
    }
    case "answer_message": {
      const chat = chats.find((c) => c.messages.some((m) => m.id === args.messageId))!;
      void turn(chat, chat.messages.find((m) => m.id === args.messageId)!, args.options, (e) => args.onEvent.onmessage(e));
      return null;
    }
    case "regenerate": {
      const chat = chats.find((c) => c.messages.some((m) => m.id === args.messageId))!;
      const user = chat.messages[chat.messages.findIndex((m) => m.id === args.messageId) - 1]!;
      void turn(chat, user, args.options, (e) => args.onEvent.onmessage(e));
      return null;
    }
    case "continue_reply":
    case "edit_message": {
      const chat = chats.find((c) => c.messages.some((m) => m.id === args.messageId))!;
      const at = chat.messages.findIndex((m) => m.id === args.messageId);
      const isEdit = command === "edit_message";
      const user = isEdit ? library.branch(chat, at, message(chat.summary.id, "user", args.text)) : chat.messages[at - 1]!;
      if (!isEdit) chat.messages = chat.messages.slice(0, at);
      void turn(chat, user, args.options, (e) => args.onEvent.onmessage(e));
      return null;
    }
    case "compare":
      void compare.run(args.request, (e) => args.onEvent.onmessage(e));
      return null;
    case "bench":
      void compare.bench((e) => args.onEvent.onmessage(e));
      return null;
    case "list_measurements":
      return compare.history;
    case "open_comparison":
      return compare.shown();
    case "open_bench":
      return { report: compare.report(), regressions: [] };
    case "bench_texts":
      return { markdown: "## Slipstream benchmark", json: "{}" };
    case "answer_now":
      answering = true;
      return null;
    case "count_tokens":
      return Math.ceil(args.text.length / 4);
    case "stop_turn":
      stopped = true;
      compare.stop();
      return null;
    case "model_status":
      return status;
    case "watch_model":
      watchers.push(args.onStatus);
      return null;
    case "list_models":
      return { shelf: models.shelf(builtin), catalog: models.catalog, catalogError: null };
    case "add_folder":
    case "remove_folder":
      return models.shelf(builtin);
    case "pick_folder":
      return "/Volumes/Models";
    case "weigh_model":
      return { frees: 2.9e9, shared: args.path.includes("27B") ? 6e9 : 0, foreign: args.path.includes("Youssofal") };
    case "delete_model":
      return 2.9e9;
    case "search_hub":
      await pause(400);
      return ["mlx-community/Qwen3.8-27B-4bit", "mlx-community/Qwen3.8-27B-8bit", "Qwen/Qwen3.8-27B"].map((repo, i) => ({ repo, downloads: 120_000 / (i + 1), gated: i === 2, tags: ["mlx"] }));
    case "plan_download":
      await pause(500);
      return models.plan(args.wanted);
    case "start_download":
      return models.start(args.wanted);
    case "pause_download":
      return models.stop(args.id, "paused");
    case "resume_download":
      return models.run(args.id);
    case "cancel_download":
      return models.stop(args.id, null);
    case "watch_downloads":
      return models.watch(args.onChange);
    case "token_status":
      return models.token;
    case "set_token":
      return Object.assign(models.token, { source: "keychain" });
    case "clear_token":
      return Object.assign(models.token, { source: "none" });
    case "cancel_plan":
      return null;
    case "load_model":
      return load(args.path);
    case "unload_model":
      tell({ state: "none" });
      return null;
    case "data_folder":
      return { path: "/Users/you/Library/Application Support/chat.slipstream.app", variable: "SLIPSTREAM_DATA_DIR", chosen: false, deletedChats: library.countDeleted() };
    case "open_data_folder":
      return null;
    case "get_settings":
      return settings;
    case "update_settings":
      return (settings = args.settings);
    default: {
      const answer = library.answer(chats, command, args, () => (ids += 1));
      if (answer === undefined) console.info("fake:", command, args);
      return answer ?? null;
    }
  }
});
