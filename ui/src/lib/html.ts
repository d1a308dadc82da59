//! A block as HTML. All of it comes from this renderer: HTML that a model writes is shown, not obeyed, and no image is fetched.

import { Marked, type Tokens } from "marked";
import remend from "remend";
import type { Block } from "./blocks";
import { highlight } from "./highlight";
import { strings } from "./strings";

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
export const escape = (text: string): string => text.replace(/[&<>"']/g, (c) => ENTITIES[c]!);

/** Links the app opens, in the system's browser or mail program. */
export const isExternal = (href: string): boolean => /^(https?|mailto):/i.test(href);

function renderer(coloured: boolean): Marked {
  return new Marked({
    gfm: true,
    // A line of a poem or of an address is a line.
    breaks: true,
    renderer: {
      code({ text, lang }: Tokens.Code) {
        const language = (lang ?? "").trim().split(/\s/)[0]!.toLowerCase();
        const body = (coloured && highlight(text, language)) || escape(text);
        const name = language || strings.chat.code;
        return (
          `<figure class="code"><figcaption><span>${escape(name)}</span>` +
          `<button type="button" data-copy>${strings.chat.copy}</button></figcaption>` +
          `<pre tabindex="0"><code>${body}</code></pre></figure>`
        );
      },
      html({ text }: Tokens.HTML | Tokens.Tag) {
        return /^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escape(text);
      },
      image({ text }: Tokens.Image) {
        return escape(strings.chat.image(text));
      },
      link({ href, tokens }: Tokens.Link) {
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
const isClosedFence = (raw: string): boolean => /^\s*([`~]{3,})[^\n]*\n(?:[\s\S]*\n)?\1[`~]*\s*$/.test(raw);

/** HTML of one block; an open one is first completed, so that half a `**` never shows. */
export function html(block: Block): string {
  if (block.done || isClosedFence(block.raw)) return coloured.parse(block.raw, { async: false });
  return plain.parse(remend(block.raw), { async: false });
}
