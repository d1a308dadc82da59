//! A benchmark: what is asked for, how far it is, what came out.

import type { BenchEvent, BenchReport, BenchRequest, MeasuredRun, Regression, SpeculationChoice } from "../bindings";
import { applyShared, begun, type Measuring, type MeasuringEvent, type Running } from "./measuring";

export interface BenchRunning extends Running {
  /** What runs now. */
  prompt: string | null;
  speculation: SpeculationChoice | null;
  last: MeasuredRun | null;
}

export interface BenchState extends Measuring<BenchRunning> {
  request: BenchRequest;
  /** Its id in the history; null where it was not kept. */
  id: number | null;
  report: BenchReport | null;
  regressions: Regression[];
}

export type BenchStateEvent =
  | MeasuringEvent<BenchEvent>
  | { type: "chosen"; request: Partial<BenchRequest> }
  | { type: "shown"; id: number; report: BenchReport; regressions: Regression[] };

/** Off is always measured; it is what the others are compared with. */
export const ARMS: SpeculationChoice[] = [{ mode: "auto" }, ...[2, 3, 4, 5, 6, 7, 8].map((size) => ({ mode: "block" as const, size }))];

export const initial: BenchState = {
  request: { kinds: [], arms: ARMS.filter((arm) => arm.mode !== "block" || arm.size <= 4), repetitions: 5, maxTokens: 128 },
  running: null,
  id: null,
  report: null,
  regressions: [],
  error: null,
  history: null,
};

export function apply(state: BenchState, event: BenchStateEvent): BenchState {
  switch (event.type) {
    case "chosen":
      return state.running ? state : { ...state, request: { ...state.request, ...event.request } };
    case "asked":
      return {
        ...state,
        running: { ...begun(event.turn), prompt: null, speculation: null, last: null },
        error: null,
      };
    case "shown":
      return { ...state, id: event.id, report: event.report, regressions: event.regressions, error: null };
    default:
      return applyShared(state, event, streamed);
  }
}

function streamed(state: BenchState, running: BenchRunning, event: BenchEvent): BenchState {
  switch (event.type) {
    case "started":
      return { ...state, running: { ...running, runs: event.runs } };
    case "run":
      return { ...state, running: { ...running, done: event.done, prompt: event.prompt, speculation: event.speculation } };
    case "measured":
      return { ...state, running: { ...running, last: event.run } };
    case "done":
      return { ...state, running: null, id: event.id, report: event.report, regressions: event.regressions };
    case "failed":
      return { ...state, running: null, error: event.error };
  }
}

/** The same choice of arms with one of them in or out, in the usual order. */
export function toggled(arms: SpeculationChoice[], arm: SpeculationChoice): SpeculationChoice[] {
  const has = (list: SpeculationChoice[], one: SpeculationChoice): boolean => list.some((a) => same(a, one));
  return ARMS.filter((one) => (same(one, arm) ? !has(arms, one) : has(arms, one)));
}

export const same = (a: SpeculationChoice, b: SpeculationChoice): boolean =>
  a.mode === b.mode && (a.mode !== "block" || (b.mode === "block" && a.size === b.size));
