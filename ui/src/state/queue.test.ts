import { expect, test } from "vitest";
import { afterTurn, apply, type Queued } from "./queue";

const queued: Queued = { chatId: 1, text: "Next" };

test("one message waits, and a second does not push it out", () => {
  const state = apply(null, { type: "queued", chatId: 1, text: "Next" });
  expect(state).toEqual(queued);
  expect(apply(state, { type: "queued", chatId: 2, text: "Other" })).toBe(state);
  expect(apply(state, { type: "removed" })).toBeNull();
});

test("one that waits for a new chat goes there, and with a deleted one", () => {
  const waiting = apply(null, { type: "queued", chatId: null, text: "Next" });
  expect(apply(waiting, { type: "began", chatId: 7 })?.chatId).toBe(7);
  expect(apply(queued, { type: "began", chatId: 7 })).toBe(queued);
  expect(apply(queued, { type: "forgotten", chatId: 1 })).toBeNull();
  expect(apply(queued, { type: "forgotten", chatId: 2 })).toBe(queued);
});

test("it is sent after a whole reply and comes back after one that broke off", () => {
  expect((["complete", "length", "stopped", "failed"] as const).map(afterTurn)).toEqual(["send", "send", "giveBack", "giveBack"]);
});
