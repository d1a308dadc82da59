import { expect, test } from "vitest";
import type { RoundText } from "../bindings";
import { roundText as round } from "../state/samples";
import { deepest, shade, spelled, stretches, visible } from "./origin";

const old = (length: number, accepted = 0, tokens = accepted + 1): RoundText => round({ length, tokens, drafted: 2, accepted });
const short = (cut: ReturnType<typeof stretches>): unknown[] => cut.map((s) => [s.text, s.kind, s.depth, s.rejected]);

test("each token is laid over its own text, and nothing of it is lost", () => {
  const text = "One 👩‍👩‍👧 two.";
  const rounds = [round({ pieces: [3] }), round({ drafted: 3, accepted: 2, pieces: [1, 0, 8], rejected: " three" }), round({ drafted: 1, accepted: 1, pieces: [4, 1] })];
  const cut = stretches(text, rounds);
  expect(short(cut)).toEqual([
    ["One", "own", 0, null],
    [" ", "draft", 1, null],
    ["👩‍👩‍👧", "own", 0, " three"],
    [" two", "draft", 1, null],
    [".", "own", 0, null],
  ]);
  expect(cut.map((s) => s.text).join("")).toBe(text);
});

test("the thinking block has pieces of its own", () => {
  const rounds = [round({ drafted: 1, accepted: 1, pieces: [0, 2], thinking: [3, 0] }), round({ pieces: [1] })];
  expect(short(stretches("Hm.", rounds, "thinking"))).toEqual([["Hm.", "draft", 1, null]]);
  expect(short(stretches("No.", rounds))).toEqual([["No", "own", 0, null], [".", "own", 0, null]]);
});

test("replies of earlier versions are shown by round", () => {
  const cut = stretches("One two.", [old(4, 2), old(0, 1), old(3, 0)]);
  expect(short(cut)).toEqual([["One ", "round", 2, null], ["two", "round", 0, null], [".", "unknown", 0, null]]);
});

test("more than there is of the text is no harm, and what is not known is said so", () => {
  expect(short(stretches("ab", [round({ drafted: 2, accepted: 1, pieces: [5, 3] })]))).toEqual([["ab", "draft", 1, null]]);
  expect(short(stretches("ab", [old(2, 0, 0)]))).toEqual([["ab", "unknown", 0, null]]);
  expect(short(stretches("ab", []))).toEqual([["ab", "unknown", 0, null]]);
});

test("shades end where they cannot be told apart", () => {
  const cut = stretches("abcdef", [round({ drafted: 6, accepted: 6, pieces: [1, 1, 1, 1, 1, 1] })]);
  expect(cut.map(shade)).toEqual([1, 2, 3, 4, 4, 4]);
  expect(deepest(cut)).toBe(4);
  expect(deepest([])).toBe(0);
});

test("a round is spelled with its drafts and its own token", () => {
  const rounds = [round({ pieces: [0], thinking: [2] }), round({ drafted: 4, accepted: 1, pieces: [2, 1], rejected: "x" }), round({ drafted: 2, accepted: 2, pieces: [1, 0] })];
  expect(spelled("abcd", "Hm", rounds, 0)).toEqual({ accepted: ["ab"], rejected: "x", behind: 2, own: "c" });
  expect(spelled("abcd", "Hm", rounds, 1)).toEqual({ accepted: ["d", ""], rejected: null, behind: 0, own: null });
  expect(spelled("abcd", "Hm", rounds, 2)).toBeNull();
  expect(spelled("abcd", "", [old(4, 1)], 0)).toBeNull();
});

test("white space that stands alone is seen", () => {
  expect([visible("\n\n"), visible(" "), visible(" a\n"), visible("b")]).toEqual(["↵↵", "␣", " a↵", "b"]);
});
