// @vitest-environment jsdom
import { beforeEach, describe, expect, test, vi } from "vitest";
import * as commands from "../lib/commands";
import { chats, importChats, importing } from "./chats.svelte";
import { followOthers, newChat, openChat, refresh, removeChat, takeBack } from "./navigation.svelte";
import { chat, message } from "./samples";
import { turn } from "./turn.svelte";
import { view } from "./view.svelte";

vi.mock("../lib/commands", () => ({
  listChats: vi.fn(),
  openChat: vi.fn(),
  deleteChat: vi.fn(async () => null),
  restoreChat: vi.fn(async (id: number) => ({ ...summaries.find((one) => one.id === id)! })),
  saveDraft: vi.fn(async () => null),
  importChats: vi.fn(),
}));

const summaries = [chat({ id: 1, updatedAt: 10 }), chat({ id: 2, updatedAt: 20 })];
const listed = vi.mocked(commands.listChats);
const opened = vi.mocked(commands.openChat);
const says = (chatId: number, content: string) =>
  opened.mockResolvedValueOnce({ summary: summaries[0]!, messages: [message({ id: 10 * chatId, chatId, content })], config: { systemPrompt: "", options: null }, draft: "" });
const shown = (chatId: number): string | undefined => turn.current.conversations[chatId]?.[0]?.content;

beforeEach(async () => {
  for (const id of [1, 2]) turn.dispatch({ type: "forgotten", chatId: id });
  chats.dispatch({ type: "listed", chats: summaries });
  opened.mockReset();
  listed.mockReset();
  says(1, "Before");
  says(2, "Other");
  await openChat(1);
  await openChat(2);
  await openChat(1);
  opened.mockClear();
});

describe("a chat that another process wrote to", () => {
  test("is read again where it is shown, and where it was shown when it is opened next", async () => {
    listed.mockResolvedValueOnce(summaries.map((one) => ({ ...one, updatedAt: one.updatedAt + 5 })));
    says(1, "After");
    await refresh();
    expect(shown(1)).toBe("After");
    expect(chats.current.list.map((one) => one.updatedAt)).toEqual([25, 15]);
    expect(shown(2)).toBeUndefined();
    says(2, "Too");
    await openChat(2);
    expect(shown(2)).toBe("Too");
  });

  test("is listed when it is new, and nothing is read for it", async () => {
    listed.mockResolvedValueOnce([...summaries, chat({ id: 3, updatedAt: 30 })]);
    await refresh();
    expect(chats.current.list.map((one) => one.id)).toEqual([3, 2, 1]);
    expect(opened).not.toHaveBeenCalled();
  });

  test("stays as it is while a reply is written into it here", async () => {
    turn.dispatch({ type: "asked", turn: 1, chatId: 1, text: "Hi" });
    listed.mockResolvedValueOnce([{ ...summaries[0]!, updatedAt: 99 }, summaries[1]!]);
    await refresh();
    expect(shown(1)).toBe("Before");
    expect(opened).not.toHaveBeenCalled();
    turn.dispatch({ type: "lost", turn: 1, error: { kind: "x", message: "x", hint: null } });
  });

  test("does not undo what happened here while the list was read", async () => {
    listed.mockImplementationOnce(async () => {
      chats.dispatch({ type: "changed", chat: chat({ id: 4, updatedAt: 40 }) });
      return summaries;
    });
    await refresh();
    expect(chats.current.list.map((one) => one.id)).toContain(4);
  });

  test("is looked for once when one comes back to the window, however often that is told", async () => {
    vi.useFakeTimers();
    listed.mockResolvedValue(summaries);
    const end = followOthers();
    for (let n = 0; n < 3; n += 1) window.dispatchEvent(new Event("focus"));
    await vi.advanceTimersByTimeAsync(1000);
    end();
    window.dispatchEvent(new Event("focus"));
    await vi.advanceTimersByTimeAsync(1000);
    expect(listed).toHaveBeenCalledTimes(1);
    vi.useRealTimers();
  });
});

describe("a deletion that is taken back", () => {
  const undo = () => view.current.toast!.undo!;

  test("opens the chat again if it was the open one", async () => {
    await removeChat(1);
    expect(chats.current.openId).toBeNull();
    says(1, "Back");
    await takeBack(undo());
    expect([chats.current.openId, shown(1)]).toEqual([1, "Back"]);
  });

  test("leaves one where one is otherwise", async () => {
    newChat();
    await removeChat(2);
    await takeBack(undo());
    expect(chats.current.openId).toBeNull();
    expect(opened).not.toHaveBeenCalled();
    says(1, "Before");
    await openChat(1);
    await removeChat(1);
    says(2, "Other");
    await openChat(2);
    await takeBack(undo());
    expect(chats.current.openId).toBe(2);
  });
});

test("an import shows that it runs, and a second one does not start beside it", async () => {
  let end: (imported: null) => void = () => {};
  vi.mocked(commands.importChats).mockReturnValueOnce(new Promise((done) => (end = done)));
  const running = importChats();
  expect(importing.now).toBe(true);
  await importChats();
  expect(commands.importChats).toHaveBeenCalledTimes(1);
  end(null);
  await running;
  expect(importing.now).toBe(false);
});
