import { expect, test } from "vitest";
import { apply, changedChats, initial, parseTags, tagsOf, visible, type ChatsEvent, type ChatsState } from "./chats";
import { chat } from "./samples";

const all = (...events: ChatsEvent[]): ChatsState => events.reduce(apply, initial);
const a = chat({ id: 1, title: "Stacks and queues", updatedAt: 10 });
const b = chat({ id: 2, title: "The sea", updatedAt: 20 });
const ids = (state: ChatsState): number[] => state.list.map((c) => c.id);

test("the latest chat is first, also after a change", () => {
  const state = all({ type: "listed", chats: [a, b] });
  expect(ids(state)).toEqual([2, 1]);
  expect(ids(apply(state, { type: "changed", chat: { ...a, updatedAt: 30 } }))).toEqual([1, 2]);
});

test("a new chat is added once", () => {
  expect(ids(all({ type: "changed", chat: a }, { type: "changed", chat: { ...a, title: "Other" } }))).toEqual([1]);
});

test("removing the open chat leads to the new chat's page, another not", () => {
  const state = all({ type: "listed", chats: [a, b] }, { type: "opened", chatId: 1 });
  expect(apply(state, { type: "removed", chatId: 1 }).openId).toBeNull();
  expect(apply(state, { type: "removed", chatId: 2 }).openId).toBe(1);
});

test("the filter wants every word, in any case", () => {
  const state = all({ type: "listed", chats: [a, b] });
  const found = (query: string): number[] => visible(apply(state, { type: "filtered", query })).map((c) => c.id);
  expect(found("")).toEqual([2, 1]);
  expect(found("QUEUES stack")).toEqual([1]);
  expect(found("queues sea")).toEqual([]);
});

test("renaming and tagging exclude each other and end with a move", () => {
  const state = all({ type: "renaming", chatId: 1 }, { type: "tagging", chatId: 1 });
  expect(state).toMatchObject({ renaming: null, tagging: 1 });
  expect(apply(state, { type: "opened", chatId: 2 }).tagging).toBeNull();
});

test("a word with a hash asks for a tag, beside words of the title", () => {
  const tagged = { ...a, tags: ["Work", "later"] };
  const state = all({ type: "listed", chats: [tagged, b] });
  expect(visible(state, "#wor").map((c) => c.id)).toEqual([1]);
  expect(visible(state, "stacks #later").map((c) => c.id)).toEqual([1]);
  expect(visible(state, "sea #later")).toEqual([]);
  expect(visible(state, "#").map((c) => c.id)).toEqual([]);
  expect(parseTags(" #work, ideas ,, # ")).toEqual(["work", "ideas"]);
});

const hit = { chatId: 1, title: "", messageId: 5, role: "user" as const, createdAt: 0, pieces: [] };

test("late answers to an older query are not shown, nor hits of a chat that is gone", () => {
  const state = all({ type: "listed", chats: [a, b] }, { type: "filtered", query: "new" });
  expect(apply(state, { type: "found", query: "old", hits: [hit] }).hits).toBeNull();
  const found = apply(state, { type: "found", query: "new", hits: [hit] });
  expect(found.hits).toEqual([hit]);
  expect(apply(found, { type: "removed", chatId: 1 }).hits).toEqual([]);
  expect(apply(found, { type: "filtered", query: " " }).hits).toBeNull();
});

test("tags are listed once, whatever their case", () => {
  const state = all({ type: "listed", chats: [{ ...a, tags: ["work", "Sea"] }, { ...b, tags: ["Work"] }] });
  expect(tagsOf(state).map((tag) => tag.toLowerCase())).toEqual(["sea", "work"]);
});

test("chats that were written to elsewhere are told by their time; new and deleted ones are none of them", () => {
  expect(changedChats([a, b], [{ ...a, updatedAt: 11 }, b, chat({ id: 3 })])).toEqual([1]);
  expect(changedChats([a, b], [a, { ...b, title: "Renamed" }])).toEqual([]);
  expect(changedChats([a, b], [a])).toEqual([]);
});
