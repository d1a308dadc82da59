import { expect, test } from "vitest";
import { apply, initial } from "./view";

test("a click on a live line opens the inspector on it, a second closes it", () => {
  const open = apply(initial, { type: "inspected", messageId: 5 });
  expect(open).toMatchObject({ inspector: true, inspected: 5 });
  expect(apply(open, { type: "inspected", messageId: 6 })).toMatchObject({ inspector: true, inspected: 6 });
  expect(apply(open, { type: "inspected", messageId: 5 }).inspector).toBe(false);
});

test("moving to another chat follows its last reply and drops the notice", () => {
  const error = { kind: "x", message: "x", hint: null };
  const state = { ...initial, inspector: true, inspected: 5, overlay: true, notice: error };
  expect(apply(state, { type: "moved" })).toMatchObject({ inspector: true, inspected: null, overlay: false, notice: null });
});
