//! Text files that go with a message: in the message they are fenced code under their names, before its words.

import type { Attachment } from "../bindings";

export interface Attached {
  name: string;
  text: string;
}

const HEAD = /^File: ([^\n]+)\n(`{3,})[^\n`]*\n/;

/** The message as the model reads it. */
export function compose(files: readonly Attached[], words: string): string {
  return [...files.map(fenced), words].filter((part) => part !== "").join("\n\n");
}

function fenced({ name, text }: Attached): string {
  // Longer than any run of backticks in the file, so that none of them ends it.
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  // What is here of a PDF is its text.
  const language = /\.(?!pdf$)([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  return `File: ${name.replaceAll("\n", " ")}\n${fence}${language}\n${text.endsWith("\n") ? text : `${text}\n`}${fence}`;
}

/** The files and the words of a message. */
export function split(content: string): { files: Attached[]; words: string } {
  const files: Attached[] = [];
  let rest = content;
  for (let head = HEAD.exec(rest); head; head = HEAD.exec(rest)) {
    const [start, name, fence] = head as unknown as [string, string, string];
    const close = `\n${fence}`;
    // The line end that opens the block may be the one before an empty file's closing fence.
    const end = rest.indexOf(close, start.length - 1);
    const after = rest.slice(end + close.length);
    if (end < 0 || (after !== "" && !after.startsWith("\n"))) break;
    files.push({ name, text: rest.slice(start.length, end + 1) });
    rest = after.replace(/^\n{1,2}/, "");
  }
  return { files, words: rest };
}

/** One more file. The same text under the same name is the same file; another text under it gets a number, as in a file manager. */
export function withFile<T extends Attached>(files: readonly T[], file: T): T[] {
  const [, base = "", ending = ""] = /^(.+?)(\.[^.]*)?$/s.exec(file.name) ?? [];
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? file.name : `${base} (${n})${ending}`;
    const at = files.findIndex((other) => other.name === name);
    if (at < 0) return [...files, { ...file, name }];
    if (files[at]!.text === file.text) return files.with(at, { ...file, name });
  }
}

/** The tokens of all files; null if one of them is not known. */
export const tokensOf = (files: readonly Attachment[]): number | null =>
  files.reduce<number | null>((sum, file) => (sum === null || file.tokens === null ? null : sum + file.tokens), 0);

/** Longer texts are judged by their start: this runs at each key. */
const SAMPLE = 8000;

/** What a text may come to before the model has counted it: four characters a token, fewer where each is a word. */
export function estimate(text: string): number {
  const sample = text.slice(0, SAMPLE);
  let tokens = 0;
  for (const c of sample) tokens += c.codePointAt(0)! < 0x2e80 ? 1 / 4 : 1 / 1.5;
  return Math.ceil(sample.length === 0 ? 0 : (tokens * text.length) / sample.length);
}
