//! Where a text has formulas: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. Markdown is read with something in their place that means nothing to it.

export interface Formula {
  from: number;
  to: number;
  /** As it was written, with its delimiters. */
  source: string;
  /** What is between them. */
  tex: string;
  display: boolean;
  /** It has not ended yet; until then its source is shown. */
  open: boolean;
}

/** Unicode keeps these for a program's own use; any that a text brings are no text. */
const FIRST = "\ufdd0";
const REST = "\ufdd1";
const OWN = /[\ufdd0-\ufdef]/g;

const MARKS = /[\\$`\n]/g;
const FENCE = /[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})/y;
const BLANK = /\n[ \t>]*(?=\n)/g;
const WORD = /[A-Za-z0-9]/;
const ITEM = /\n[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]/;
/** Nobody writes a longer fence, and an expression that counts further is refused. */
const LONGEST_FENCE = 100;

/** "5 and 10", "3 million": a sum of money. */
const PRICE = /^[\d.,]+\s+[A-Za-z]{2,}/;
/** Two words beside each other, outside of a command's braces. */
const WORDS = /(?:^|[^\\A-Za-z])[A-Za-z]{2,}[ ,]+[A-Za-z]{2,}/;
const isProse = (tex: string): boolean => PRICE.test(tex) || WORDS.test(tex.replace(/\\[A-Za-z]+\s*\{[^{}]*\}?/g, "\\"));

/** The formulas of a text, in their order. In one that grows, what may become a formula at its end is an open one. */
export function formulas(text: string, growing: boolean): Formula[] {
  if (!/[$\\]/.test(text)) return [];
  return new Reader(text, growing).read();
}

/** One pass: what was looked for once in a paragraph and not found is not looked for again there. */
class Reader {
  #found: Formula[] = [];
  #at = 0;
  #paragraphEnd = 0;
  #missing = new Set<string>();

  constructor(
    readonly text: string,
    readonly growing: boolean,
  ) {}

  read(): Formula[] {
    this.#fence();
    while (this.#at < this.text.length) {
      MARKS.lastIndex = this.#at;
      const mark = MARKS.exec(this.text);
      if (!mark) break;
      this.#at = mark.index;
      if (this.#at >= this.#paragraphEnd) this.#paragraph();
      if (mark[0] === "\n") {
        this.#at += 1;
        this.#fence();
      } else if (mark[0] === "`") this.#code();
      else if (mark[0] === "$") this.#dollars();
      else this.#backslash();
    }
    return this.#found;
  }

  /** A formula and a code span end before the next blank line. */
  #paragraph(): void {
    BLANK.lastIndex = this.#at;
    this.#paragraphEnd = (BLANK.exec(this.text)?.index ?? this.text.length - 1) + 1;
    this.#missing.clear();
  }

  /** Goes past fenced code that begins in this line. */
  #fence(): void {
    FENCE.lastIndex = this.#at;
    const fence = FENCE.exec(this.text)?.[1];
    if (!fence) return;
    if (fence.length > LONGEST_FENCE) return void (this.#at = this.text.length);
    const close = new RegExp(`\\n[ \\t>]*${fence[0]}{${fence.length},}[ \\t]*(?=\\n|$)`, "g");
    close.lastIndex = FENCE.lastIndex;
    this.#at = close.test(this.text) ? close.lastIndex : this.text.length;
  }

  #code(): void {
    const run = /`+/y;
    run.lastIndex = this.#at;
    const ticks = run.exec(this.text)![0];
    this.#at += ticks.length;
    if (this.#missing.has(ticks)) return;
    const runs = /`+/g;
    runs.lastIndex = this.#at;
    for (let next = runs.exec(this.text); next && next.index < this.#paragraphEnd; next = runs.exec(this.text)) {
      if (next[0].length === ticks.length) return void (this.#at = runs.lastIndex);
    }
    this.#missing.add(ticks);
  }

  #backslash(): void {
    const kind = this.text[this.#at + 1];
    if ((kind !== "(" && kind !== "[") || this.#isInWord()) return void (this.#at += 2);
    const close = kind === "(" ? ")" : "]";
    const end = this.#find(/\\([\s\S])/g, close, kind);
    if (end === null) return this.#open(2, kind === "[");
    // `\[a\](b)` is a link's text with its brackets escaped, and what begins in one item of a list does not end in another.
    const isOther = end < 0 || (kind === "[" ? this.text[end] === "(" : ITEM.test(this.text.slice(this.#at, end)));
    if (isOther) this.#at += 2;
    else this.#take(end, 2, kind === "[");
  }

  #dollars(): void {
    const run = /\$+/y;
    run.lastIndex = this.#at;
    const count = run.exec(this.text)![0].length;
    if (count > 2 || this.#isInWord()) return void (this.#at += count);
    if (count === 1) return this.#dollar();
    const end = this.#find(/\\[\s\S]|(\$\$)/g, "$$");
    if (end === null) this.#open(2, true);
    else this.#take(end, 2, true);
  }

  /** As Pandoc has it: no space inside at either end, on one line; and no money, no words, no name of a variable. */
  #dollar(): void {
    const { text } = this;
    const inside = /(?:\\[^\n]|[^$\\\n`])*/y;
    inside.lastIndex = this.#at + 1;
    const tex = inside.exec(text)![0];
    const close = inside.lastIndex;
    if (/^\s/.test(tex) || isProse(tex) || /\\[([]/.test(tex)) return void (this.#at += 1);
    // At the end, the next letter may show that the sign was no end of a formula.
    const isUndecided = close >= text.length - 1 && (close === text.length || text[close] === "$" || text[close] === "\\");
    if (this.growing && isUndecided) return this.#open(1, false);
    if (text[close] !== "$" || tex === "" || /\s$/.test(tex) || /[A-Za-z0-9$]/.test(text[close + 1] ?? "")) return void (this.#at += 1);
    this.#take(close + 1, 1, false);
  }

  /** Where the end is, in this paragraph; negative if another formula begins before it. */
  #find(pattern: RegExp, close: string, begin?: string): number | null {
    if (this.#missing.has(close)) return null;
    pattern.lastIndex = this.#at + 2;
    for (let match = pattern.exec(this.text); match && match.index < this.#paragraphEnd; match = pattern.exec(this.text)) {
      if (match[1] === close) return pattern.lastIndex;
      if (match[1] !== undefined && match[1] === begin) return -1;
    }
    this.#missing.add(close);
    return null;
  }

  #isInWord(): boolean {
    return WORD.test(this.text[this.#at - 1] ?? "");
  }

  #take(end: number, edge: number, display: boolean): void {
    const source = this.text.slice(this.#at, end);
    const tex = source.slice(edge, -edge);
    if (tex.trim() === "") return void (this.#at += edge);
    this.#add(source, this.#unquoted(tex), display, false);
  }

  /** No end yet: in a text that grows it may still come, before the next blank line. */
  #open(edge: number, display: boolean): void {
    if (!this.growing || this.#paragraphEnd < this.text.length) return void (this.#at += edge);
    const source = this.text.slice(this.#at);
    this.#add(source, source.slice(edge), display, true);
  }

  #add(source: string, tex: string, display: boolean, open: boolean): void {
    const from = this.#at;
    this.#at += source.length;
    this.#found.push({ from, to: this.#at, source, tex, display, open });
  }

  /** Lines of a formula in a quote have the quote's marks before them. */
  #unquoted(tex: string): string {
    if (!tex.includes("\n")) return tex;
    const line = this.text.slice(this.text.lastIndexOf("\n", this.#at) + 1, this.#at);
    const depth = /^[ \t]*(?:>[ \t]?)*/.exec(line)![0].split(">").length - 1;
    return depth === 0 ? tex : tex.replace(new RegExp(`\\n(?:[ \\t]*>){1,${depth}}`, "g"), "\n");
  }
}

/** More levels of quotes and lists in each other than this are shown as the signs they are written with. */
const DEEPEST = 24;
const SIGN = String.raw`(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))`;
const DEEP = new RegExp(String.raw`^((?:[ \t]*${SIGN}){${DEEPEST}}[ \t]*)([>*+\-\d])`, "gm");
const LEVELS = ">-*+0123456789";
const LEVEL_AT = 0xfdd2;
const LEVEL = /[\ufdd2-\ufddf]/g;

/** What of a line tells which block it is of. */
const TELLING = 4000;
const LONG_LINE = new RegExp(`^(.{${TELLING}})(.+)$`, "gm");

/** Stands for a text without what is not to be read as markdown: of the same length, with the same blocks. */
export function masked(text: string, growing: boolean): string {
  const clean = own(text).replace(LONG_LINE, (_, start: string, rest: string) => start + "a".repeat(rest.length));
  return flat(replaced(clean, formulas(clean, growing), (formula) => FIRST + REST.repeat(formula.to - formula.from - 1)));
}

/** A text with numbers in the place of its formulas. */
export function numbered(text: string, growing: boolean): { text: string; found: Formula[] } {
  const clean = own(text);
  const found = formulas(clean, growing);
  return { text: flat(replaced(clean, found, (_, index) => `${FIRST}${index}${REST}`)), found };
}

/** The other way: what was put in the place of something becomes what `of` makes of it. */
export function restored(text: string, found: readonly Formula[], of: (formula: Formula) => string, sign = (c: string): string => c): string {
  return text
    .replace(/\ufdd0(\d+)\ufdd1/g, (_, index: string) => of(found[Number(index)]!))
    .replace(LEVEL, (c) => sign(LEVELS[c.charCodeAt(0) - LEVEL_AT]!));
}

const own = (text: string): string => text.replace(OWN, "\ufffd");

/** Readers of markdown call themselves for each level, and the window cannot show many. */
const flat = (text: string): string =>
  text.replace(DEEP, (_, signs: string, next: string) => signs + String.fromCharCode(LEVEL_AT + LEVELS.indexOf(next)));

function replaced(text: string, found: readonly Formula[], by: (formula: Formula, index: number) => string): string {
  if (found.length === 0) return text;
  let out = "";
  let end = 0;
  found.forEach((formula, index) => {
    out += text.slice(end, formula.from) + by(formula, index);
    end = formula.to;
  });
  return out + text.slice(end);
}
