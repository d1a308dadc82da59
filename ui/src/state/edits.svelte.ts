//! Messages that are being written anew and are not sent, by message: an edit survives a look at another chat. None outlives the window.

import type { Message } from "../bindings";
import { split, type Attached } from "../lib/attachments";

export interface Edit {
  words: string;
  files: Attached[];
}

let edits = $state.raw<ReadonlyMap<number, Edit>>(new Map());

/** What was written of a message and not sent; at first the message itself. */
export const editOf = (message: Message): Edit => edits.get(message.id) ?? split(message.content);

export const hasEdit = (messageId: number): boolean => edits.has(messageId);

/** An edit that says what the message says is none. */
export function keepEdit(message: Message, edit: Edit): void {
  const { words, files } = split(message.content);
  if (edit.words === words && edit.files.length === files.length) dropEdit(message.id);
  else edits = new Map(edits).set(message.id, edit);
}

export function dropEdit(messageId: number): void {
  if (!edits.has(messageId)) return;
  const others = new Map(edits);
  others.delete(messageId);
  edits = others;
}
