import { afterEach, expect, test } from "vitest";
import { bytes, count, moment, percent, plural, rate } from "../lib/format";
import { speak, strings } from "../lib/strings";
import { differences } from "./catalogue";
import { languageOf, languages, localeOf } from ".";
import { en } from "./en";
import { pseudo } from "./pseudo";

afterEach(() => void speak("en", ["en-US"]));

test("every language has what English has", () => {
  for (const { tag, words } of languages) expect(differences(en, words), tag).toEqual([]);
});

test("what a language lacks is found", () => {
  const english = { a: "x", b: { c: (n: string) => n, d: ["p", "q"] }, n: { one: "token", other: "tokens" } };
  expect(differences(english, { ...english, n: { one: "a", few: "b", other: "c" } })).toEqual([]);
  expect(differences(english, { a: () => "x", b: { c: () => "", d: ["p"] }, n: { one: "a" }, e: "" })).toEqual([
    "a: function, not string",
    "b.c: 0 values, not 1",
    "b.d.1: missing",
    "n.other: missing",
    "e: not in English",
  ]);
});

test("a setting names a language, or leaves it to the system", () => {
  const known = ["en", "de", "pt"].map((tag) => ({ tag, name: tag, words: en }));
  const tag = (setting: string, preferred: string[]): string => languageOf(setting, preferred, known).tag;
  expect(tag("de", ["en-US"])).toBe("de");
  expect(tag("system", ["fr-FR", "pt-BR", "de"])).toBe("pt");
  expect(tag("system", ["fr"])).toBe("en");
  expect(tag("xx", [])).toBe("en");
  expect(localeOf(known[0]!, ["de-DE", "en-GB"])).toBe("en-GB");
  expect(localeOf(known[1]!, ["fr-FR"])).toBe("de");
});

test("numbers and dates are those of the language", () => {
  speak("en", ["de-DE"]);
  expect([count(32768), rate(9), bytes(3_240_000), percent(0.81)]).toEqual(["32,768", "9.0", "3.2 MB", "81 %"]);
  const day = Date.UTC(2026, 10, 30, 12);
  speak("en", ["en-GB"]);
  expect(moment(day)).toMatch(/30 Nov 2026/);
  speak("en", ["en-US"]);
  expect(moment(day)).toMatch(/Nov 30, 2026/);
});

test("a strange English shows what is in no catalogue", () => {
  expect(speak("en-XA", [])).toBe("en-XA");
  expect(strings.settings.title).toBe("[Šéttíñğš]");
  expect(strings.sidebar.noMatch("fox")).toMatch(/^\[.*föx.*\]$/);
  expect(plural(2, strings.counted.tokens)).toBe("2 [tökéñš]");
  const values = pseudo({ f: (a: string, b: number) => a + b, n: 3, list: ["a", ""] });
  expect([values.f.length, values.n, values.list]).toEqual([2, 3, ["[á]", ""]]);
});
