import { expect, test } from "vitest";
import { points } from "./pace";

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
