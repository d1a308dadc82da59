//! Values for tests.

import type { ChatSummary, Download, LocalModel, Message, ModelStatus, Run, ShelfView, Shelved } from "../bindings";

export const run = (patch: Partial<Run> = {}): Run => ({
  model: "Tiny",
  speculating: true,
  reason: null,
  blockSize: 3,
  wiring: null,
  promptTokens: 12,
  tokens: 20,
  prefillMs: 40,
  ttftMs: 60,
  decodeMs: 500,
  tokensPerSecond: 40,
  rounds: 8,
  drafted: 16,
  accepted: 12,
  acceptanceRate: 0.75,
  tokensPerRound: 2.5,
  acceptanceByPosition: [0.9, 0.6],
  acceptedPerRound: [2, 2, 1, 0, 2, 2, 1, 2],
  seed: 7,
  ...patch,
});

export const message = (patch: Partial<Message> = {}): Message => ({
  id: 1,
  chatId: 1,
  role: "assistant",
  content: "",
  reasoning: null,
  status: "complete",
  createdAt: 0,
  run: null,
  error: null,
  versions: [patch.id ?? 1],
  canContinue: false,
  ...patch,
});

export const chat = (patch: Partial<ChatSummary> = {}): ChatSummary => ({
  id: 1,
  title: "A chat",
  createdAt: 0,
  updatedAt: 0,
  pinned: false,
  tags: [],
  ...patch,
});

export const localModel = (patch: Partial<LocalModel> = {}): LocalModel => ({
  id: "builtin",
  name: "Tiny",
  path: "/models/tiny",
  drafterPath: null,
  note: null,
  bytes: 3_200_000,
  ...patch,
});

export const ready = (patch: Partial<Extract<ModelStatus, { state: "ready" }>> = {}): ModelStatus => ({
  state: "ready",
  model: localModel(),
  family: "qwen3_5",
  canSpeculate: true,
  speculationNote: "The head is part of the checkpoint.",
  defaultBlockSize: 3,
  context: 2048,
  device: "cpu",
  dtype: "f32",
  loadMs: 20,
  memoryBytes: 4_000_000,
  warnings: [],
  defaults: { temperature: 0.7, topP: 1, topK: 0, minP: 0 },
  ...patch,
});

export const shelved = (patch: Partial<Shelved> = {}): Shelved => ({
  model: localModel(),
  role: "target",
  place: "cache",
  health: "whole",
  problems: [],
  warnings: [],
  repo: null,
  commit: null,
  family: "qwen3_5",
  quantization: "4-bit",
  drafters: [],
  targets: [],
  ...patch,
});

export const shelf = (models: LocalModel[]): ShelfView => ({ models: models.map((model) => shelved({ model })), folders: [], bytes: 0 });

export const download = (patch: Partial<Download> = {}): Download => ({
  id: "1",
  name: "Qwen3.8 27B",
  wanted: { name: "Qwen3.8 27B", parts: [], memoryBytes: null },
  state: { phase: "transferring" },
  bytes: 16e9,
  done: 4e9,
  files: 9,
  filesDone: 3,
  file: "model-00001-of-00003.safetensors",
  speed: null,
  etaSeconds: null,
  thenChat: true,
  ...patch,
});
