//! The files that go with the next message, by chat. They are kept with the draft.

import type { AppError, Attachment } from "../bindings";
import * as commands from "../lib/commands";
import { split, withFile, type Attached } from "../lib/attachments";
import { toAppError } from "../lib/errors";
import { strings } from "../lib/strings";
import { giveBack, touch } from "./drafts.svelte";
import { report } from "./view.svelte";

let files = $state.raw<Record<string, Attachment[]>>({});

const key = (chatId: number | null): string => (chatId === null ? "new" : String(chatId));
const none: Attachment[] = [];

export const attachedTo = (chatId: number | null): Attachment[] => files[key(chatId)] ?? none;

function set(chatId: number | null, list: Attachment[]): void {
  files = { ...files, [key(chatId)]: list };
  touch(chatId);
}

/** Files of a draft that was read from disk. */
export const reattach = (chatId: number | null, list: readonly Attached[]): void =>
  add(chatId, list.map((file) => ({ ...file, tokens: null })));

/** A long text as a file, under a name that none of the others has. */
export function attachText(chatId: number | null, text: string): string {
  const names = new Set(attachedTo(chatId).map((file) => file.name));
  let n = 1;
  while (names.has(strings.files.pasted(n))) n += 1;
  reattach(chatId, [{ name: strings.files.pasted(n), text }]);
  return strings.files.pasted(n);
}

/** The PDFs that are being read, by chat: its message waits for them. */
let reading = $state.raw<Record<string, string[]>>({});

export const readingFor = (chatId: number | null): string[] => reading[key(chatId)] ?? [];

const setReading = (chatId: number | null, names: string[]): void => void (reading = { ...reading, [key(chatId)]: names });

/** Asks for files; one of a name that is there already gets a number. */
export async function attach(chatId: number | null): Promise<void> {
  try {
    const { files: texts, pdfs, refused } = await commands.attachFiles();
    add(chatId, texts);
    setReading(chatId, [...readingFor(chatId), ...pdfs.map((pdf) => pdf.name)]);
    const failed = [...refused];
    // One at a time: each has a worker of its own.
    for (const { id, name } of pdfs) {
      await read(chatId, id, name).catch((error: unknown) => failed.push(toAppError(error)));
      const names = readingFor(chatId);
      setReading(chatId, names.toSpliced(names.indexOf(name), 1));
    }
    if (failed.length > 0) report(asOne(failed));
  } catch (error) {
    report(error);
  }
}

async function read(chatId: number | null, id: number, name: string): Promise<void> {
  const { pdfText } = await import("../lib/pdf");
  const text = await pdfText(name, await commands.readPdf(id));
  add(chatId, [{ name, text, tokens: await commands.countTokens(text) }]);
}

function asOne(errors: AppError[]): AppError {
  const [first] = errors;
  if (errors.length === 1 && first) return first;
  return { kind: "input", message: errors.map((error) => error.message).join("; "), hint: strings.files.several };
}

const add = (chatId: number | null, added: Attachment[]): void => set(chatId, added.reduce(withFile, attachedTo(chatId)));

export const detach = (chatId: number | null, name: string): void =>
  set(chatId, attachedTo(chatId).filter((file) => file.name !== name));

export const detachAll = (chatId: number | null): void => set(chatId, none);

/** A message that could not be sent comes back as it was written, files and words apart. */
export function giveBackMessage(chatId: number | null, text: string): void {
  const { files: back, words } = split(text);
  if (back.length > 0) add(chatId, back.map((file) => ({ ...file, tokens: null })));
  if (words) giveBack(chatId, words);
}
