//! A block as HTML. All of it comes from this renderer: HTML that a model writes is shown, not obeyed, and no image is fetched.

import { Lexer, Marked, type Tokens } from "marked";
import remend from "remend";
import type { Block, Links } from "./blocks";
import { escape } from "./escape";
import { numbered, restored, type Formula } from "./formulas";
import { highlight } from "./highlight";
import { draw } from "./katex";
import { strings } from "./strings";

/** Links the app opens, in the system's browser or mail program. */
export const isExternal = (href: string): boolean => /^(https?|mailto):/i.test(href);

/** The formulas of the block that is drawn. Where no formula can be, what seemed to be one is its source. */
let found: Formula[] = [];
const written = (text: string): string => restored(text, found, (formula) => formula.source);

function renderer(coloured: boolean): Marked {
  return new Marked({
    gfm: true,
    // A line of a poem or of an address is a line.
    breaks: true,
    renderer: {
      code({ text: raw, lang }: Tokens.Code) {
        const text = written(raw);
        const language = written(lang ?? "").trim().split(/\s/)[0]!.toLowerCase();
        const body = (coloured && highlight(text, language)) || escape(text);
        const name = language || strings.chat.code;
        return (
          `<figure class="code"><figcaption><span>${escape(name)}</span>` +
          `<button type="button" data-copy>${strings.chat.copy}</button></figcaption>` +
          `<pre tabindex="0" dir="ltr"><code>${body}</code></pre></figure>`
        );
      },
      codespan({ text }: Tokens.Codespan) {
        return `<code>${escape(written(text))}</code>`;
      },
      html({ text }: Tokens.HTML | Tokens.Tag) {
        return /^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escape(written(text));
      },
      image({ text }: Tokens.Image) {
        return escape(strings.chat.image(written(text)));
      },
      link({ href: raw, tokens }: Tokens.Link) {
        const href = written(raw);
        const label = this.parser.parseInline(tokens);
        return isExternal(href) ? `<a href="${escape(href)}" title="${escape(href)}">${label}</a>` : label;
      },
      table(token: Tokens.Table) {
        const row = (cells: Tokens.TableCell[], tag: "th" | "td"): string =>
          `<tr>${cells.map((c) => `<${tag}${c.align ? ` align="${c.align}"` : ""}>${this.parser.parseInline(c.tokens)}</${tag}>`).join("")}</tr>`;
        const body = token.rows.map((cells) => row(cells, "td")).join("");
        return `<div class="table" tabindex="0"><table><thead>${row(token.header, "th")}</thead><tbody>${body}</tbody></table></div>`;
      },
    },
  });
}

const plain = renderer(false);
const coloured = renderer(true);

/** A fence that was closed can be coloured although its block is still open. */
const isClosedFence = (raw: string): boolean => /^\s*(`{3,}(?!`)|~{3,}(?!~))[^\n]*\n(?:[\s\S]*\n)?\1[`~]*\s*$/.test(raw);

/** Blocks are shown as they were written, code apart, where reading them would hold up the window: if they or one line of them is longer. */
const MOST = 200_000;
const LONGEST_LINE = 20_000;
const isCode = (raw: string): boolean => /^\s*(```|~~~)/.test(raw);
const isLong = (raw: string): boolean => raw.length > MOST || raw.split("\n").some((line) => line.length > LONGEST_LINE);

/** HTML of one block; an open one is first completed, so that half a `**` never shows. */
export function html({ raw, done, links }: Block): string {
  if (raw.length > LONGEST_LINE && isLong(raw) && !isCode(raw)) return `<p class="long">${escape(raw)}</p>`;
  const isWhole = done || isClosedFence(raw);
  const block = numbered(raw, !isWhole);
  found = block.found;
  const text = isWhole || isCode(raw) ? block.text : completed(block.text);
  return restored(parsed(isWhole ? coloured : plain, text, links), found, draw, escape);
}

/** Marks pair within an item, a cell or a paragraph. In a longer one they are left alone: looking for them would take too long. */
const LONGEST_PART = 2000;
const PART = /\n(?=[ \t>]*(?:\n|[-*+][ \t]|\d{1,9}[.)][ \t]|\|))/g;
const FENCES = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?:```|~~~)/gm;

/** Text with the marks closed that are open at its end. */
function completed(text: string): string {
  if ((text.match(FENCES)?.length ?? 0) % 2 === 1) return text;
  let from = 0;
  for (const match of text.matchAll(PART)) from = match.index + 1;
  if (text.length - from > LONGEST_PART) return text;
  // A mark at the very end waits for what it marks.
  return text.slice(0, from) + remend(text.slice(from).replace(/[*_`~]+$/, ""), { katex: false });
}

function parsed(marked: Marked, text: string, links: Links | undefined): string {
  const lexer = new Lexer(marked.defaults);
  Object.assign(lexer.tokens.links, links);
  return marked.parser(lexer.lex(text));
}
