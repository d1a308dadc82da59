// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { chats } from "../state/chats.svelte";
import { message } from "../state/samples";
import { turn } from "../state/turn.svelte";
import Conversation from "./Conversation.svelte";

vi.mock("../lib/commands", async (original) =>
  Object.fromEntries(Object.keys(await original<object>()).map((name) => [name, vi.fn(async () => null)])),
);

let resized: () => void = () => {};
let component: Record<string, unknown>;
let scroller: HTMLElement;

beforeEach(() => {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(call: () => void) {
        resized = call;
      }
      observe(): void {}
      disconnect(): void {}
    },
  );
  component = mount(Conversation, { target: document.body });
  flushSync();
  scroller = document.querySelector("[data-testid=conversation]")!;
  Object.defineProperties(scroller, { scrollHeight: { get: () => 900 }, clientHeight: { get: () => 400 } });
});

afterEach(() => {
  void unmount(component);
  vi.unstubAllGlobals();
});

test("the new chat's page shows its top, a chat its end", () => {
  resized();
  expect(scroller.scrollTop).toBe(0);

  turn.dispatch({ type: "loaded", chatId: 1, messages: [message({ id: 1, role: "user", content: "Hi" })] });
  chats.dispatch({ type: "opened", chatId: 1 });
  flushSync();
  resized();
  expect(scroller.scrollTop).toBe(900);

  chats.dispatch({ type: "opened", chatId: null });
  flushSync();
  resized();
  expect(scroller.scrollTop).toBe(0);
  expect(document.querySelector("[data-testid=jump]")).toBeNull();
});

test("a question at the end can be answered, one with a reply cannot", () => {
  const question = message({ id: 1, role: "user", content: "Hi" });
  turn.dispatch({ type: "shown", chatId: 1, messages: [question] });
  chats.dispatch({ type: "opened", chatId: 1 });
  flushSync();
  expect(document.querySelectorAll("[data-testid=answer]")).toHaveLength(1);
  turn.dispatch({ type: "asked", turn: 99, chatId: 1, text: null });
  flushSync();
  expect(document.querySelector("[data-testid=answer]")).toBeNull();
  expect(document.body.textContent).toContain("Waiting for the model");
  turn.dispatch({ type: "lost", turn: 99, error: { kind: "x", message: "x", hint: null } });
  turn.dispatch({ type: "shown", chatId: 1, messages: [question, message({ id: 2, content: "Hello." })] });
  flushSync();
  expect(document.querySelector("[data-testid=answer]")).toBeNull();
});
