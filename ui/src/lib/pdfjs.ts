//! PDF.js with its files, which the app itself serves. The older build: it also runs where the webview is that of macOS 14.

import workerUrl from "pdfjs-dist/legacy/build/pdf.worker.min.mjs?url";

/** What the letters of East Asian fonts without a table of their own stand for. */
const maps = import.meta.glob<string>("../../../node_modules/pdfjs-dist/cmaps/*.bcmap", { query: "?url", import: "default", eager: true });
const mapUrls = new Map(Object.entries(maps).map(([path, url]) => [path.slice(path.lastIndexOf("/") + 1), url]));

/** Loads PDF.js. */
export async function library(): Promise<typeof import("pdfjs-dist/legacy/build/pdf.mjs")> {
  const pdfjs = await import("pdfjs-dist/legacy/build/pdf.mjs");
  pdfjs.GlobalWorkerOptions.workerSrc = workerUrl;
  return pdfjs;
}

/** Gives PDF.js what it asks for of its own data: tables of letters, and no fonts, since nothing is drawn. */
export class BinaryData {
  async fetch({ filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    const url = mapUrls.get(filename);
    if (!url) throw new Error(`there is no ${filename}`);
    return new Uint8Array(await (await fetch(url)).arrayBuffer());
  }
}
