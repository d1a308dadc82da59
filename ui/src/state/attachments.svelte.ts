//! The files that go with the next message, by chat. They are kept with the draft.

import type { AppError, Attachment, Picked } from "../bindings";
import * as commands from "../lib/commands";
import { split, withFile, type Attached } from "../lib/attachments";
import { asOne, toAppError } from "../lib/errors";
import { readPasted } from "../lib/pasted";
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

/** A PDF that is being read, or waits for that. */
interface Reading {
  name: string;
  /** Nobody wants it any more. */
  end: AbortController;
}

/** The PDFs that are being read, by chat: its message waits for them. */
let reading = $state.raw<Record<string, Reading[]>>({});

const readingsOf = (chatId: number | null): Reading[] => reading[key(chatId)] ?? [];
const setReadings = (chatId: number | null, list: Reading[]): void => void (reading = { ...reading, [key(chatId)]: list });

export const readingFor = (chatId: number | null): string[] => readingsOf(chatId).map(({ name }) => name);

/** Does not read a PDF to its end; of several with the name, the first. */
export function stopReading(chatId: number | null, name: string): void {
  const stopped = readingsOf(chatId).find((one) => one.name === name);
  stopped?.end.abort();
  setReadings(chatId, readingsOf(chatId).filter((one) => one !== stopped));
}

/** Asks for files; one of a name that is there already gets a number. */
export async function attach(chatId: number | null): Promise<void> {
  try {
    await attachPicked(chatId, await commands.attachFiles());
  } catch (error) {
    report(error);
  }
}

/** Attaches files that were picked, dropped or pasted. */
export async function attachPicked(chatId: number | null, { files: texts, pdfs, refused }: Picked): Promise<void> {
  add(chatId, texts);
  await readPdfs(chatId, pdfs.map(({ id, name }) => ({ name, bytes: () => commands.readPdf(id) })), refused);
}

/** Attaches files that were pasted; what is wrong with any of them is told. */
export async function attachPasted(chatId: number | null, pasted: readonly File[]): Promise<void> {
  const pdfs: Pdf[] = [];
  const refused: AppError[] = [];
  for (const file of pasted) {
    try {
      const { name, text, bytes } = await readPasted(file);
      if (text === null) pdfs.push({ name, bytes: async () => bytes });
      else add(chatId, [{ name, text, tokens: await commands.countTokens(text) }]);
    } catch (error) {
      refused.push(toAppError(error));
    }
  }
  await readPdfs(chatId, pdfs, refused);
}

interface Pdf {
  name: string;
  bytes: () => Promise<Uint8Array>;
}

async function readPdfs(chatId: number | null, pdfs: readonly Pdf[], refused: readonly AppError[]): Promise<void> {
  const readings = pdfs.map((pdf) => ({ ...pdf, end: new AbortController() }));
  setReadings(chatId, [...readingsOf(chatId), ...readings]);
  const failed = [...refused];
  // One at a time: each has a worker of its own.
  for (const one of readings) {
    await read(chatId, one, one.end.signal).catch((error: unknown) => {
      if (!one.end.signal.aborted) failed.push(toAppError(error));
    });
    setReadings(chatId, readingsOf(chatId).filter((other) => other !== one));
  }
  const error = asOne(failed, strings.files.several);
  if (error) report(error);
}

async function read(chatId: number | null, { name, bytes }: Pdf, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { pdfText } = await import("../lib/pdf");
  const text = await pdfText(name, await bytes(), { signal });
  const tokens = await commands.countTokens(text);
  signal.throwIfAborted();
  add(chatId, [{ name, text, tokens }]);
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
