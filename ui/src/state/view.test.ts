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

test("editing and deleting a message exclude each other and end with a move, as a search does", () => {
  const state = apply(apply(initial, { type: "editing", messageId: 5 }), { type: "confirming", messageId: 6 });
  expect(state).toMatchObject({ editing: null, confirming: 6 });
  const finding = apply(state, { type: "finding", on: true });
  expect(apply(finding, { type: "moved" })).toMatchObject({ confirming: null, finding: false });
});

test("what is sought twice is brought into sight twice", () => {
  const once = apply(initial, { type: "sought", messageId: 5, query: "" });
  expect(apply(once, { type: "sought", messageId: 5, query: "" }).target).not.toEqual(once.target);
});

test("a toast is read out, and its way back goes with it", () => {
  const undo = { chatId: 3, wasOpen: true };
  const state = apply(initial, { type: "toast", text: "Deleted.", undo });
  expect(state).toMatchObject({ toast: { undo }, announcement: "Deleted." });
  expect(apply(state, { type: "toastOver" }).toast).toBeNull();
});

test("what was read out is not read out again where a sheet opens or closes", () => {
  const told = apply(initial, { type: "announced", text: "Done." });
  expect(apply(told, { type: "sheet", sheet: "settings" }).announcement).toBe("");
  expect(apply(told, { type: "again", messageId: 1 }).announcement).toBe("");
});
