//! The messages of the chats, and the one turn that may be under way.

import type { AppError, Message, TurnEvent } from "../bindings";

/** A turn from the moment it is asked for until its `done` or `failed`. */
export interface Live {
  /** Our own number of the turn: events of an earlier one must not end this one. */
  turn: number;
  /** Null until `started` names the new chat. */
  chatId: number | null;
  /** What the person wrote, shown until the stored message arrives; null when a reply is written again. */
  text: string | null;
  /** The reply; null until `started`. */
  assistantId: number | null;
  prefill: { done: number; total: number } | null;
  stopping: boolean;
  /** The person wants the answer; the model has not heard it yet. */
  answering: boolean;
}

export interface TurnState {
  /** By chat, oldest first; only of the few chats in `opened`, and where something is on its way. */
  conversations: Record<number, Message[]>;
  /** The chats that were opened last, the open one first. */
  opened: number[];
  live: Live | null;
}

/** So many chats are kept as they were read; others are read anew when they are opened. */
export const MOST_KEPT = 8;

export type TurnStateEvent =
  /** `queued` is the chat in which a message waits to be sent. */
  | { type: "opened"; chatId: number; queued: number | null }
  | { type: "loaded"; chatId: number; messages: Message[] }
  /** Another branch of a chat, in place of the one that was shown. */
  | { type: "shown"; chatId: number; messages: Message[] }
  | { type: "forgotten"; chatId: number }
  | { type: "asked"; turn: number; chatId: number | null; text: string | null }
  | { type: "stopping"; on: boolean }
  | { type: "answering"; on: boolean }
  | { type: "streamed"; turn: number; event: TurnEvent }
  /** The turn ended without an event: refused before it started, or lost after. */
  | { type: "lost"; turn: number; error: AppError };

export const initial: TurnState = { conversations: {}, opened: [], live: null };

export function apply(state: TurnState, event: TurnStateEvent): TurnState {
  switch (event.type) {
    case "opened":
      return open(state, event.chatId, event.queued);
    case "loaded":
      return withChat(state, event.chatId, merge(event.messages, state.conversations[event.chatId] ?? [], state.live));
    case "shown":
      return state.live?.chatId === event.chatId ? state : withChat(state, event.chatId, event.messages);
    case "forgotten": {
      const { [event.chatId]: _, ...conversations } = state.conversations;
      return { ...state, conversations, opened: state.opened.filter((id) => id !== event.chatId) };
    }
    case "asked":
      return {
        ...state,
        live: { turn: event.turn, chatId: event.chatId, text: event.text, assistantId: null, prefill: null, stopping: false, answering: false },
      };
    case "stopping":
      return state.live ? { ...state, live: { ...state.live, stopping: event.on } } : state;
    case "answering":
      return state.live ? { ...state, live: { ...state.live, answering: event.on } } : state;
    case "streamed":
      return state.live?.turn === event.turn ? stream(state, state.live, event.event) : state;
    case "lost":
      return state.live?.turn === event.turn ? fail(state, state.live, event.error, null) : state;
  }
}

function open(state: TurnState, chatId: number, queued: number | null): TurnState {
  const opened = [chatId, ...state.opened.filter((id) => id !== chatId)].slice(0, MOST_KEPT);
  const kept = new Set([...opened, state.live?.chatId, queued]);
  const conversations = Object.fromEntries(Object.entries(state.conversations).filter(([id]) => kept.has(Number(id))));
  return { ...state, opened, conversations };
}

function stream(state: TurnState, live: Live, event: TurnEvent): TurnState {
  switch (event.type) {
    case "started": {
      const { chat, user, assistant } = event;
      const before = state.conversations[chat.id];
      // A chat deleted meanwhile must not come back.
      if (!before && live.chatId !== null) return state;
      const started = { ...live, chatId: chat.id, text: null, assistantId: assistant.id };
      return withChat({ ...state, live: started }, chat.id, begin(before ?? [], user, assistant));
    }
    case "prefill":
      return { ...state, live: { ...live, prefill: { done: event.done, total: event.total } } };
    case "delta": {
      const writing = live.prefill ? { ...state, live: { ...live, prefill: null } } : state;
      return patch(writing, live, (reply) => ({
        ...reply,
        content: reply.content + event.answer,
        reasoning: event.reasoning ? (reply.reasoning ?? "") + event.reasoning : reply.reasoning,
        thought: event.thought,
        run: event.run ?? reply.run,
      }));
    }
    case "done":
      return patch({ ...state, live: null }, live, () => event.message);
    case "failed":
      return fail(state, live, event.error, event.message);
  }
}

function fail(state: TurnState, live: Live, error: AppError, stored: Message | null): TurnState {
  return patch({ ...state, live: null }, live, (reply) => ({ ...(stored ?? reply), status: "failed", error }));
}

/** Replaces the live reply, wherever its chat still is. */
function patch(state: TurnState, live: Live, change: (reply: Message) => Message): TurnState {
  const messages = live.chatId === null ? undefined : state.conversations[live.chatId];
  const at = messages?.findLastIndex((m) => m.id === live.assistantId) ?? -1;
  if (!messages || live.chatId === null || at < 0) return state;
  return withChat(state, live.chatId, messages.with(at, change(messages[at]!)));
}

/**
 * A known user message means a reply that is written again or goes on: it takes the place of all that followed the
 * message. Another version of a message takes the place of that one, and of all that followed it.
 */
function begin(messages: Message[], user: Message, assistant: Message): Message[] {
  const at = messages.findIndex((m) => user.versions.includes(m.id));
  const kept = at < 0 ? messages : messages.slice(0, at);
  return [...kept, user, assistant];
}

/**
 * What the disk says, but never an older state of a message than the window has seen: the disk may have been read
 * before a reply ended, or before it began. A reply streamed to nobody (the window was reloaded) is newer on disk.
 */
function merge(disk: Message[], seen: Message[], live: Live | null): Message[] {
  const isNewer = (m: Message): boolean => m.status !== "streaming" || m.id === live?.assistantId;
  const ids = new Set(disk.map((m) => m.id));
  const newest = disk.map((m) => (m.status === "streaming" ? (seen.find((s) => s.id === m.id && isNewer(s)) ?? m) : m));
  return [...newest, ...seen.filter((m) => !ids.has(m.id) && m.id > (disk.at(-1)?.id ?? -1))];
}

const withChat = (state: TurnState, chatId: number, messages: Message[]): TurnState => ({
  ...state,
  conversations: { ...state.conversations, [chatId]: messages },
});

/** A reply being written whose channel is not ours: the page was loaded anew meanwhile. */
export const isOrphan = (message: Message, live: Live | null): boolean =>
  message.status === "streaming" && message.id !== live?.assistantId;

/** The version of a message that is `step` before or after it; null at the ends. */
export function otherVersion(message: Message, step: 1 | -1): number | null {
  const at = message.versions.indexOf(message.id);
  return at < 0 ? null : (message.versions[at + step] ?? null);
}

/** The last message of the person in a chat. */
export const lastAsked = (messages: readonly Message[] | undefined): Message | undefined =>
  messages?.findLast((m) => m.role === "user");

/** The last reply of a chat. */
export const lastReply = (messages: readonly Message[] | undefined): Message | undefined =>
  messages?.findLast((m) => m.role === "assistant");

/** Tokens of the context that a chat's last measured reply left filled; null if none of its replies was measured. */
export function contextUsed(messages: readonly Message[] | undefined): number | null {
  const run = messages?.findLast((m) => m.run !== null)?.run;
  return run ? run.promptTokens + run.tokens : null;
}
