//! Moving between chats.

import type { Message } from "../bindings";
import * as commands from "../lib/commands";
import { chats } from "./chats.svelte";
import { setDraft } from "./drafts.svelte";
import { turn } from "./turn.svelte";
import { report, view } from "./view.svelte";

/** How often a reply is read again that is written without us, after the window was reloaded. */
const ORPHAN_MS = 1000;

export function newChat(): void {
  chats.dispatch({ type: "opened", chatId: null });
  view.dispatch({ type: "moved" });
}

export async function openChat(chatId: number): Promise<void> {
  chats.dispatch({ type: "opened", chatId });
  view.dispatch({ type: "moved" });
  if (!turn.current.conversations[chatId]) await read(chatId);
}

async function read(chatId: number): Promise<void> {
  try {
    const { messages } = await commands.openChat(chatId);
    turn.dispatch({ type: "loaded", chatId, messages });
    if (messages.some(isOrphan)) setTimeout(() => void reread(chatId), ORPHAN_MS);
  } catch (error) {
    if (chats.current.openId === chatId) newChat();
    report(error);
  }
}

async function reread(chatId: number): Promise<void> {
  if (turn.current.conversations[chatId]?.some(isOrphan)) await read(chatId);
}

/** A reply being written whose channel is not ours. */
const isOrphan = (message: Message): boolean =>
  message.status === "streaming" && message.id !== turn.current.live?.assistantId;

/** A reply that is being written in the chat is ended by the app first. */
export async function removeChat(chatId: number): Promise<void> {
  try {
    await commands.deleteChat(chatId);
    chats.dispatch({ type: "removed", chatId });
    turn.dispatch({ type: "forgotten", chatId });
    setDraft(chatId, "");
  } catch (error) {
    chats.dispatch({ type: "confirming", chatId: null });
    report(error);
  }
}
