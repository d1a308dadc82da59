//! Values for tests.

import type {
  Arm,
  BenchReport,
  ChatSummary,
  Comparison,
  Conditions,
  Download,
  LocalModel,
  MeasuredRun,
  Message,
  ModelStatus,
  PairVerdict,
  RoundText,
  Run,
  Setup,
  ShelfView,
  Shelved,
  SideFigures,
  SpeculationChoice,
  Spread,
} from "../bindings";

export const run = (patch: Partial<Run> = {}): Run => ({
  model: "Tiny",
  speculating: true,
  state: "fixed",
  sentence: "on: 2 drafts a round, as asked",
  reason: null,
  exactness: "exact",
  exactnessSentence: "exact: on this machine a block of tokens gives what single tokens give",
  blockSize: 3,
  wiring: null,
  promptTokens: 12,
  tokens: 20,
  prefillMs: 40,
  ttftMs: 60,
  decodeMs: 500,
  tokensPerSecond: 40,
  rounds: 8,
  plainRounds: 0,
  drafted: 16,
  accepted: 12,
  acceptanceRate: 0.75,
  tokensPerRound: 2.5,
  acceptanceByPosition: [0.9, 0.6],
  acceptedPerRound: [2, 2, 1, 0, 2, 2, 1, 2],
  draftedPerRound: [],
  seed: 7,
  ...patch,
});

/** A round whose lengths and tokens are those of its pieces, unless told. */
export const roundText = (patch: Partial<RoundText> = {}): RoundText => ({
  length: (patch.pieces ?? []).reduce((a, b) => a + b, 0),
  tokens: patch.pieces?.length ?? 0,
  drafted: 0,
  accepted: 0,
  pieces: [],
  thinking: [],
  rejected: null,
  said: false,
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
  thought: null,
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
  speculating: "ready",
  speculationNote: "The head is part of the checkpoint.",
  exactnessNote: "exact: on this machine a block of tokens gives what single tokens give",
  inParts: [],
  exactBlock: 16,
  autoDepth: 2,
  canThink: true,
  costs: [],
  draftMs: null,
  defaultBlockSize: 3,
  context: 2048,
  device: "cpu",
  dtype: "f32",
  loadMs: 20,
  memoryBytes: 4_000_000,
  kv: "plain",
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
  memory: { verdict: "fits", bytes: null, free: null, total: null, limit: null },
  measured: [],
  ...patch,
});

export const pairVerdict = (patch: Partial<PairVerdict> = {}): PairVerdict => ({
  drafter: null,
  says: { verdict: "fastest", speculation: { mode: "block", size: 3 }, ratio: { value: 1.42, low: 1.38, high: 1.47, call: "higher" } },
  someSlower: false,
  source: { kind: "benchmark", prompts: 13, repetitions: 5 },
  measuredAt: 0,
  under: { appVersion: "0.1.0", mlxVersion: "0.32.2", dtype: "float32", powerMode: null, powerSource: "mains" },
  changes: [],
  ...patch,
});

export const shelf = (models: LocalModel[]): ShelfView => ({ models: models.map((model) => shelved({ model })), folders: [], bytes: 0 });

export const download = (patch: Partial<Download> = {}): Download => ({
  id: "1",
  name: "Qwen3.8 27B",
  wanted: { name: "Qwen3.8 27B", parts: [] },
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

const setup = (): Setup => ({
  startedAt: 0,
  appVersion: "0.1.0",
  mlxVersion: "0.32.2",
  model: "Tiny",
  target: "/models/tiny",
  drafter: null,
  checkKey: "cpu",
  device: "cpu",
  dtype: "float32",
  exactness: "exact",
  inParts: [],
  before: conditions(),
  after: conditions(),
});

const conditions = (): Conditions => ({
  chip: null,
  cores: null,
  gpu: null,
  memoryBytes: null,
  os: null,
  powerMode: null,
  powerSource: null,
  thermal: null,
  load: null,
  swapUsedBytes: null,
});

export const spread = (...values: number[]): Spread => ({
  median: values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!,
  min: Math.min(...values),
  max: Math.max(...values),
  values,
});

export const figures = (speculation: SpeculationChoice, patch: Partial<SideFigures> = {}): SideFigures => ({
  speculation,
  asked: [],
  speculating: speculation.mode !== "off",
  reason: null,
  tokensPerSecond: spread(40, 41, 42),
  ttftMs: spread(50),
  totalMs: spread(900),
  tokensPerRound: speculation.mode === "off" ? 1 : 2.2,
  acceptanceRate: speculation.mode === "off" ? null : 0.6,
  acceptanceByPosition: speculation.mode === "off" ? [] : [0.8, 0.4],
  ...patch,
});

export const measured = (patch: Partial<MeasuredRun> = {}): MeasuredRun => ({
  prompt: null,
  speculation: { mode: "off" },
  repetition: 1,
  order: 1,
  promptTokens: 12,
  tokens: 30,
  prefillMs: 40,
  ttftMs: 50,
  decodeMs: 700,
  tokensPerSecond: 41,
  rounds: 30,
  drafted: 0,
  accepted: 0,
  ...patch,
});

export const comparison = (patch: Partial<Comparison> = {}): Comparison => ({
  setup: setup(),
  messageId: 3,
  matchesReply: true,
  prompt: "Why?",
  promptTokens: 12,
  seed: 7,
  repetitions: 3,
  stopped: false,
  agreement: { verdict: "identical", tokens: 300, runs: 5 },
  offText: "Because.",
  onText: "Because.",
  off: figures({ mode: "off" }),
  on: figures({ mode: "block", size: 3 }, { tokensPerSecond: spread(66, 67, 68) }),
  speedup: { value: 1.62, low: 1.58, high: 1.66, call: "higher" },
  costs: [],
  runs: [measured(), measured({ speculation: { mode: "block", size: 3 }, order: 2, tokens: 31 })],
  ...patch,
});

export const arm = (speculation: SpeculationChoice, patch: Partial<Arm> = {}): Arm => ({
  figures: figures(speculation),
  speedup: null,
  warmUps: 2,
  settled: true,
  acceptanceByContext: [],
  checkedTokens: 100,
  differing: [],
  ...patch,
});

export const benchReport = (patch: Partial<BenchReport> = {}): BenchReport => ({
  version: 2,
  setup: setup(),
  promptIds: ["facts"],
  repetitions: 3,
  maxTokens: 64,
  temperature: 0,
  seed: 0,
  stopped: false,
  winner: { verdict: "noise" },
  arms: [],
  prompts: [],
  costs: [],
  passes: [],
  draftMs: null,
  runs: [],
  ...patch,
});
