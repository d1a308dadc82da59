//! The text of a PDF, page by page. PDF.js reads it in a worker of its own, loaded with the first PDF: what a damaged or
//! hostile file does there ends with the worker.

import type { PDFDocumentProxy } from "pdfjs-dist/legacy/build/pdf.mjs";
import type { AppError } from "../bindings";
import { BinaryData, library } from "./pdfjs";
import { strings } from "./strings";

/** As with other files: more than fits any context. */
const LONGEST_TEXT = 4 << 20;
/** A file that has not been read by then never will be: it can keep its reader busy for ever. */
const PATIENCE_MS = 30_000;

export interface Limits {
  /** Most characters. */
  longest?: number;
  patienceMs?: number;
  /** Ends the reading. */
  signal?: AbortSignal;
}

const words = () => strings.files.pdf;

/** What is wrong with a file, and what to do. */
const refusal = ([message, hint]: readonly [message: string, hint: string]): AppError => ({ kind: "input", message, hint });

/** All of its text under the numbers of its pages; rejects with an `AppError` that names the file. */
export async function pdfText(name: string, bytes: Uint8Array, { longest = LONGEST_TEXT, patienceMs = PATIENCE_MS, signal }: Limits = {}): Promise<string> {
  const pdfjs = await library();
  signal?.throwIfAborted();
  const task = pdfjs.getDocument({
    data: bytes,
    BinaryDataFactory: BinaryData,
    cMapUrl: "cmaps/",
    cMapPacked: true,
    useWorkerFetch: false,
    // Nothing is drawn.
    disableFontFace: true,
    useSystemFonts: false,
    useWasm: false,
    isOffscreenCanvasSupported: false,
    enableXfa: false,
    verbosity: 0,
  });
  const over = new AbortController();
  const late = setTimeout(() => over.abort(refusal(words().slow(name))), patienceMs);
  const stop = (): void => over.abort(signal?.reason);
  signal?.addEventListener("abort", stop);
  try {
    return await Promise.race([task.promise.then((pdf) => read(name, pdf, longest, over.signal)), ended(over.signal)]);
  } catch (error) {
    if (isRefusal(error) || signal?.aborted) throw error;
    throw refusal(error instanceof Error && error.name === "PasswordException" ? words().locked(name) : words().damaged(name));
  } finally {
    clearTimeout(late);
    signal?.removeEventListener("abort", stop);
    over.abort();
    // Also ends a worker that is still at it.
    await Promise.race([task.destroy().catch(() => {}), new Promise((done) => setTimeout(done, 1000))]);
  }
}

/** Rejects with the reason that a signal is given. */
const ended = (signal: AbortSignal): Promise<never> =>
  new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason as Error), { once: true }));

const isRefusal = (error: unknown): error is AppError => typeof error === "object" && error !== null && "hint" in error;

async function read(name: string, pdf: PDFDocumentProxy, longest: number, over: AbortSignal): Promise<string> {
  const pages: string[] = [];
  let length = 0;
  let texts = 0;
  let damaged = 0;
  for (let number = 1; number <= pdf.numPages; number += 1) {
    const text = await pageText(pdf, number, longest).catch(() => {
      damaged += 1;
      return null;
    });
    over.throwIfAborted();
    if (text) texts += 1;
    pages.push(`${words().page(number, pdf.numPages)}\n${text === null ? words().pageDamaged : text || words().pageEmpty}\n`);
    length += text?.length ?? 0;
    if (length > longest) throw refusal(words().long(name));
  }
  if (texts === 0) throw refusal(damaged > 0 ? words().damaged(name) : words().scanned(name));
  return pages.join("\n");
}

/** The text of one page, in the order in which it was set. */
async function pageText(pdf: PDFDocumentProxy, number: number, longest: number): Promise<string> {
  const page = await pdf.getPage(number);
  const reader = page.streamTextContent().getReader();
  let text = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    for (const item of (piece.value as { items: { str?: string; hasEOL?: boolean }[] }).items) text += (item.str ?? "") + (item.hasEOL ? "\n" : "");
    if (text.length > longest) break;
  }
  page.cleanup();
  return text.replaceAll("\0", "").replace(/[ \t]+$/gm, "").replace(/\n{3,}/g, "\n\n").trim();
}
