import { expect, test } from "vitest";
import { deepest, shade, stretches } from "./origin";

const round = (length: number, accepted = 0, tokens = accepted + 1) => ({ length, tokens, drafted: 2, accepted });

test("rounds are laid over the text, and nothing of it is lost", () => {
  const text = "One 👩‍👩‍👧 two.";
  const cut = stretches(text, [round(4, 2), round(0, 1), round(9, 0), round(2, 1)]);
  expect(cut.map((s) => [s.text, s.round?.accepted])).toEqual([["One ", 2], [text.slice(4, 13), 0], [text.slice(13, 15), 1], [text.slice(15), undefined]]);
  expect(cut.map((s) => s.text).join("")).toBe(text);
});

test("more than there is of the text is no harm, and what is not known is said so", () => {
  expect(stretches("ab", [round(5, 1), round(3)])).toEqual([{ text: "ab", round: round(5, 1) }]);
  expect(stretches("ab", [round(2, 0, 0)])).toEqual([{ text: "ab", round: null }]);
  expect(stretches("ab", [])).toEqual([{ text: "ab", round: null }]);
});

test("shades end where they cannot be told apart", () => {
  expect([shade(null), shade(round(1, 0)), shade(round(1, 3)), shade(round(1, 12))]).toEqual([0, 0, 3, 4]);
  expect(deepest(stretches("abcd", [round(1, 2), round(1, 1)]))).toBe(2);
});
