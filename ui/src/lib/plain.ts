//! Markdown as plain text: for pasting where marks would only be in the way.

import { marked, type Token, type Tokens } from "marked";
import { numbered, restored } from "./formulas";

const block = (tokens: Token[]): string => tokens.map(one).filter((text) => text !== "").join("\n\n");

const inline = (tokens: Token[] | undefined): string =>
  (tokens ?? [])
    .map((token) => {
      if (token.type === "br") return "\n";
      if (token.type === "link") {
        const label = inline(token.tokens);
        return label === token.href || token.href.startsWith("mailto:") ? label : `${label} (${token.href})`;
      }
      if ("tokens" in token && token.tokens) return inline(token.tokens);
      return unescape("text" in token ? String(token.text) : token.raw);
    })
    .join("");

// The lexer leaves the entities that it made of these.
const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
const unescape = (text: string): string => text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]!);

function one(token: Token): string {
  switch (token.type) {
    case "space":
    case "hr":
    case "def":
      return "";
    case "code":
      return (token as Tokens.Code).text;
    case "blockquote":
      return block((token as Tokens.Blockquote).tokens);
    case "list": {
      const { items, ordered, start } = token as Tokens.List;
      return items
        .map((item, index) => {
          const sign = ordered ? `${Number(start || 1) + index}.` : "-";
          const box = item.task ? (item.checked ? "[x] " : "[ ] ") : "";
          const body = item.tokens.map(one).filter((text) => text !== "").join("\n");
          return `${sign} ${box}${body.replaceAll("\n", `\n${" ".repeat(sign.length + 1)}`)}`;
        })
        .join("\n");
    }
    case "table": {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows].map((cells) => cells.map((cell) => inline(cell.tokens)).join("\t")).join("\n");
    }
    case "html":
      return token.raw.trim();
    default:
      return "tokens" in token && token.tokens ? inline(token.tokens) : unescape("text" in token ? String(token.text) : token.raw);
  }
}

/** Formulas stay as they were written. */
export function plainText(markdown: string): string {
  const { text, found } = numbered(markdown, false);
  return restored(block(marked.lexer(text)), found, (formula) => formula.source);
}
