import { expect, test } from "vitest";
import { run } from "../state/samples";
import { columns } from "./rounds";

test("few rounds have a column each, filled from the first position", () => {
  const cols = columns(run({ acceptedPerRound: [2, 0, 1], drafted: 6 }), 40);
  expect(cols.map((c) => c.cells)).toEqual([[1, 1], [0, 0], [1, 0]]);
  expect(cols[2]).toMatchObject({ first: 2, rounds: 1, drafted: 2, accepted: 1 });
});

test("a last round cut short shows only what it drafted", () => {
  const cols = columns(run({ acceptedPerRound: [2, 1], drafted: 3 }), 40);
  expect(cols[1]).toMatchObject({ drafted: 1, accepted: 1, cells: [1, null] });
});

test("many rounds share columns and none is lost", () => {
  const acceptedPerRound = Array.from({ length: 1001 }, (_, i) => i % 3);
  const accepted = acceptedPerRound.reduce((a, b) => a + b, 0);
  const cols = columns(run({ acceptedPerRound, drafted: 2002, accepted }), 48);
  expect(cols.length).toBeLessThanOrEqual(48);
  expect(cols.reduce((n, c) => n + c.rounds, 0)).toBe(1001);
  expect(cols.reduce((n, c) => n + c.accepted, 0)).toBe(accepted);
  expect(cols.reduce((n, c) => n + c.drafted, 0)).toBe(2002);
  expect(cols[1]?.first).toBe(cols[0]?.rounds);
  expect(cols[0]?.cells[0]).toBeCloseTo(2 / 3, 1);
  expect(cols[0]?.cells[1]).toBeCloseTo(1 / 3, 1);
});

test("a plain run has no strip", () => {
  expect(columns(run({ blockSize: 1, acceptedPerRound: [], drafted: 0 }), 40)).toEqual([]);
  expect(columns(run({ acceptedPerRound: [] }), 40)).toEqual([]);
});
