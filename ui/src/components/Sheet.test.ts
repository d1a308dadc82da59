// @vitest-environment jsdom
import { createRawSnippet, flushSync, mount, unmount, type Component } from "svelte";
import { afterEach, beforeEach, expect, test } from "vitest";
import { closeSheet, dismiss, endToast, openSheet, report, toast, view } from "../state/view.svelte";
import Notice from "./Notice.svelte";
import Sheet from "./Sheet.svelte";
import Toast from "./Toast.svelte";

let opened: Record<string, unknown>[] = [];
const popped: Element[] = [];
const at = (id: string): HTMLElement[] => [...document.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];

beforeEach(() => {
  document.body.innerHTML = "";
  popped.length = 0;
  // There is no top layer here: what is put into it is noted.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
    popped.push(this);
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
  HTMLElement.prototype.showPopover = function () {
    popped.push(this);
  };
});
afterEach(() => {
  for (const component of opened) void unmount(component);
  opened = [];
  dismiss();
  endToast();
  closeSheet();
});

function show<P extends Record<string, unknown>>(component: Component<P>, props: P): void {
  opened.push(mount(component as Component<Record<string, unknown>>, { target: document.body, props }));
  flushSync();
}

const body = createRawSnippet(() => ({ render: () => "<p>Body</p>" }));
function sheet(): void {
  openSheet("settings");
  show(Sheet, { title: "Settings", onclose: closeSheet, children: body });
}

test("what goes wrong while a sheet is open is told in it, and nowhere else", () => {
  show(Notice, { elsewhere: undefined });
  report({ kind: "x", message: "Before.", hint: null });
  flushSync();
  expect(at("error-message").map((e) => e.textContent)).toEqual(["Before."]);
  sheet();
  expect(at("error-message")).toEqual([]);
  report({ kind: "x", message: "The file holds no chats.", hint: "Choose another." });
  flushSync();
  expect(at("error-message").map((e) => e.textContent)).toEqual(["The file holds no chats."]);
  expect(at("error-message")[0]!.closest("dialog")).not.toBeNull();
  at("dismiss")[0]!.click();
  flushSync();
  expect(at("error-message")).toEqual([]);
});

test("a toast lies above the sheet, inside of it, where it can be clicked; it is read out there", () => {
  toast("Three chats were imported.");
  sheet();
  expect(at("toast").map((e) => e.closest("dialog"))).toEqual([document.querySelector("dialog")]);
  // The later one lies above.
  expect(popped.map((e) => e.tagName)).toEqual(["DIALOG", "DIV"]);
  expect(at("sheet-announcement")[0]!.textContent).toBe("");
  toast("Written.");
  flushSync();
  expect(at("sheet-announcement")[0]!.textContent).toBe("Written.");
});

test("Escape ends a toast and leaves its sheet open", () => {
  sheet();
  toast("Written.");
  flushSync();
  const escape = new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true });
  at("toast")[0]!.dispatchEvent(escape);
  flushSync();
  expect([escape.defaultPrevented, view.current.toast]).toEqual([true, null]);
});

test("a toast by itself is in the top layer too", () => {
  show(Toast, {});
  toast("Deleted.");
  flushSync();
  expect(popped).toEqual(at("toast"));
});
