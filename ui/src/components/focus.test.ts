// @vitest-environment jsdom
import { flushSync, mount, tick, unmount, type Component } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as commands from "../lib/commands";
import { ask, keepMessage } from "../state/actions.svelte";
import { chats } from "../state/chats.svelte";
import { message } from "../state/samples";
import { regenerate, turn } from "../state/turn.svelte";
import { askDelete, view } from "../state/view.svelte";
import Confirm from "./Confirm.svelte";
import ConfirmDelete from "./ConfirmDelete.svelte";
import FindBar from "./FindBar.svelte";

vi.mock("../lib/commands", () => ({ deleteMessage: vi.fn(), regenerate: vi.fn(async () => null) }));

let opened: Record<string, unknown>[] = [];
const at = (id: string): HTMLElement => document.querySelector<HTMLElement>(`[data-testid="${id}"]`)!;

beforeEach(() => {
  document.body.innerHTML = '<textarea data-composer></textarea><article data-id="4"><button data-testid="message-menu"></button></article><article data-id="5"><button data-testid="message-menu"></button></article>';
});
afterEach(() => {
  for (const component of opened) void unmount(component);
  opened = [];
});

function show<P extends Record<string, unknown>>(component: Component<P>, props: P): void {
  opened.push(mount(component as Component<Record<string, unknown>>, { target: document.body, props }));
  flushSync();
}

const focused = (): string | undefined => (document.activeElement as HTMLElement).closest<HTMLElement>("[data-id]")?.dataset.id ?? document.activeElement?.tagName;

test("a question asks once: its button does it, Escape is no and closes nothing else", () => {
  const [onyes, onno] = [vi.fn(), vi.fn()];
  show(Confirm, { question: "Remove it?", yes: "Remove", testid: "ask", onyes, onno });
  expect(document.activeElement).toBe(at("ask-yes"));
  const escape = new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true });
  at("ask-yes").dispatchEvent(escape);
  expect([escape.defaultPrevented, onno.mock.calls.length, onyes.mock.calls.length]).toEqual([true, 1, 0]);
  at("ask-yes").click();
  expect(onyes).toHaveBeenCalledTimes(1);
});

test("the key that finds goes back to its field, with the words in it selected", () => {
  chats.dispatch({ type: "opened", chatId: 1 });
  show(FindBar, { messages: [], showAll: async () => document.body, look: () => {} });
  const field = at("find-input") as HTMLInputElement;
  field.value = "stack";
  field.blur();
  ask("find", "key");
  expect(document.activeElement).toBe(field);
  expect([field.selectionStart, field.selectionEnd]).toEqual([0, 5]);
});

test("a message that stays has the focus again", async () => {
  askDelete(5);
  keepMessage();
  await tick();
  expect([view.current.confirming, focused()]).toEqual([null, "5"]);
});

test("after a deletion one goes on at the version that is shown then, else where one writes", async () => {
  vi.mocked(commands.deleteMessage).mockResolvedValue({ summary: { id: 1 }, messages: [] } as never);
  show(ConfirmDelete, { message: message({ id: 5, versions: [4, 5] }) });
  document.querySelector('[data-id="5"]')!.remove();
  at("confirm-message-yes").click();
  await vi.waitFor(() => expect(focused()).toBe("4"));
  document.querySelector('[data-id="4"]')!.remove();
  at("confirm-message-yes").click();
  await vi.waitFor(() => expect(focused()).toBe("TEXTAREA"));
});

test("while another version is written, one is where one writes", async () => {
  at("message-menu").focus();
  regenerate(message({ id: 5 }));
  await tick();
  expect(focused()).toBe("TEXTAREA");
  turn.dispatch({ type: "lost", turn: turn.current.live!.turn, error: { kind: "x", message: "x", hint: null } });
});
