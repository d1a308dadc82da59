//! The chat list.

import type { ChatSummary } from "../bindings";

export interface ChatsState {
  /** Latest first. */
  list: ChatSummary[];
  /** Whether the list was read; before that it is empty for want of an answer. */
  loaded: boolean;
  /** The chat shown; null is the page of a chat not begun yet. */
  openId: number | null;
  query: string;
  /** The chat whose title is being edited. */
  renaming: number | null;
  /** The chat whose deletion waits to be confirmed. */
  confirming: number | null;
}

export type ChatsEvent =
  | { type: "listed"; chats: ChatSummary[] }
  | { type: "opened"; chatId: number | null }
  | { type: "changed"; chat: ChatSummary }
  | { type: "removed"; chatId: number }
  | { type: "filtered"; query: string }
  | { type: "renaming"; chatId: number | null }
  | { type: "confirming"; chatId: number | null };

export const initial: ChatsState = { list: [], loaded: false, openId: null, query: "", renaming: null, confirming: null };

export function apply(state: ChatsState, event: ChatsEvent): ChatsState {
  switch (event.type) {
    case "listed":
      return { ...state, list: sorted(event.chats), loaded: true };
    case "opened":
      return { ...state, openId: event.chatId, renaming: null, confirming: null };
    case "changed":
      return { ...state, list: sorted([event.chat, ...without(state.list, event.chat.id)]) };
    case "removed":
      return {
        ...state,
        list: without(state.list, event.chatId),
        openId: state.openId === event.chatId ? null : state.openId,
        confirming: null,
      };
    case "filtered":
      return { ...state, query: event.query };
    case "renaming":
      return { ...state, renaming: event.chatId, confirming: null };
    case "confirming":
      return { ...state, confirming: event.chatId, renaming: null };
  }
}

/** The chats whose title has every word of the query. */
export function visible(state: ChatsState): ChatSummary[] {
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  return state.list.filter((chat) => words.every((word) => chat.title.toLowerCase().includes(word)));
}

export const find = (state: ChatsState, id: number | null): ChatSummary | undefined =>
  state.list.find((chat) => chat.id === id);

const without = (list: ChatSummary[], id: number): ChatSummary[] => list.filter((chat) => chat.id !== id);
const sorted = (list: ChatSummary[]): ChatSummary[] => [...list].sort((a, b) => b.updatedAt - a.updatedAt || b.id - a.id);
