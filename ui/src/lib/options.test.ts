import { expect, test } from "vitest";
import { initial } from "../state/settings";
import { changed, defaultOf, effective, parseOption } from "./options";

test("an empty field is the model's default, a bad one nothing", () => {
  expect(parseOption("temperature", " ")).toBeNull();
  expect(parseOption("temperature", "0,7")).toBe(0.7);
  expect(parseOption("temperature", "warm")).toBeUndefined();
  expect(parseOption("temperature", "-1")).toBeUndefined();
});

test("whole numbers only where they are wanted, and seeds below 2^53", () => {
  expect(parseOption("topK", "40")).toBe(40);
  expect(parseOption("topK", "4.5")).toBeUndefined();
  expect(parseOption("seed", "9007199254740991")).toBe(2 ** 53 - 1);
  expect(parseOption("seed", "9007199254740993")).toBeUndefined();
});

test("what was set by hand is counted, speculation apart", () => {
  const { options } = initial.settings;
  expect(changed({ ...options, speculation: { mode: "off" } })).toBe(0);
  expect(changed({ ...options, exactness: "fast" })).toBe(1);
  expect(changed({ ...options, temperature: 0, thinking: false })).toBe(2);
});

test("the model's own values are known where it has them", () => {
  const defaults = { temperature: 0.7, topP: 0.9, topK: 20, minP: 0 };
  expect(defaultOf("temperature", defaults)).toBe(0.7);
  expect(defaultOf("seed", defaults)).toBeNull();
  expect(defaultOf("topK", null)).toBeNull();
});

test("a chat's own sampling goes before that of all, and speculation is the composer's", () => {
  const shared = { ...initial.settings.options, temperature: 0.5, speculation: { mode: "off" } as const };
  const own = { ...initial.settings.options, temperature: 0.1 };
  expect(effective({ systemPrompt: "", options: null }, shared)).toBe(shared);
  expect(effective({ systemPrompt: "", options: own }, shared)).toEqual({ ...own, speculation: { mode: "off" } });
});
