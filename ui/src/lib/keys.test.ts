import { expect, test } from "vitest";
import { actionOf, isComposing, labelOf, sends, SHORTCUTS } from "./keys";

const press = (key: string, mods: Partial<Record<"metaKey" | "ctrlKey" | "altKey" | "shiftKey", boolean>>) => ({
  key,
  metaKey: false,
  ctrlKey: false,
  altKey: false,
  shiftKey: false,
  ...mods,
});

test("Mod is Command on a Mac and Control elsewhere", () => {
  expect(actionOf(press("n", { metaKey: true }), true)).toBe("newChat");
  expect(actionOf(press("n", { ctrlKey: true }), true)).toBeNull();
  expect(actionOf(press("N", { ctrlKey: true }), false)).toBe("newChat");
  expect(actionOf(press("n", { metaKey: true }), false)).toBeNull();
});

test("other modifiers make it another key, but for the slash", () => {
  expect(actionOf(press("r", { ctrlKey: true, shiftKey: true }), false)).toBeNull();
  expect(actionOf(press("/", { ctrlKey: true, shiftKey: true }), false)).toBe("shortcuts");
  expect(actionOf(press("b", { ctrlKey: true, altKey: true }), false)).toBeNull();
  expect(actionOf(press("b", {}), false)).toBeNull();
});

test("Shift makes a search of one chat a search of all", () => {
  expect(actionOf(press("f", { ctrlKey: true }), false)).toBe("find");
  expect(actionOf(press("F", { metaKey: true, shiftKey: true }), true)).toBe("filter");
  expect([labelOf("filter", true), labelOf("filter", false)]).toEqual(["⇧⌘F", "Ctrl Shift F"]);
});

test("no two actions have the same keys", () => {
  const keys = SHORTCUTS.map(({ key, shift }) => `${key} ${shift ?? false}`);
  expect(new Set(keys).size).toBe(keys.length);
});

test("the Enter that ends a composition is the input method's", () => {
  expect(isComposing({ isComposing: true, keyCode: 13 })).toBe(true);
  expect(isComposing({ isComposing: false, keyCode: 229 })).toBe(true);
  expect(isComposing({ isComposing: false, keyCode: 13 })).toBe(false);
});

test("Enter sends where it is wanted so, and with Mod always", () => {
  const enter = (mods: Parameters<typeof press>[1] = {}): ReturnType<typeof press> => press("Enter", mods);
  expect([sends(enter(), true, true), sends(enter(), false, true)]).toEqual([true, false]);
  expect([sends(enter({ metaKey: true }), false, true), sends(enter({ ctrlKey: true }), false, true)]).toEqual([true, false]);
  expect([sends(enter({ ctrlKey: true }), false, false), sends(enter({ ctrlKey: true }), true, false)]).toEqual([true, true]);
  expect([sends(enter({ shiftKey: true }), true, true), sends(enter({ shiftKey: true, metaKey: true }), true, true)]).toEqual([false, false]);
  expect(sends(press("a", {}), true, true)).toBe(false);
});
