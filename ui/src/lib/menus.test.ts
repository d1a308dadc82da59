import { expect, test } from "vitest";
import { SHORTCUTS } from "./keys";
import { acceleratorOf, commandsOf, menus, nameOf } from "./menus";

const all = commandsOf(menus());

test("every key is in a menu, and no command is there twice", () => {
  expect(new Set(all).size).toBe(all.length);
  for (const { action } of SHORTCUTS) expect(all).toContain(action);
});

test("a menu shows the keys of the window, and no two of them are the same", () => {
  expect([acceleratorOf("newChat"), acceleratorOf("filter"), acceleratorOf("settings")]).toEqual(["CmdOrCtrl+N", "CmdOrCtrl+Shift+F", "CmdOrCtrl+,"]);
  expect(acceleratorOf("importChats")).toBeUndefined();
  const keys = all.map(acceleratorOf).filter(Boolean);
  expect(new Set(keys).size).toBe(SHORTCUTS.length);
});

test("keys that the system's own items have are left to them", () => {
  const taken = ["Z", "Shift+Z", "X", "C", "V", "A", "H", "Q", "M", "W"].map((key) => `CmdOrCtrl+${key}`);
  for (const command of all) expect(taken).not.toContain(acceleratorOf(command));
});

test("every command has words of its own", () => {
  const names = all.map(nameOf);
  expect(names.every(Boolean)).toBe(true);
  expect(new Set(names).size).toBe(names.length);
});
