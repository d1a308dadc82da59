//! The chat list.

import type { ChatSummary, SearchHit } from "../bindings";

export interface ChatsState {
  /** Latest first. */
  list: ChatSummary[];
  /** Whether the list was read; before that it is empty for want of an answer. */
  loaded: boolean;
  /** The chat shown; null is the page of a chat not begun yet. */
  openId: number | null;
  query: string;
  /** What the query was found in; null until that is known. */
  hits: SearchHit[] | null;
  /** The chat whose title or whose tags are being edited. */
  renaming: number | null;
  tagging: number | null;
}

export type ChatsEvent =
  | { type: "listed"; chats: ChatSummary[] }
  | { type: "opened"; chatId: number | null }
  | { type: "changed"; chat: ChatSummary }
  | { type: "removed"; chatId: number }
  | { type: "filtered"; query: string }
  | { type: "found"; query: string; hits: SearchHit[] }
  | { type: "renaming"; chatId: number | null }
  | { type: "tagging"; chatId: number | null };

export const initial: ChatsState = {
  list: [],
  loaded: false,
  openId: null,
  query: "",
  hits: null,
  renaming: null,
  tagging: null,
};

export function apply(state: ChatsState, event: ChatsEvent): ChatsState {
  switch (event.type) {
    case "listed":
      return { ...state, list: sorted(event.chats), loaded: true };
    case "opened":
      return { ...state, openId: event.chatId, renaming: null, tagging: null };
    case "changed":
      return { ...state, list: sorted([event.chat, ...without(state.list, event.chat.id)]) };
    case "removed":
      return {
        ...state,
        list: without(state.list, event.chatId),
        openId: state.openId === event.chatId ? null : state.openId,
        hits: state.hits?.filter((hit) => hit.chatId !== event.chatId) ?? null,
      };
    case "filtered":
      return { ...state, query: event.query, hits: event.query.trim() ? state.hits : null };
    case "found":
      return event.query === state.query ? { ...state, hits: event.hits } : state;
    case "renaming":
      return { ...state, renaming: event.chatId, tagging: null };
    case "tagging":
      return { ...state, tagging: event.chatId, renaming: null };
  }
}

/** The chats in which something was written between two looks at the list: where that was not done here, by another process. */
export const changedChats = (before: readonly ChatSummary[], after: readonly ChatSummary[]): number[] =>
  before.filter(({ id, updatedAt }) => after.some((chat) => chat.id === id && chat.updatedAt !== updatedAt)).map(({ id }) => id);

/** The chats that have every word of the query: in their title, or as `#word` among their tags. */
export function visible(state: ChatsState, query = state.query): ChatSummary[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return state.list.filter((chat) => words.every((word) => matches(chat, word)));
}

function matches(chat: ChatSummary, word: string): boolean {
  if (word.length > 1 && word.startsWith("#")) return chat.tags.some((tag) => tag.toLowerCase().startsWith(word.slice(1)));
  return chat.title.toLowerCase().includes(word);
}

/** All tags, each once, in the order of the alphabet. */
export function tagsOf(state: ChatsState): string[] {
  const byName = new Map(state.list.flatMap((chat) => chat.tags).map((tag) => [tag.toLowerCase(), tag]));
  return [...byName.values()].sort((a, b) => a.localeCompare(b));
}

/** What a list of tags in a field means: separated by commas, with or without `#`. */
export const parseTags = (text: string): string[] =>
  text.split(",").map((tag) => tag.trim().replace(/^#/, "").trim()).filter(Boolean);

export const find = (state: ChatsState, id: number | null): ChatSummary | undefined =>
  state.list.find((chat) => chat.id === id);

const without = (list: ChatSummary[], id: number): ChatSummary[] => list.filter((chat) => chat.id !== id);
const sorted = (list: ChatSummary[]): ChatSummary[] => [...list].sort((a, b) => b.updatedAt - a.updatedAt || b.id - a.id);
