import { describe, expect, it } from "vitest";
import type { BenchEvent, SpeculationChoice } from "../bindings";
import { apply, initial, toggled, type BenchState, type BenchStateEvent } from "./bench";
import { share } from "./measuring";
import { benchReport, measured } from "./samples";

const after = (...events: BenchStateEvent[]): BenchState => events.reduce(apply, initial);
const heard = (turn: number, ...events: BenchEvent[]): BenchStateEvent[] => events.map((event) => ({ type: "streamed", turn, event }));
const asked: BenchStateEvent = { type: "asked", turn: 1 };
const block = (size: number): SpeculationChoice => ({ mode: "block", size });

describe("a benchmark", () => {
  it("tells how far it is and what runs", () => {
    const state = after(
      asked,
      ...heard(
        1,
        { type: "started", runs: 10, model: "Tiny" },
        { type: "run", done: 5, prompt: "facts", speculation: block(3), repetition: 1 },
        { type: "measured", run: measured({ tokens: 9 }) },
      ),
    );
    expect(state.running).toMatchObject({ runs: 10, done: 5, prompt: "facts", speculation: block(3) });
    expect(state.running?.last?.tokens).toBe(9);
    expect(share(state.running!)).toBe(0.5);
  });

  it("keeps the last report until the next is there, and what became worse with it", () => {
    const first = after(asked, ...heard(1, { type: "done", id: 4, report: benchReport(), regressions: [] }));
    const again = apply(first, { type: "asked", turn: 2 });
    expect(again.report).toBe(first.report);
    const worse = [{ what: "tokens/s, block 3", before: 40, after: 30, ratio: null, changes: [] }];
    const done = heard(2, { type: "done", id: 5, report: benchReport({ maxTokens: 9 }), regressions: worse }).reduce(apply, again);
    expect(done).toMatchObject({ running: null, id: 5, regressions: worse });
    expect(done.report?.maxTokens).toBe(9);
  });

  it("cannot be changed while it runs, and ignores an earlier one", () => {
    const state = after(asked);
    expect(apply(state, { type: "chosen", request: { repetitions: 9 } })).toBe(state);
    expect(heard(7, { type: "started", runs: 3, model: "x" }).reduce(apply, state)).toBe(state);
  });

  it("ends with its error and keeps its settings", () => {
    const error = { kind: "busy", message: "busy", hint: null };
    const state = after({ type: "chosen", request: { repetitions: 10 } }, asked, ...heard(1, { type: "failed", error }));
    expect(state).toMatchObject({ running: null, error });
    expect(state.request.repetitions).toBe(10);
  });

  it("takes block sizes in and out in their usual order", () => {
    const arms = toggled([block(4)], block(2));
    expect(arms).toEqual([block(2), block(4)]);
    expect(toggled(arms, { mode: "auto" })).toEqual([{ mode: "auto" }, block(2), block(4)]);
    expect(toggled(arms, block(4))).toEqual([block(2)]);
  });
});
