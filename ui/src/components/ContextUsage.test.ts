// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as commands from "../lib/commands";
import { chats } from "../state/chats.svelte";
import { setDraft } from "../state/drafts.svelte";
import { model } from "../state/model.svelte";
import { message, ready, run } from "../state/samples";
import { turn } from "../state/turn.svelte";
import ContextUsage from "./ContextUsage.svelte";

vi.mock("../lib/commands", () => ({ countTokens: vi.fn(), saveDraft: vi.fn(async () => null) }));

const counting = vi.mocked(commands.countTokens);
const imported = [message({ id: 1, role: "user", content: "What is a stack?" }), message({ id: 2, content: "A stack gives back last what it took first." })];
let component: Record<string, unknown>;
let target: HTMLElement;
const said = (): string => target.textContent.trim();

beforeEach(() => {
  vi.useFakeTimers();
  counting.mockReset().mockResolvedValue(700);
  model.dispatch({ type: "status", status: ready({ context: 1000 }) });
  chats.dispatch({ type: "opened", chatId: 1 });
});

afterEach(() => {
  void unmount(component);
  setDraft(1, "");
  vi.useRealTimers();
});

function show(messages = imported): void {
  turn.dispatch({ type: "shown", chatId: 1, messages });
  target = document.createElement("div");
  component = mount(ContextUsage, { target });
  flushSync();
}

test("a chat that no model has read is estimated, counted once, and counted anew when it changes", async () => {
  show();
  expect(said()).toMatch(/^~\d\d \/ 1,000 tokens$/);
  await vi.advanceTimersByTimeAsync(1000);
  flushSync();
  expect(said()).toBe("~700 / 1,000 tokens");
  expect(counting).toHaveBeenCalledWith("What is a stack?\n\nA stack gives back last what it took first.");

  chats.dispatch({ type: "opened", chatId: 2 });
  flushSync();
  chats.dispatch({ type: "opened", chatId: 1 });
  await vi.advanceTimersByTimeAsync(1000);
  expect(counting).toHaveBeenCalledTimes(1);

  turn.dispatch({ type: "shown", chatId: 1, messages: imported.slice(0, 1) });
  await vi.advanceTimersByTimeAsync(1000);
  expect(counting).toHaveBeenLastCalledWith("What is a stack?");
});

test("a measured chat is not counted, and what does not fit is said in words", async () => {
  show([message({ run: run({ promptTokens: 900, tokens: 50 }) })]);
  expect(said()).toBe("950 / 1,000 tokens");
  setDraft(1, "word ".repeat(100));
  flushSync();
  await vi.advanceTimersByTimeAsync(300);
  flushSync();
  expect(said()).toMatch(/^May not fit: 950 \+ ~\d+ \/ 1,000 tokens$/);
  await vi.advanceTimersByTimeAsync(1000);
  expect(counting.mock.calls.map(([text]) => text.slice(0, 4))).toEqual(["word"]);
});
