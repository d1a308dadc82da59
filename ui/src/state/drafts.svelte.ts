//! What is written but not sent, by chat: a draft survives a look at another chat, and the end of the app.

import * as commands from "../lib/commands";

const drafts = $state<Record<string, string>>({});

/** Long enough not to write each key. */
const DEBOUNCE_MS = 500;
const waiting = new Map<number | null, ReturnType<typeof setTimeout>>();

const key = (chatId: number | null): string => (chatId === null ? "new" : String(chatId));

export const draftOf = (chatId: number | null): string => drafts[key(chatId)] ?? "";

export function setDraft(chatId: number | null, text: string): void {
  drafts[key(chatId)] = text;
  clearTimeout(waiting.get(chatId));
  waiting.set(chatId, setTimeout(() => save(chatId), DEBOUNCE_MS));
}

/** As read from disk; what was written here since is newer. */
export function loadDraft(chatId: number | null, text: string): void {
  if (!(key(chatId) in drafts)) drafts[key(chatId)] = text;
}

export async function loadNewDraft(): Promise<void> {
  loadDraft(null, await commands.newDraft());
}

/** Puts a text that could not be sent back before whatever was written since. */
export function giveBack(chatId: number | null, text: string): void {
  const since = draftOf(chatId);
  setDraft(chatId, since ? `${text}\n${since}` : text);
}

/** Forgets the draft of a chat that is gone. */
export function dropDraft(chatId: number): void {
  clearTimeout(waiting.get(chatId));
  waiting.delete(chatId);
  delete drafts[key(chatId)];
}

/** Saves now what waits to be saved. */
export function flushDrafts(): void {
  for (const [chatId, timer] of waiting) {
    clearTimeout(timer);
    save(chatId);
  }
}

function save(chatId: number | null): void {
  waiting.delete(chatId);
  // It is still in the window, and saved with the next key.
  commands.saveDraft(chatId, draftOf(chatId)).catch(() => undefined);
}
