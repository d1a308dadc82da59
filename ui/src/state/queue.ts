//! One message that waits for the reply before it to end.

import type { Message } from "../bindings";

export interface Queued {
  /** Null is the chat that the running turn is only about to begin. */
  chatId: number | null;
  text: string;
}

export type QueueEvent =
  | { type: "queued"; chatId: number | null; text: string }
  /** The running turn has begun in a new chat. */
  | { type: "began"; chatId: number }
  | { type: "removed" }
  | { type: "forgotten"; chatId: number };

export function apply(state: Queued | null, event: QueueEvent): Queued | null {
  switch (event.type) {
    case "queued":
      // The first one keeps its place: it must not be lost to a second.
      return state ?? { chatId: event.chatId, text: event.text };
    case "began":
      return state && state.chatId === null ? { ...state, chatId: event.chatId } : state;
    case "removed":
      return null;
    case "forgotten":
      return state?.chatId === event.chatId ? null : state;
  }
}

/** What happens to a queued message when a turn has ended: nobody wants to go on from a reply that was stopped or failed. */
export const afterTurn = (status: Message["status"]): "send" | "giveBack" =>
  status === "complete" || status === "length" ? "send" : "giveBack";
