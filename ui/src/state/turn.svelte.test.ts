// @vitest-environment jsdom
import { flushSync } from "svelte";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { AppError, TurnEvent } from "../bindings";
import * as commands from "../lib/commands";
import { attachedTo, attachText, detachAll } from "./attachments.svelte";
import { chats } from "./chats.svelte";
import { changeConfig, changeSampling, configOf, optionsFor } from "./configs.svelte";
import { draftOf, flushDrafts, setDraft } from "./drafts.svelte";
import { editOf, hasEdit, keepEdit } from "./edits.svelte";
import { chat, message, run } from "./samples";
import { settings } from "./settings.svelte";
import { answer, enter, queue, sendAlone, sendEdited, turn, unanswered, writeLast } from "./turn.svelte";

vi.mock("../lib/commands", () => ({
  answerMessage: vi.fn(),
  configureChat: vi.fn(async () => null),
  editMessage: vi.fn(),
  regenerate: vi.fn(),
  saveDraft: vi.fn(async () => null),
  sendMessage: vi.fn(),
  updateSettings: vi.fn(async (all: unknown) => all),
}));

/** What a mocked command was told to report to. */
const channelOf = (command: unknown): ((event: TurnEvent) => void) => vi.mocked(command as typeof commands.sendMessage).mock.lastCall!.at(-1) as never;

const user = message({ id: 10, role: "user", content: "Hi" });
const reply = message({ id: 11, status: "streaming" });
const started: TurnEvent = { type: "started", chat: chat(), user, assistant: reply };
const done: TurnEvent = { type: "done", message: { ...reply, content: "Hello.", status: "complete" }, chat: chat() };
const refusal: AppError = { kind: "engine_busy", message: "It is busy.", hint: null };

function open(messages = [user]): void {
  enter(1);
  turn.dispatch({ type: "loaded", chatId: 1, messages });
}

beforeEach(() => {
  turn.dispatch({ type: "forgotten", chatId: 1 });
  chats.dispatch({ type: "listed", chats: [chat()] });
  chats.dispatch({ type: "opened", chatId: null });
  for (const command of Object.values(commands)) vi.mocked(command).mockClear();
});

describe("a question without a reply", () => {
  test("is answered where it stands", () => {
    open();
    expect(unanswered()).toBe(user);
    writeLast();
    expect(commands.answerMessage).toHaveBeenCalledWith(10, optionsFor(1), expect.any(Function));
    const tell = channelOf(commands.answerMessage);
    tell(started);
    expect(turn.current.conversations[1]).toEqual([user, reply]);
    answer(user);
    expect(commands.answerMessage).toHaveBeenCalledTimes(1);
    tell(done);
    expect(turn.current.conversations[1]?.at(-1)?.content).toBe("Hello.");
  });

  test("is told from one with a reply, which is written again", () => {
    open([user, { ...reply, status: "complete" }]);
    expect(unanswered()).toBeUndefined();
    writeLast();
    expect(commands.answerMessage).not.toHaveBeenCalled();
    expect(commands.regenerate).toHaveBeenCalledWith(11, optionsFor(1), expect.any(Function));
    channelOf(commands.regenerate)(done);
  });
});

test("an edit is kept until its version is stored", () => {
  open([user, { ...reply, status: "complete" }]);
  keepEdit(user, { words: "Hi, all", files: [] });
  sendEdited(user, "Hi, all");
  channelOf(commands.editMessage)({ type: "failed", error: refusal, message: null });
  expect(editOf(user).words).toBe("Hi, all");
  sendEdited(user, "Hi, all");
  channelOf(commands.editMessage)(started);
  expect(hasEdit(10)).toBe(false);
  channelOf(commands.editMessage)(done);
});

test("an edit that changes nothing is none", () => {
  keepEdit(user, { words: "Hi!", files: [] });
  expect(hasEdit(10)).toBe(true);
  keepEdit(user, { words: "Hi", files: [] });
  expect(hasEdit(10)).toBe(false);
});

test("an example is sent by itself: the draft and its files stay", () => {
  setDraft(null, "half a thought");
  attachText(null, "a file");
  sendAlone("What is 12 + 30?");
  expect(vi.mocked(commands.sendMessage).mock.lastCall?.slice(0, 2)).toEqual([null, "What is 12 + 30?"]);
  // Another waits for its end, and a third has no place to wait in.
  sendAlone("Next");
  sendAlone("Lost");
  expect(queue.current?.text).toBe("Next");
  expect([draftOf(null), attachedTo(null).length]).toEqual(["half a thought", 1]);
  queue.dispatch({ type: "removed" });
  channelOf(commands.sendMessage)(started);
  channelOf(commands.sendMessage)(done);
  setDraft(null, "");
  detachAll(null);
});

test("what looks at the chat being written is not disturbed by its text", () => {
  const seen = vi.fn();
  const end = $effect.root(() => {
    $effect(() => seen(turn.liveChatId));
  });
  flushSync();
  open();
  writeLast();
  const tell = channelOf(commands.answerMessage);
  tell(started);
  for (let n = 0; n < 50; n += 1) {
    tell({ type: "delta", answer: "x", reasoning: "", thought: null, run: run(), origin: null });
    flushSync();
  }
  expect(seen.mock.calls).toEqual([[null], [1]]);
  tell(done);
  flushSync();
  expect(seen.mock.lastCall).toEqual([null]);
  end();
});

test("large files are kept with their draft", () => {
  setDraft(1, "see this");
  attachText(1, "long ".repeat(300_000));
  flushDrafts();
  expect(vi.mocked(commands.saveDraft).mock.lastCall?.[1].length).toBeGreaterThan(1_500_000);
  detachAll(1);
});

test("large files are not written with each word", () => {
  vi.useFakeTimers();
  const saves = vi.mocked(commands.saveDraft).mock.calls;
  setDraft(1, "a");
  vi.advanceTimersByTime(600);
  expect(saves).toHaveLength(1);
  attachText(1, "long ".repeat(300_000));
  vi.advanceTimersByTime(600);
  expect(saves).toHaveLength(2);
  setDraft(1, "a word");
  vi.advanceTimersByTime(1500);
  expect(saves).toHaveLength(2);
  vi.advanceTimersByTime(4000);
  expect(saves).toHaveLength(3);
  vi.useRealTimers();
  detachAll(1);
});

test("a seed goes where the chat's messages take theirs from", () => {
  const { options } = settings.current.settings;
  changeSampling(2, { seed: 5 });
  expect([settings.current.settings.options.seed, configOf(2).options]).toEqual([5, null]);
  changeConfig(2, { options });
  changeSampling(2, { seed: 7 });
  expect([settings.current.settings.options.seed, optionsFor(2).seed]).toEqual([5, 7]);
});
