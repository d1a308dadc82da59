import { expect, test } from "vitest";
import { apply } from "./origin";
import { roundText } from "./samples";

test("news take the place of what they know more of", () => {
  const [a, b, c] = [roundText({ pieces: [1] }), roundText({ pieces: [0] }), roundText({ pieces: [2] })];
  let state = apply(null, { type: "began", messageId: 3 });
  state = apply(state, { type: "told", messageId: 3, news: { from: 0, rounds: [a, b], pace: [] } });
  const pace = [{ rounds: 2, tokens: 2, ms: 5 }];
  state = apply(state, { type: "told", messageId: 3, news: { from: 1, rounds: [c, a], pace } });
  expect(state).toEqual({ messageId: 3, rounds: [a, c, a], pace });
  expect(apply(state, { type: "told", messageId: 4, news: { from: 0, rounds: [], pace: [] } })).toBe(state);
  expect(apply(state, { type: "began", messageId: 4 })).toEqual({ messageId: 4, rounds: [], pace: [] });
});
