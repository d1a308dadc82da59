//! What is written but not sent, by chat, with its files: a draft survives a look at another chat, and the end of the app.

import { compose, split } from "../lib/attachments";
import * as commands from "../lib/commands";
import { attachedTo, reattach } from "./attachments.svelte";

const drafts = $state<Record<string, string>>({});

/** Long enough not to write each key; with large files, which are written along, a second longer for each megabyte. */
const DEBOUNCE_MS = 500;
const MOST_DEBOUNCE_MS = 5000;
const waiting = new Map<number | null, ReturnType<typeof setTimeout>>();

const key = (chatId: number | null): string => (chatId === null ? "new" : String(chatId));

export const draftOf = (chatId: number | null): string => drafts[key(chatId)] ?? "";

/** Messages that wait for a reply to end. They are no drafts any more, and not sent yet. */
const held = new Map<string, string>();

export function setDraft(chatId: number | null, text: string): void {
  drafts[key(chatId)] = text;
  const size = attachedTo(chatId).reduce((sum, file) => sum + file.text.length, 0);
  touch(chatId, Math.min(MOST_DEBOUNCE_MS, DEBOUNCE_MS + size / 1000));
}

/** Has what belongs to a draft saved soon. */
export function touch(chatId: number | null, ms = DEBOUNCE_MS): void {
  clearTimeout(waiting.get(chatId));
  waiting.set(chatId, setTimeout(() => save(chatId), ms));
}

/** As read from disk; what was written here since is newer. */
export function loadDraft(chatId: number | null, text: string): void {
  if (key(chatId) in drafts) return;
  const { files, words } = split(text);
  if (files.length > 0 && attachedTo(chatId).length === 0) reattach(chatId, files);
  drafts[key(chatId)] = words;
}

export async function loadNewDraft(): Promise<void> {
  loadDraft(null, await commands.newDraft());
}

/** Puts a text that could not be sent back before whatever was written since. */
export function giveBack(chatId: number | null, text: string): void {
  const since = draftOf(chatId);
  setDraft(chatId, since ? `${text}\n${since}` : text);
}

/** Keeps a message that waits to be sent as a draft on disk: the app may end before its turn comes. */
export function hold(chatId: number | null, text: string): void {
  held.set(key(chatId), text);
  touch(chatId);
}

export function release(chatId: number | null): void {
  if (held.delete(key(chatId))) touch(chatId);
}

/** Forgets the draft of a chat that is gone. */
export function dropDraft(chatId: number): void {
  clearTimeout(waiting.get(chatId));
  waiting.delete(chatId);
  held.delete(key(chatId));
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
  commands.saveDraft(chatId, whole(chatId)).catch(() => undefined);
}

function whole(chatId: number | null): string {
  const draft = compose(attachedTo(chatId), draftOf(chatId));
  return [held.get(key(chatId)) ?? "", draft].filter(Boolean).join("\n");
}
