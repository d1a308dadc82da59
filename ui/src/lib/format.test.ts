import { expect, test } from "vitest";
import { bytes, count, duration, percent, plural, rate } from "./format";
import { strings } from "./strings";

test("numbers are grouped", () => expect(count(32768)).toBe("32,768"));

test("a rate keeps one decimal below a hundred", () => {
  expect([42.123, 9, 99.94, 99.96, 1234.5, NaN].map(rate)).toEqual(["42.1", "9.0", "99.9", "100", "1,235", "–"]);
});

test("a share says all or nothing only if it is", () => {
  expect([0.814, 1, 0.999, 0, 0.001, NaN].map(percent)).toEqual(["81 %", "100 %", "99 %", "0 %", "<1 %", "–"]);
});

test("a duration is read at a glance", () => {
  expect([38.4, 99.6, 412, 9_949, 12_400, 200_000].map(duration)).toEqual(["38 ms", "0.1 s", "0.4 s", "9.9 s", "12 s", "3 min 20 s"]);
});

test("bytes change unit before they need four digits", () => {
  expect([0, 999, 1000, 3_240_000, 999_600, 18_400_000_000].map(bytes)).toEqual(["0 B", "999 B", "1.0 kB", "3.2 MB", "1.0 MB", "18 GB"]);
});

test("one is not many", () => expect([plural(1, strings.counted.tokens), plural(1200, strings.counted.tokens)]).toEqual(["1 token", "1,200 tokens"]));
