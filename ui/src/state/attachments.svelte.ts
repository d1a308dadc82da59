//! The files that go with the next message, by chat. They do not outlive the window: what they hold lies on disk.

import type { Attachment } from "../bindings";
import * as commands from "../lib/commands";
import { split } from "../lib/attachments";
import { giveBack } from "./drafts.svelte";
import { report } from "./view.svelte";

let files = $state.raw<Record<string, Attachment[]>>({});

const key = (chatId: number | null): string => (chatId === null ? "new" : String(chatId));
const none: Attachment[] = [];

export const attachedTo = (chatId: number | null): Attachment[] => files[key(chatId)] ?? none;

const set = (chatId: number | null, list: Attachment[]): void => void (files = { ...files, [key(chatId)]: list });

/** Asks for files; one of a name that is there already takes its place. */
export async function attach(chatId: number | null): Promise<void> {
  try {
    add(chatId, await commands.attachFiles());
  } catch (error) {
    report(error);
  }
}

function add(chatId: number | null, added: Attachment[]): void {
  const names = new Set(added.map((file) => file.name));
  set(chatId, [...attachedTo(chatId).filter((file) => !names.has(file.name)), ...added]);
}

export const detach = (chatId: number | null, name: string): void =>
  set(chatId, attachedTo(chatId).filter((file) => file.name !== name));

export const detachAll = (chatId: number | null): void => set(chatId, none);

/** A message that could not be sent comes back as it was written, files and words apart. */
export function giveBackMessage(chatId: number | null, text: string): void {
  const { files: back, words } = split(text);
  if (back.length > 0) add(chatId, back.map((file) => ({ ...file, tokens: null })));
  if (words) giveBack(chatId, words);
}
