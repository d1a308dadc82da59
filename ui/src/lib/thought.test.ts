import { expect, test } from "vitest";
import { thoughtLine } from "./thought";

const thought = { tokens: 340, ms: 12_000, open: false, ended: null };

test("a thinking block says how long it took, and who ended it if not the model", () => {
  expect(thoughtLine(thought, "", false)).toBe("Thought for 12 s, 340 tokens");
  expect(thoughtLine({ ...thought, tokens: 1 }, "", false)).toBe("Thought for 12 s, 1 token");
  expect(thoughtLine({ ...thought, ended: "person" }, "", false)).toBe("Thought for 12 s, 340 tokens, until you asked for the answer");
  expect(thoughtLine({ ...thought, ended: "budget" }, "", false)).toBe("Thought for 12 s, 340 tokens, reached its limit");
});

test("while it thinks, the line grows", () => {
  expect(thoughtLine({ ...thought, open: true }, "", true)).toBe("Thinking… 12 s, 340 tokens");
  expect(thoughtLine(null, "", true)).toBe("Thinking…");
});

test("of replies of earlier versions the words are counted", () => {
  expect(thoughtLine(null, " one two\nthree ", false)).toBe("Thought for 3 words");
});
