//! Files from the clipboard. The page has their bytes and no path, so it reads them itself, by the same rules as the app reads
//! those from disk.

import type { AppError } from "../bindings";
import { strings } from "./strings";

const LONGEST_TEXT = 4 << 20;
const LONGEST_PDF = 64 << 20;

/** A file: its text, or null for a PDF, whose bytes are to be read. */
export interface Pasted {
  name: string;
  text: string | null;
  bytes: Uint8Array;
}

/** The files of a clipboard that are meant: words that were copied from a document may bring a picture of themselves. */
export function pastedFiles(data: Pick<DataTransfer, "files" | "getData"> | null): File[] {
  const files = [...(data?.files ?? [])];
  const isPicture = files.every(({ type }) => type.startsWith("image/"));
  return isPicture && data?.getData("text/plain") ? [] : files;
}

const refusal = ([message, hint]: readonly [message: string, hint: string]): AppError => ({ kind: "input", message, hint });

/** Rejects with an `AppError` that names the file. */
export async function readPasted(file: File): Promise<Pasted> {
  const words = strings.files.refused;
  const name = file.name || strings.files.pasted(1);
  if (file.type.startsWith("image/")) throw refusal(words.picture(name));
  if (file.size > LONGEST_PDF) throw refusal(words.longPdf(name));
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (begins(bytes, 0x25, 0x50, 0x44, 0x46, 0x2d)) return { name, text: null, bytes };
  if (begins(bytes, 0x50, 0x4b, 0x03, 0x04) || begins(bytes, 0xd0, 0xcf, 0x11, 0xe0)) throw refusal(words.office(name));
  if (bytes.length > LONGEST_TEXT) throw refusal(words.long(name));
  const text = decoded(bytes);
  if (text === null || text.includes("\0")) throw refusal(words.binary(name));
  return { name, text: text.replaceAll("\r\n", "\n"), bytes };
}

const begins = (bytes: Uint8Array, ...start: number[]): boolean => start.every((byte, at) => bytes[at] === byte);

/** Text in UTF-8, or in UTF-16 with its mark; null if it is none. */
function decoded(bytes: Uint8Array): string | null {
  const label = begins(bytes, 0xff, 0xfe) ? "utf-16le" : begins(bytes, 0xfe, 0xff) ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
