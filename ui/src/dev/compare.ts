//! A comparison and a benchmark for design work: made-up numbers, told at the pace of a small model.

import type { BenchEvent, BenchReport, CompareEvent, CompareRequest, Comparison, Measurement, Side, SpeculationChoice } from "../bindings";
import { benchReport, comparison, figures, measured, spread } from "../state/samples";
import { CODE } from "./texts";

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
const line = (id: number, speedup: number | null): Measurement => ({
  id, createdAt: Date.now() - id * 8_000_000, model: "Slipstream Tiny", appVersion: "0.1.0", mlxVersion: "0.32.2", identical: true, speedup,
});

export const history = { comparisons: [line(2, 1.62), line(1, null)], benches: [line(1, 1.44)] };

let isStopped = false;
export const stop = (): void => void (isStopped = true);

const result = (request: CompareRequest): Comparison =>
  comparison({ prompt: request.prompt ?? "Explain how a stack works.", offText: CODE, onText: CODE, repetitions: request.repetitions });

export async function run(request: CompareRequest, on: (event: CompareEvent) => void): Promise<void> {
  isStopped = false;
  on({ type: "started", runs: 2 + 2 * request.repetitions, model: "Slipstream Tiny", prompt: result(request).prompt });
  for (let repetition = 0; repetition <= request.repetitions; repetition += 1)
    for (const side of (repetition % 2 ? ["on", "off"] : ["off", "on"]) as Side[]) {
      if (isStopped) break;
      on({ type: "run", side, repetition });
      const step = side === "on" ? 20 : 12;
      for (let at = 0; at < CODE.length && !isStopped; at += step) {
        on({ type: "delta", side, text: CODE.slice(at, at + step), tokens: at / 4, tokensPerSecond: side === "on" ? 67.2 : 41.4 });
        await pause(30);
      }
    }
  on({ type: "done", id: 3, comparison: { ...result(request), stopped: isStopped } });
}

export const shown = (): Comparison => comparison({ offText: CODE, onText: CODE });

const ARMS: [SpeculationChoice, number][] = [2, 3, 4, 5].map((size) => [{ mode: "block", size }, 1.2 + 0.4 * Math.sin(size - 1)]);

export const report = (): BenchReport =>
  benchReport({
    winner: { verdict: "fastest", speculation: { mode: "block", size: 3 }, ratio: { value: 1.56, low: 1.5, high: 1.62, call: "higher" } },
    arms: ARMS.map(([choice, value]) => ({
      figures: figures(choice, { tokensPerSecond: spread(40 * value), acceptanceByPosition: [0.82, 0.61, 0.44, 0.3].slice(0, choice.mode === "block" ? choice.size - 1 : 2) }),
      speedup: { value, low: value - 0.06, high: value + 0.07, call: "higher" },
      warmUps: 2,
      settled: true,
      acceptanceByContext: [{ from: 0, to: 128, drafted: 900, accepted: 610 }, { from: 128, to: 256, drafted: 700, accepted: 430 }],
      checkedTokens: 5400,
      differing: [],
    })),
    costs: [1, 2, 3, 4, 5].map((rows) => ({ rows, rounds: 400, ms: 20 + 4 * rows, ratio: (20 + 4 * rows) / 24 })),
    passes: [1, 2, 3, 4, 6, 8].map((rows) => ({ rows, ms: 14 + 3 * rows, ratio: (14 + 3 * rows) / 17 })),
    draftMs: 1.4,
  });

export async function bench(on: (event: BenchEvent) => void): Promise<void> {
  isStopped = false;
  const runs = 40;
  on({ type: "started", runs, model: "Slipstream Tiny" });
  for (let done = 0; done < runs && !isStopped; done += 1) {
    on({ type: "run", done, prompt: "code-stack", speculation: { mode: "block", size: 2 + (done % 4) }, repetition: 1 });
    await pause(150);
    on({ type: "measured", run: measured() });
  }
  const worse = { what: "tokens/s, block 4", before: 48.2, after: 39.9, ratio: null, changes: ["MLX 0.32.1 → 0.32.2"] };
  on({ type: "done", id: 2, report: { ...report(), stopped: isStopped }, regressions: [worse] });
}
