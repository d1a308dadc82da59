import { describe, expect, it } from "vitest";
import type { CompareEvent } from "../bindings";
import { apply, initial, type CompareState, type CompareStateEvent } from "./compare";
import { share } from "./measuring";
import { comparison, measured } from "./samples";

const after = (...events: CompareStateEvent[]): CompareState => events.reduce(apply, initial);
const heard = (turn: number, ...events: CompareEvent[]): CompareStateEvent[] =>
  events.map((event) => ({ type: "streamed", turn, event }));

const opened: CompareStateEvent = { type: "opened", messageId: 3, prompt: "Why?" };
const asked: CompareStateEvent = { type: "asked", turn: 1 };
const delta = (side: "off" | "on", text: string): CompareEvent => ({ type: "delta", side, text, tokens: text.length, tokensPerSecond: 40 });

describe("a comparison", () => {
  it("streams each side into its own column, anew with each run", () => {
    const state = after(
      opened,
      asked,
      ...heard(
        1,
        { type: "started", runs: 8, model: "Tiny", prompt: "Why?" },
        { type: "run", side: "off", repetition: 0 },
        delta("off", "Be"),
        delta("off", "cause"),
        { type: "run", side: "on", repetition: 0 },
        { type: "prefill", side: "on", done: 4, total: 12 },
      ),
    );
    expect(state.off.text).toBe("Because");
    expect(state.on.prefill).toEqual({ done: 4, total: 12 });
    expect(state.running).toMatchObject({ runs: 8, done: 1, side: "on", repetition: 0 });
    const next = [...heard(1, delta("on", "So"), { type: "run", side: "on", repetition: 1 }, delta("on", "B"))].reduce(apply, state);
    expect(next.on).toEqual({ text: "B", tokens: 1, rate: NaN, prefill: null });
    expect(next.off.text).toBe("Because");
  });

  it("shows the result in place of what was streamed", () => {
    const state = after(opened, asked, ...heard(1, delta("off", "Bec"), { type: "done", id: 9, comparison: comparison() }));
    expect(state.running).toBeNull();
    expect(state.off.text).toBe("Because.");
    expect([state.off.tokens, state.on.tokens]).toEqual([30, 31]);
    expect(state.result?.agreement.verdict).toBe("identical");
  });

  it("ignores what an earlier one still says", () => {
    const state = after(opened, asked, ...heard(1, { type: "failed", error: { kind: "x", message: "m", hint: null } }), { type: "asked", turn: 2 });
    const same = heard(1, delta("off", "late"), { type: "done", id: 1, comparison: comparison() }).reduce(apply, state);
    expect(same).toEqual(state);
    expect(apply(state, { type: "lost", turn: 1, error: { kind: "x", message: "m", hint: null } })).toEqual(state);
  });

  it("keeps its prompt while it runs, and is about another reply only afterwards", () => {
    const running = after(opened, asked);
    expect(apply(running, { type: "opened", messageId: 8, prompt: "Other" })).toBe(running);
    expect(apply(running, { type: "shown", result: comparison() })).toBe(running);
    expect(after(opened, { type: "opened", messageId: 8, prompt: "Other" })).toMatchObject({ messageId: 8, prompt: "Other", result: null });
  });

  it("becomes one of a new prompt when the prompt is written", () => {
    expect(after(opened, { type: "written", prompt: "What else?" })).toMatchObject({ messageId: null, prompt: "What else?" });
  });

  it("ends with its error", () => {
    const error = { kind: "busy", message: "busy", hint: null };
    expect(after(opened, asked, ...heard(1, { type: "failed", error }))).toMatchObject({ running: null, error });
    expect(after(opened, asked, { type: "lost", turn: 1, error })).toMatchObject({ running: null, error });
  });

  it("counts runs that are over", () => {
    const running = after(opened, asked, ...heard(1, { type: "started", runs: 4, model: "T", prompt: "" })).running!;
    expect(share(running)).toBe(0);
    const later = after(
      opened,
      asked,
      ...heard(1, { type: "started", runs: 4, model: "T", prompt: "" }, { type: "run", side: "off", repetition: 0 }),
      ...heard(1, { type: "run", side: "on", repetition: 0 }, { type: "measured", side: "on", run: measured() }),
    ).running!;
    expect(share(later)).toBe(0.25);
  });
});
