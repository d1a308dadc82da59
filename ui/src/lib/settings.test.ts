import { expect, test } from "vitest";
import { parseLimit, searchSettings, SECTIONS } from "./settings";

const rows = (query: string): string[] => searchSettings(query).flatMap((section) => section.rows);

test("without a query all is shown", () => {
  expect(searchSettings("  ")).toEqual(SECTIONS);
  const all = rows("");
  expect(new Set(all).size).toBe(all.length);
});

test("a setting is found by its name, its section, what is said of it and what else it is called", () => {
  expect(rows("theme")).toEqual(["theme"]);
  expect(rows("APPEARANCE")).toEqual(["theme", "language", "sidebar"]);
  expect(rows("ram")).toEqual(expect.arrayContaining(["memory"]));
  expect(rows("kv bits")).toEqual(["kv"]);
  expect(rows("colours")).toEqual(["theme"]);
  expect(rows("export all")).toEqual(["files"]);
  expect(rows("thème")).toEqual(["theme"]);
});

test("every word counts", () => {
  expect(rows("memory limit")).toEqual(["memory"]);
  expect(rows("theme token")).toEqual([]);
  expect(searchSettings("zebra")).toEqual([]);
});

test("a limit is a number of gigabytes or nothing", () => {
  expect(["", " ", "24", "24,5", " 0.5 "].map(parseLimit)).toEqual([null, null, 24, 24.5, 0.5]);
  expect(["0", "-3", "x", "1e9", "Infinity"].map(parseLimit)).toEqual([undefined, undefined, undefined, undefined, undefined]);
});
