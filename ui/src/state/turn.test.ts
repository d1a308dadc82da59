import { describe, expect, test } from "vitest";
import type { AppError, TurnEvent } from "../bindings";
import { chat, message, run } from "./samples";
import { apply, contextUsed, initial, lastReply, MOST_KEPT, otherVersion, type TurnState, type TurnStateEvent } from "./turn";

const error: AppError = { kind: "engine", message: "It broke.", hint: "Mend it." };
const user = message({ id: 10, role: "user", content: "Hi" });
const reply = message({ id: 11, status: "streaming" });

const all = (state: TurnState, ...events: TurnStateEvent[]): TurnState => events.reduce(apply, state);
const event = (streamed: TurnEvent, turn = 1): TurnStateEvent => ({ type: "streamed", turn, event: streamed });
const asked = (chatId: number | null, text: string | null = "Hi", turn = 1): TurnStateEvent => ({ type: "asked", turn, chatId, text });
const started = event({ type: "started", chat: chat(), user, assistant: reply });
const delta = (answer: string, reasoning = ""): TurnStateEvent => event({ type: "delta", answer, reasoning, thought: null, run: run(), origin: null });
const done = event({ type: "done", message: { ...reply, content: "Hello.", status: "complete", run: run() }, chat: chat() });

describe("a turn", () => {
  test("in a new chat goes from text to the stored reply", () => {
    let state = apply(initial, asked(null));
    expect(state.live).toMatchObject({ chatId: null, text: "Hi", assistantId: null });
    state = apply(state, started);
    expect(state.live).toMatchObject({ chatId: 1, text: null, assistantId: 11 });
    expect(state.conversations[1]).toEqual([user, reply]);
    state = apply(state, event({ type: "prefill", done: 3, total: 12 }));
    expect(state.live?.prefill).toEqual({ done: 3, total: 12 });
    state = all(state, delta("", "Hm"), delta("Hel", "m."), delta("lo"));
    expect(state.live?.prefill).toBeNull();
    expect(lastReply(state.conversations[1])).toMatchObject({ content: "Hello", reasoning: "Hmm.", status: "streaming" });
    state = apply(state, done);
    expect(state.live).toBeNull();
    expect(lastReply(state.conversations[1])).toMatchObject({ content: "Hello.", status: "complete" });
  });

  test("leaves the other messages' identity alone", () => {
    const state = all(initial, asked(null), started);
    expect(apply(state, delta("x")).conversations[1]?.[0]).toBe(user);
  });

  test("that writes a reply again puts it in the old one's place", () => {
    const old = message({ id: 11, content: "Old" });
    const next = message({ id: 12, status: "streaming" });
    const state = all(
      initial,
      { type: "loaded", chatId: 1, messages: [user, old] },
      asked(1, null),
      event({ type: "started", chat: chat(), user, assistant: next }),
    );
    expect(state.conversations[1]).toEqual([user, next]);
  });

  test("updates its own chat, whichever is shown", () => {
    const other = message({ id: 20, chatId: 2 });
    const state = all(initial, asked(null), started, { type: "loaded", chatId: 2, messages: [other] }, delta("x"));
    expect(state.conversations[1]?.[1]?.content).toBe("x");
    expect(state.conversations[2]).toEqual([other]);
  });

  test("ignores the late events of the one before", () => {
    const state = all(initial, asked(null), started, done, asked(1, "Again", 2));
    expect(apply(state, delta("late"))).toBe(state);
    expect(apply(state, done)).toBe(state);
    expect(apply(state, event({ type: "failed", error, message: null })).live?.turn).toBe(2);
  });

  test("does not bring a deleted chat back", () => {
    const state = all(initial, asked(null), started, { type: "forgotten", chatId: 1 }, delta("x"), done);
    expect(state).toEqual(initial);
    const before = all(initial, asked(1), started);
    expect(before.conversations).toEqual({});
  });
});

describe("a failure", () => {
  test("keeps what there was", () => {
    const state = all(initial, asked(null), started, delta("Hel"), event({ type: "failed", error, message: null }));
    expect(state.live).toBeNull();
    expect(lastReply(state.conversations[1])).toMatchObject({ content: "Hel", status: "failed", error });
  });

  test("takes the stored reply, with its reason", () => {
    const stored = { ...reply, content: "Hello", status: "failed" as const };
    const state = all(initial, asked(null), started, event({ type: "failed", error, message: stored }));
    expect(lastReply(state.conversations[1])).toEqual({ ...stored, error });
  });

  test("before the start leaves no trace", () => {
    expect(all(initial, asked(null), { type: "lost", turn: 1, error })).toEqual(initial);
  });

  test("after the end changes nothing", () => {
    const state = all(initial, asked(null), started, done);
    expect(apply(state, { type: "lost", turn: 1, error })).toBe(state);
  });
});

describe("a chat read from disk", () => {
  test("does not undo what was streamed meanwhile", () => {
    const state = all(initial, asked(null), started, delta("Hel"), { type: "loaded", chatId: 1, messages: [user, reply] });
    expect(state.conversations[1]?.[1]?.content).toBe("Hel");
    const ended = all(state, done, { type: "loaded", chatId: 1, messages: [user, reply] });
    expect(ended.conversations[1]?.[1]?.status).toBe("complete");
  });

  test("does not lose a turn that began after it was read", () => {
    const old = message({ id: 5 });
    const state = all(
      initial,
      { type: "loaded", chatId: 1, messages: [old] },
      asked(1),
      started,
      { type: "loaded", chatId: 1, messages: [old] },
    );
    expect(state.conversations[1]).toEqual([old, user, reply]);
  });

  test("moves a reply on that is streamed to nobody", () => {
    const state = all(
      initial,
      { type: "loaded", chatId: 1, messages: [user, reply] },
      { type: "loaded", chatId: 1, messages: [user, { ...reply, content: "More" }] },
    );
    expect(state.conversations[1]?.[1]?.content).toBe("More");
  });
});

test("thinking is shown as it grows, and a wish for the answer belongs to its turn", () => {
  const thought = { tokens: 3, ms: 40, open: true, ended: null };
  const thinking = event({ type: "delta", answer: "", reasoning: "Hm", thought, run: run(), origin: null });
  const state = all(initial, asked(null), started, thinking, { type: "answering", on: true });
  expect(lastReply(state.conversations[1])).toMatchObject({ reasoning: "Hm", thought });
  expect(state.live?.answering).toBe(true);
  expect(all(state, done, asked(1)).live?.answering).toBe(false);
  expect(apply(initial, { type: "answering", on: true })).toBe(initial);
});

test("the context in use is that of the last measured reply", () => {
  expect([contextUsed(undefined), contextUsed([message()])]).toEqual([null, null]);
  expect(contextUsed([message({ run: run() }), message({ id: 2, run: run({ promptTokens: 100, tokens: 5 }) }), user])).toBe(105);
});

describe("chats that were read", () => {
  const opened = (chatId: number, queued: number | null = null): TurnStateEvent => ({ type: "opened", chatId, queued });
  const read = (chatId: number): TurnStateEvent[] => [opened(chatId), { type: "loaded", chatId, messages: [message({ id: chatId * 100, chatId })] }];
  const kept = (state: TurnState): number[] => Object.keys(state.conversations).map(Number);
  const many = Array.from({ length: MOST_KEPT }, (_, at) => at + 10);

  test("are let go, the one not looked at for longest first", () => {
    const state = all(initial, ...read(2), ...read(3), opened(2), ...many.slice(1).flatMap(read));
    expect(kept(state)).toEqual([2, ...many.slice(1)]);
    expect(kept(all(state, ...read(2)))).toEqual(kept(state));
    expect(kept(all(state, opened(3)))).toEqual(many.slice(1));
  });

  test("stay where a reply is written or a message waits", () => {
    const state = all(initial, ...read(1), ...read(2), asked(1), started, ...many.map((id) => opened(id, 2)));
    expect(kept(state)).toEqual([1, 2]);
    expect(kept(all(state, delta("Hel"), done, opened(30)))).toEqual([]);
  });

  test("stay while they are open, whatever is begun elsewhere", () => {
    const state = all(initial, ...many.flatMap(read), asked(null), started);
    expect(kept(state)).toEqual([1, ...many]);
  });

  test("are forgotten with their chat", () => {
    expect(all(initial, ...read(2), { type: "forgotten", chatId: 2 })).toEqual(initial);
  });
});

describe("branches", () => {
  const answer = message({ id: 11, content: "Old" });
  const more = message({ id: 12, role: "user", content: "More" });
  const loaded: TurnStateEvent = { type: "loaded", chatId: 1, messages: [user, answer, more] };

  test("an edited message takes the place of the first version and of all that followed", () => {
    const edited = message({ id: 20, role: "user", content: "Hi!", versions: [10, 20] });
    const next = message({ id: 21, status: "streaming" });
    const state = all(initial, loaded, asked(1, null), event({ type: "started", chat: chat(), user: edited, assistant: next }));
    expect(state.conversations[1]).toEqual([edited, next]);
  });

  test("a reply that goes on keeps its text and grows", () => {
    const half = { ...answer, content: "Half", status: "streaming" as const };
    const state = all(
      initial,
      { type: "loaded", chatId: 1, messages: [user, { ...answer, content: "Half\ufffd", status: "stopped" }] },
      asked(1, null),
      event({ type: "started", chat: chat(), user, assistant: half }),
      delta(" done"),
    );
    expect(lastReply(state.conversations[1])?.content).toBe("Half done");
  });

  test("another branch is shown in place of the old, but never over a running reply", () => {
    const shown: TurnStateEvent = { type: "shown", chatId: 1, messages: [user] };
    expect(all(initial, loaded, shown).conversations[1]).toEqual([user]);
    const running = all(initial, loaded, asked(1));
    expect(apply(running, shown)).toBe(running);
  });

  test("versions are stepped through to their ends", () => {
    const middle = message({ id: 5, versions: [3, 5, 9] });
    expect([otherVersion(middle, -1), otherVersion(middle, 1)]).toEqual([3, 9]);
    expect(otherVersion({ ...middle, id: 9 }, 1)).toBeNull();
  });
});
