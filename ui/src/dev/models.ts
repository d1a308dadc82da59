//! Models and downloads for the fake: a catalogue, what is on the disk, and a download that takes its time.

import type { Channel } from "@tauri-apps/api/core";
import type { AppError, CatalogPair, CatalogView, Download, DownloadPlan, LocalModel, Need, Shelved, ShelfView, TokenView, Wanted } from "../bindings";
import { part } from "../state/downloads";
import { pairVerdict } from "../state/samples";

const scene = new URLSearchParams(location.search).get("scene") ?? "";
const TOTAL = 36e9;
const FREE = scene === "diskfull" ? 9e9 : 212e9;

const memory = (bytes: number): Need => ({ bytes, free: 22e9, total: TOTAL, limit: null, verdict: bytes > TOTAL * 0.75 ? "tooLarge" : bytes > 22e9 ? "tight" : "fits" });
const disk = (bytes: number): Need => ({ bytes, free: FREE, total: null, limit: null, verdict: bytes > FREE ? "tooLarge" : "fits" });

function pair(id: string, name: string, repos: string[], gb: number, patch: Partial<CatalogPair> = {}): CatalogPair {
  const wanted: Wanted = { name, parts: repos.map((repo) => part(repo)) };
  return { id, wanted, note: null, quantization: "4-bit", licence: "Apache-2.0", downloadBytes: gb * 1e9, verified: true, recommended: false, memory: memory(gb * 1.15e9), disk: disk(gb * 1e9), installed: null, measured: null, ...patch };
}

export const catalog: CatalogView = {
  machine: { memoryTotal: TOTAL, memoryFree: 22e9, diskFree: FREE, cacheDir: "/home/me/.cache/huggingface/hub", offline: scene === "offline" },
  pairs: [
    pair("qwen3.8-27b", "Qwen3.8 27B with its draft head", ["mlx-community/Qwen3.8-27B-4bit", "mlx-community/Qwen3.8-27B-MTP-bf16"], 16.9, { recommended: true, note: "The best answers that fit this computer." }),
    pair("qwen3.5-9b", "Qwen3.5 9B with its draft head", ["mlx-community/Qwen3.5-9B-4bit", "mlx-community/Qwen3.5-9B-MTP-4bit"], 6.1),
    pair("qwen3.5-4b", "Qwen3.5 4B with its draft head", ["mlx-community/Qwen3.5-4B-MLX-4bit", "mlx-community/Qwen3.5-4B-MTP-4bit"], 3.2, { verified: false }),
    pair("inkling-small", "Inkling Small with its draft head", ["mlx-community/Inkling-Small-mlx-4bit", "thinkingmachines/Inkling-Small"], 158, { note: "For 192 GB of memory." }),
  ],
};

const local = (name: string, gb: number, drafterPath: string | null = null): LocalModel => ({ id: `/hub/${name}`, name, path: `/hub/${name}`, drafterPath, note: null, bytes: gb * 1e9 });
const entry = (model: LocalModel, patch: Partial<Shelved> = {}): Shelved => ({
  model, role: "target", place: "cache", health: "whole", problems: [], warnings: [], repo: model.name, commit: "0e7ffd5c629ef7719d4cbc04069232580bfa9d9c",
  family: "qwen3_5", quantization: "affine 4-bit, groups of 64", drafters: [], targets: [], memory: memory(model.bytes * 1.125 + 2e9), measured: [], ...patch,
});
const problem = (message: string, hint: string): AppError => ({ kind: "shard_missing", message, hint });

export function shelf(builtin: LocalModel): ShelfView {
  const first = entry(builtin, { role: "both", place: "builtin", repo: null, quantization: "4-bit" });
  if (scene === "first" || scene === "empty") return { models: [first], folders: [], bytes: builtin.bytes };
  const head = local("mlx-community/Qwen3.5-4B-MTP-4bit", 0.08);
  return {
    models: [
      first,
      entry(local("mlx-community/Qwen3.5-4B-4bit", 2.9, head.path), { drafters: [head], measured: [pairVerdict({ drafter: head.path, measuredAt: Date.now() - 8e7 })] }),
      entry(local("Youssofal/Qwen3.5-9B-MTPLX-Optimized-Speed", 8.1), { role: "both", place: "folder" }),
      entry(local("mlx-community/Qwen3.8-27B-4bit", 9.2), { health: "incomplete", role: "unknown", problems: [problem("`model-00002-of-00003.safetensors` and 1 more are not here", "download it again: only what is missing is fetched")] }),
      entry(head, { role: "drafter", targets: ["mlx-community/Qwen3.5-4B-4bit"] }),
      entry(local("openai/whisper-large-v3", 3.1), { health: "refused", role: "unknown", family: null, problems: [problem("`model_type` whisper is not a model this engine runs", "Qwen3.5, 3.6 and 3.8 and Inkling models run here: choose one of those")] }),
    ],
    folders: [
      { path: "/home/me/.cache/huggingface/hub", present: true, added: false, models: 4 },
      { path: "/Volumes/Models", present: false, added: true, models: 0 },
    ],
    bytes: 23.4e9,
  };
}

let list: Download[] = [];
const watchers: Channel<Download[]>[] = [];
const timers = new Map<string, ReturnType<typeof setInterval>>();
const tell = (): void => watchers.forEach((w) => w.onmessage(structuredClone(list)));
const change = (id: string, patch: Partial<Download>): void => {
  list = list.map((d) => (d.id === id ? { ...d, ...patch } : d));
  tell();
};

export function watch(channel: Channel<Download[]>): void {
  watchers.push(channel);
  setTimeout(tell, 30);
}

const base = (wanted: Wanted): Download => ({ id: wanted.name, name: wanted.name, wanted, state: { phase: "planning" }, bytes: null, done: 0, files: 0, filesDone: 0, file: null, speed: null, etaSeconds: null, thenChat: true });

if (scene === "downloads") {
  const [a, b, c, d] = catalog.pairs.map((p) => p.wanted);
  const error: AppError = { kind: "gated", message: "`thinkingmachines/Inkling-Small` is gated: its licence must be accepted first", hint: "accept the licence at https://huggingface.co/thinkingmachines/Inkling-Small, then try again with a token of the same account" };
  list = [
    { ...base(a!), state: { phase: "transferring" }, bytes: 16.9e9, done: 4.2e9, files: 12, filesDone: 5, speed: 84e6, etaSeconds: 151 },
    { ...base(b!), state: { phase: "waiting", reason: "network", seconds: null }, bytes: 6.1e9, done: 2.2e9, files: 9, filesDone: 1 },
    { ...base(c!), state: { phase: "interrupted" }, bytes: 3.2e9, done: 1.1e9, files: 9, filesDone: 4 },
    { ...base(d!), state: { phase: "failed", error }, bytes: 158e9, done: 0, files: 9, filesDone: 0 },
  ];
}

export function run(id: string): void {
  const wanted = list.find((d) => d.id === id)!.wanted;
  const bytes = catalog.pairs.find((p) => p.wanted.name === wanted.name)?.downloadBytes ?? 5e9;
  let step = 0;
  change(id, { state: { phase: "planning" } });
  timers.set(id, setInterval(() => {
    step += 1;
    const done = list.find((d) => d.id === id)!.done + bytes / 60;
    if (done < bytes) return change(id, { state: { phase: "transferring" }, bytes, done, files: 12, filesDone: Math.floor((done / bytes) * 12), speed: bytes / 12, etaSeconds: step > 6 ? ((bytes - done) / bytes) * 12 : null });
    clearInterval(timers.get(id));
    change(id, { state: { phase: "done", model: local(wanted.name, bytes / 1e9), fetched: "model" }, done: bytes, speed: null, etaSeconds: null });
  }, 200));
}

export function start(wanted: Wanted): string {
  const id = wanted.name;
  if (!list.some((d) => d.id === id)) list = [...list, base(wanted)];
  run(id);
  return id;
}

export function stop(id: string, phase: "paused" | null): { kept: number } {
  clearInterval(timers.get(id));
  const kept = list.find((d) => d.id === id)?.done ?? 0;
  if (phase) change(id, { state: { phase }, speed: null, etaSeconds: null });
  else {
    list = list.filter((d) => d.id !== id);
    tell();
  }
  return { kept };
}

export function plan(wanted: Wanted): DownloadPlan {
  const bytes = catalog.pairs.find((p) => p.wanted.name === wanted.name)?.downloadBytes ?? 5.3e9;
  const files = ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "model.safetensors.index.json"].map((path) => ({ path, bytes: 11e3, there: 11e3 }));
  return {
    id: "plan", wanted, bytes, there: bytes / 5, memory: memory(bytes * 1.15), disk: disk(bytes * 0.8),
    parts: wanted.parts.map((p, i) => ({ repo: p.repo, commit: "10c35caa00000000000000000000000000004818", headOnly: p.headOnly, inPlaceOf: p.headOnly ? 55e9 : null, files: i === 0 ? [...files, { path: "model-00001-of-00001.safetensors", bytes, there: bytes / 5 }] : [{ path: "model.safetensors", bytes: 849_400_335, there: 0 }] })),
  };
}

export const token: TokenView = { source: "none", switchedOff: false, problems: scene === "token" ? ["the keychain cannot be read: access was refused"] : [] };
