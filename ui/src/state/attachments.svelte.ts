//! The files that go with the next message, by chat. They do not outlive the window: what they hold lies on disk.

import type { AppError, Attachment } from "../bindings";
import * as commands from "../lib/commands";
import { split } from "../lib/attachments";
import { toAppError } from "../lib/errors";
import { strings } from "../lib/strings";
import { giveBack } from "./drafts.svelte";
import { report } from "./view.svelte";

let files = $state.raw<Record<string, Attachment[]>>({});

const key = (chatId: number | null): string => (chatId === null ? "new" : String(chatId));
const none: Attachment[] = [];

export const attachedTo = (chatId: number | null): Attachment[] => files[key(chatId)] ?? none;

const set = (chatId: number | null, list: Attachment[]): void => void (files = { ...files, [key(chatId)]: list });

/** The PDFs that are being read, by chat: its message waits for them. */
let reading = $state.raw<Record<string, string[]>>({});

export const readingFor = (chatId: number | null): string[] => reading[key(chatId)] ?? [];

const setReading = (chatId: number | null, names: string[]): void => void (reading = { ...reading, [key(chatId)]: names });

/** Asks for files; one of a name that is there already takes its place. */
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
