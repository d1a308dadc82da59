//! Moving between chats.

import type { Chat, Message } from "../bindings";
import * as commands from "../lib/commands";
import { strings } from "../lib/strings";
import { changedChats, find } from "./chats";
import { chats, restoreChat } from "./chats.svelte";
import { loadConfig } from "./configs.svelte";
import { dropDraft, flushDrafts, loadDraft } from "./drafts.svelte";
import { isOrphan } from "./turn";
import { enter, queue, turn, unqueue } from "./turn.svelte";
import type { Undo } from "./view";
import { report, seek, toast, view } from "./view.svelte";

/** How often a reply is read again that is written without us, after the window was reloaded. */
const ORPHAN_MS = 1000;

/** The open chat stands in the page's address, which outlives the page and the process that draws it. */
const before = Number(location.hash.slice(1));

export const remember = (chatId: number | null): void =>
  history.replaceState(null, "", chatId === null ? location.pathname + location.search : `#${chatId}`);

/** After the page was loaded anew: the chat that was open. */
export async function reopen(): Promise<void> {
  if (find(chats.current, before)) await openChat(before);
}

export function newChat(): void {
  chats.dispatch({ type: "opened", chatId: null });
  view.dispatch({ type: "moved" });
}

export async function openChat(chatId: number): Promise<void> {
  enter(chatId);
  view.dispatch({ type: "moved" });
  if (!turn.current.conversations[chatId]) await read(chatId);
}

async function read(chatId: number, type: "loaded" | "shown" = "loaded"): Promise<void> {
  try {
    const chat = await commands.openChat(chatId);
    const { messages } = chat;
    take(chat);
    turn.dispatch({ type, chatId, messages });
    if (messages.some(isStray)) setTimeout(() => void reread(chatId), ORPHAN_MS);
  } catch (error) {
    if (chats.current.openId === chatId) newChat();
    report(error);
  }
}

async function reread(chatId: number): Promise<void> {
  if (turn.current.conversations[chatId]?.some(isStray)) await read(chatId);
}

/** Looks for what another process (`slipstream chat`) wrote into the same chats. */
export async function refresh(): Promise<void> {
  const { list, loaded } = chats.current;
  if (!loaded) return;
  try {
    const now = await commands.listChats();
    // What happened here meanwhile is newer, and the next look sees the rest.
    if (chats.current.list !== list) return;
    chats.dispatch({ type: "listed", chats: now });
    const stale = changedChats(list, now).filter((id) => turn.current.conversations[id] && turn.current.live?.chatId !== id);
    for (const id of stale) {
      if (id === chats.current.openId) await read(id, "shown");
      else turn.dispatch({ type: "forgotten", chatId: id });
    }
  } catch (error) {
    report(error);
  }
}

/** A window that is shown by others coming and going gets the focus several times in a moment. */
const CALM_MS = 300;

/** Looks each time that one comes back to the window. */
export function followOthers(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => void refresh(), CALM_MS);
  };
  window.addEventListener("focus", look);
  return () => {
    clearTimeout(timer);
    window.removeEventListener("focus", look);
  };
}

const isStray = (message: Message): boolean => isOrphan(message, turn.current.live);

function take({ summary, config, draft }: Chat): void {
  loadConfig(summary.id, config);
  loadDraft(summary.id, draft);
}

/** A reply that is being written in the chat is ended by the app first. */
export async function removeChat(chatId: number): Promise<void> {
  const title = find(chats.current, chatId)?.title ?? "";
  const wasOpen = chats.current.openId === chatId;
  try {
    // Kept as they are, so that undoing brings them back.
    if (queue.current?.chatId === chatId) unqueue();
    flushDrafts();
    await commands.deleteChat(chatId);
    chats.dispatch({ type: "removed", chatId });
    turn.dispatch({ type: "forgotten", chatId });
    dropDraft(chatId);
    toast(strings.library.deleted(title), { chatId, wasOpen });
  } catch (error) {
    report(error);
  }
}

/** Takes the deletion of a chat back. One that was open is so again, unless another one is by now. */
export async function takeBack({ chatId, wasOpen }: Undo): Promise<void> {
  await restoreChat(chatId);
  if (wasOpen && chats.current.openId === null && find(chats.current, chatId)) await openChat(chatId);
}

/** Deletes all chats; they can be restored for a while. */
export async function removeAllChats(): Promise<void> {
  try {
    unqueue();
    flushDrafts();
    await commands.deleteAllChats();
    for (const { id } of chats.current.list) {
      turn.dispatch({ type: "forgotten", chatId: id });
      dropDraft(id);
    }
    chats.dispatch({ type: "listed", chats: [] });
    newChat();
  } catch (error) {
    report(error);
  }
}

export async function duplicateChat(chatId: number): Promise<void> {
  const title = strings.library.copyOf(find(chats.current, chatId)?.title ?? "");
  try {
    const chat = await commands.duplicateChat(chatId, title);
    chats.dispatch({ type: "changed", chat });
    await openChat(chat.id);
  } catch (error) {
    report(error);
  }
}

/** Opens a chat at one of its messages, on whichever branch that lies. */
export async function openMessage(chatId: number, messageId: number, query = ""): Promise<void> {
  await openChat(chatId);
  const isShown = (): boolean => turn.current.conversations[chatId]?.some((m) => m.id === messageId) ?? false;
  if (!isShown()) await showVersion(messageId);
  if (isShown()) seek(messageId, query);
}

/** Shows the branch with this version of a message. */
export const showVersion = (messageId: number): Promise<void> => show(commands.showMessage(messageId));

/** Deletes a message with all that follow it. */
export const deleteMessage = (messageId: number): Promise<void> => show(commands.deleteMessage(messageId));

async function show(asked: Promise<Chat>): Promise<void> {
  try {
    const chat = await asked;
    turn.dispatch({ type: "shown", chatId: chat.summary.id, messages: chat.messages });
  } catch (error) {
    report(error);
  }
}
