// @vitest-environment jsdom
import { flushSync, mount, tick, unmount } from "svelte";
import { afterEach, beforeEach, expect, test } from "vitest";
import { chats, cancelRename, filter, startRename } from "../state/chats.svelte";
import { chat } from "../state/samples";
import ChatList from "./ChatList.svelte";

let component: Record<string, unknown>;
const items = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-chat]")];

beforeEach(() => {
  const many = Array.from({ length: 320 }, (_, at) => chat({ id: at + 1, title: `Chat ${at + 1}`, updatedAt: 320 - at, pinned: at === 250 }));
  chats.dispatch({ type: "listed", chats: many });
  component = mount(ChatList, { target: document.body });
  flushSync();
});

afterEach(() => {
  cancelRename();
  filter("");
  void unmount(component);
});

test("of many chats the first are drawn, the pinned one among them, and others as one goes there", async () => {
  expect(items()).toHaveLength(100);
  expect(items()[0]!.textContent).toContain("Chat 251");
  document.querySelector("[data-testid=chat-list]")!.dispatchEvent(new Event("scroll"));
  flushSync();
  expect(items()).toHaveLength(200);
  items()[0]!.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
  await tick();
  expect(document.activeElement?.textContent).toContain("Chat 320");
});

test("one that is renamed is there, and a search sees them all", () => {
  startRename(300);
  flushSync();
  expect(document.querySelector<HTMLInputElement>("[data-testid=chat-title-input]")?.value).toBe("Chat 300");
  cancelRename();
  filter("chat 319");
  flushSync();
  expect(items().map((item) => item.textContent?.trim())).toEqual(["Chat 319"]);
});
