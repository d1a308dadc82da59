import { expect, test } from "vitest";
import { run } from "../state/samples";
import { liveRate, points, sureRate } from "./pace";

test("a rate is taken over several rounds, never over one", () => {
  const bins = Array.from({ length: 40 }, (_, n) => ({ rounds: 1, tokens: n % 2 === 0 ? 3 : 1, ms: 10 }));
  const rates = points(bins);
  expect(rates.map((p) => p.rate)).toEqual(Array.from({ length: 33 }, () => expect.closeTo(200)));
  expect([rates[0]!.ms, rates.at(-1)!.ms]).toEqual([80, 400]);
});

test("long replies are smoothed over a twentieth, and a change is seen where it was", () => {
  const bins = Array.from({ length: 200 }, (_, n) => ({ rounds: 10, tokens: 20, ms: n < 100 ? 100 : 200 }));
  const rates = points(bins);
  expect(rates.at(0)!.rate).toBeCloseTo(200);
  expect(rates.at(-1)!.rate).toBeCloseTo(100);
  expect(rates.find((p) => p.rate < 150)!.ms).toBeGreaterThan(10_000);
  expect(rates.find((p) => p.rate < 101)!.ms).toBeLessThan(13_000);
});

test("a few rounds have no pace over time", () => {
  expect(points([])).toEqual([]);
  expect(points(Array.from({ length: 8 }, () => ({ rounds: 1, tokens: 1, ms: 1 })))).toEqual([]);
  expect(points(Array.from({ length: 20 }, () => ({ rounds: 1, tokens: 1, ms: 0 })))).toEqual([]);
});

test("a reply has a rate once two rounds or a quarter of a second of it were written", () => {
  const rate = (rounds: number, decodeMs: number): number => liveRate(run({ rounds, decodeMs, tokensPerSecond: 1394 }));
  expect([rate(0, 0), rate(1, 2), rate(0, 249)]).toEqual([NaN, NaN, NaN]);
  expect([rate(2, 5), rate(1, 250), rate(0, 250)]).toEqual([1394, 1394, 1394]);
  expect([sureRate(0, 0), sureRate(3, 1394), sureRate(9, 40), sureRate(10, 40)]).toEqual([NaN, NaN, NaN, 40]);
});
