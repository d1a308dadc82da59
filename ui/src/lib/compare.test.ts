import { describe, expect, it } from "vitest";
import type { Difference, Ratio } from "../bindings";
import { arm, benchReport, comparison, figures, measured, run, spread } from "../state/samples";
import { causeOf, cutOf, exactnessOf, kept, range, ratioOf, verdict, winner } from "./compare";

const ratio = (call: Ratio["call"], value = 1.62): Ratio => ({ value, low: value - 0.05, high: value + 0.05, call });

const difference: Difference = {
  side: "on",
  position: 16,
  before: "a",
  expected: "b",
  found: "c",
  expectedTokens: [1],
  foundTokens: [2],
  first: null,
  second: null,
  margin: null,
  ofExpected: null,
  ofFound: null,
  apart: null,
  suspects: [],
  recheck: null,
};

describe("a verdict", () => {
  it("says what is on the page", () => {
    expect(verdict(comparison())).toEqual({ line: "Identical, 300 tokens. 1.62x faster.", tone: "good" });
    expect(verdict(comparison({ speedup: ratio("lower", 0.5) })).line).toBe("Identical, 300 tokens. 2.00x slower.");
  });

  it("calls no winner that was not called", () => {
    for (const call of ["noise", "tooFew"] as const) {
      const { line } = verdict(comparison({ speedup: ratio(call) }));
      expect(line).toMatch(/^Identical, 300 tokens\. /);
      expect(line).not.toMatch(/faster|slower/);
    }
    expect(winner(benchReport({ winner: { verdict: "noise" } }))).toMatch(/No winner/);
    const fastest = { verdict: "fastest", speculation: { mode: "block", size: 3 }, ratio: ratio("higher") } as const;
    expect(winner(benchReport({ winner: fastest }))).toBe("Block 3 is 1.62x as fast as no speculation.");
  });

  it("names what is slower, and says why nothing could be measured", () => {
    const block = { mode: "block", size: 8 } as const;
    const report = (of: "noise" | "unknown", patch: Parameters<typeof arm>[1]): string =>
      winner(benchReport({ winner: { verdict: of }, arms: [arm({ mode: "off" }), arm(block, patch)], runs: [measured()] }));
    expect(report("noise", { speedup: ratio("lower", 0.7) })).toBe("Nothing is faster than off beyond the noise; slower: block 8.");
    expect(report("noise", { speedup: ratio("noise", 0.9) })).toBe("No winner: the differences are within the noise.");
    const plain = figures(block, { speculating: false, reason: "this model has no head." });
    expect(report("unknown", { figures: plain })).toBe("No winner: nothing speculated: this model has no head.");
    const short = benchReport({
      winner: { verdict: "unknown" },
      arms: [{ mode: "off" } as const, block].map((one) => arm(one, { figures: figures(one, { tokensPerSecond: null }) })),
      runs: [measured({ tokensPerSecond: null })],
    });
    expect(winner(short)).toMatch(/too short to measure/);
    expect(cutOf(figures({ mode: "block", size: 4 }, { asked: [block] }))).toBe("Block 8 ran as block 4, the most that is exact here.");
    expect(cutOf(plain)).toBeNull();
  });

  it("counts tokens from one where texts part, and says which side is to blame", () => {
    const on = verdict(comparison({ agreement: { verdict: "different", difference } }));
    expect(on).toEqual({ line: "Different from token 17 on. 1.62x faster.", tone: "bad" });
    const off = verdict(comparison({ agreement: { verdict: "different", difference: { ...difference, side: "off" } } }));
    expect(off.line).toMatch(/not repeatable/);
  });

  it("says when speculation did not run at all", () => {
    const on = figures({ mode: "auto" }, { speculating: false, reason: "this model has no head" });
    expect(verdict(comparison({ on }))).toEqual({ line: "Speculation did not run: this model has no head.", tone: "plain" });
  });

  it("says nothing of what was stopped", () => {
    expect(verdict(comparison({ agreement: { verdict: "unknown" } }))).toEqual({ line: "Stopped before both sides had run.", tone: "plain" });
  });
});

describe("the cause of a difference", () => {
  const recheck = { checked: 14, block: 16, blockBefore: 16 };

  it("is named where the check finds it anew", () => {
    const found = causeOf({ ...difference, suspects: ["product a", "product b"], recheck: { ...recheck, block: 4 } }, "exact");
    expect(found).toMatch(/run again: .*product a; product b\. Load the model again/);
    expect(causeOf({ ...difference, recheck: { ...recheck, block: 4 } }, "exact")).toMatch(/blocks above 4 tokens .*\(16 tokens held when/);
    expect(causeOf({ ...difference, suspects: ["product a"] }, "fast")).toMatch(/^Run as whole blocks in fast mode, .*product a$/);
  });

  it("is said not to be known where it is not", () => {
    expect(causeOf({ ...difference, recheck }, "exact")).toMatch(/none of 14 kinds of operation differs.*not known/);
    expect(causeOf(difference, "exact")).toMatch(/not run again/);
    expect(causeOf(difference, "fast")).toBeNull();
    expect(causeOf({ ...difference, side: "off" }, "exact")).toMatch(/plain steps alone/);
  });
});

describe("numbers", () => {
  it("come with their range", () => {
    expect(range(spread(40, 42.5, 41))).toBe("41.0 (40.0 to 42.5)");
    expect(range(null)).toBe("–");
    expect(ratioOf(ratio("higher"))).toBe("1.62 (1.57 to 1.67)");
    expect(ratioOf(ratio("noise"))).toBe("1.62 (1.57 to 1.67), within the noise");
    expect(ratioOf({ value: 2, low: null, high: null, call: "tooFew" })).toBe("2.00");
  });

  it("are told shortly in the history", () => {
    const one = { id: 1, createdAt: 0, model: "m", appVersion: "1", mlxVersion: "1", identical: true, speedup: 1.4 };
    expect(kept(one)).toBe("identical, 1.40x faster");
    expect(kept({ ...one, identical: false, speedup: 0.5 })).toBe("different, 2.00x slower");
    expect(kept({ ...one, identical: null, speedup: null })).toBe("not compared");
  });
});

describe("the badge", () => {
  it("is about what ran, not about what was asked for", () => {
    expect(exactnessOf(run())).toBe("exact");
    expect(exactnessOf({ ...run(), exactness: "fast" })).toBe("fast");
    expect(exactnessOf(run({ speculating: false }))).toBe("off");
  });
});
