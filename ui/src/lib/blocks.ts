//! A growing markdown text as blocks, of which only the open tail is lexed again.

import { Lexer, type Token } from "marked";
import { masked } from "./formulas";

/** Where `[name]: address` leads, by the name in lower case. */
export type Links = Record<string, { href: string; title: string | undefined }>;

/** One top-level markdown block with the blank lines after it. A block that did not change keeps its identity. */
export interface Block {
  id: number;
  raw: string;
  /** Nothing that follows can change it any more. */
  done: boolean;
  /** The links that it names and another block defines. */
  links?: Links;
}

/**
 * Tokens kept open at the end. A block's end is certain only once two more follow it: in `1. a⏎⏎2`, the `2` reads as
 * a paragraph until its dot arrives and makes it an item of the list before.
 */
const OPEN = 2;

export class BlockStream {
  blocks: Block[] = [];
  #closed = 0;
  #tail = "";
  #finished = false;
  #links: Links = nothing();
  /** The blocks that name a link, and may do so before it is defined. */
  #naming = new Map<string, number[]>();
  /** Half of a character whose other half is still to come. */
  #half = "";

  /** Adds text at the end. A text that goes on after its end is lexed again: what seemed to be its last block goes on too. */
  push(text: string): void {
    if (text === "") return;
    if (this.#finished) {
      this.#finished = false;
      this.#closed = 0;
      this.#links = nothing();
      this.#naming.clear();
      this.#tail = this.blocks.map((block) => block.raw).join("");
    }
    const whole = this.#half + text;
    this.#half = /[\ud800-\udbff]$/.test(whole) ? whole.slice(-1) : "";
    // The lexer counts line ends as one character.
    this.#tail += whole.slice(0, whole.length - this.#half.length).replaceAll("\r", "");
    if (this.#tail === "") return;
    const found = split(this.#tail);
    const closing = Math.max(0, found.length - OPEN);
    const next = this.blocks.slice(0, this.#closed);
    found.forEach(({ raw }, index) => next.push(this.#keep({ id: this.#closed + index, raw, done: index < closing })));
    this.#tail = found.slice(closing).map(({ raw }) => raw).join("");
    this.#closed += closing;
    this.blocks = next;
    this.#link(found.slice(0, closing), this.#closed - closing);
  }

  /** The text is complete: all blocks are done. */
  finish(): void {
    if (this.#finished) return;
    const from = this.#closed;
    const found = this.#tail === "" ? [] : split(this.#tail);
    this.blocks = this.blocks.map((block) => this.#keep({ ...block, done: true }));
    this.#closed = this.blocks.length;
    this.#tail = "";
    this.#finished = true;
    this.#link(found, from);
  }

  #keep(block: Block): Block {
    const old = this.blocks[block.id];
    return old && old.raw === block.raw && old.done === block.done ? old : block;
  }

  /** Tells blocks that were just closed which links they name, and older ones of links that these define. */
  #link(closed: readonly Piece[], from: number): void {
    const changed = new Set<number>();
    closed.forEach(({ raw, link }, index) => {
      const id = from + index;
      if (link) {
        if (Object.hasOwn(this.#links, link.name)) return;
        this.#links[link.name] = { href: link.href, title: link.title };
        for (const naming of this.#naming.get(link.name) ?? []) changed.add(naming);
        return;
      }
      for (const name of namesIn(raw)) {
        const naming = this.#naming.get(name);
        if (naming) naming.push(id);
        else this.#naming.set(name, [id]);
        if (Object.hasOwn(this.#links, name)) changed.add(id);
      }
    });
    for (const id of changed) {
      const block = this.blocks[id];
      if (!block) continue;
      const known = [...namesIn(block.raw)].filter((name) => Object.hasOwn(this.#links, name));
      this.blocks[id] = { ...block, links: Object.fromEntries(known.map((name) => [name, this.#links[name]!])) };
    }
  }
}

/** Not even `constructor` is a link before it is defined. */
const nothing = (): Links => Object.create(null) as Links;

/** A block's text, and the link that it defines. */
interface Piece {
  raw: string;
  link?: { name: string; href: string; title: string | undefined };
}

/** As the lexer compares them; a longer name is none. */
const namesIn = (raw: string): Set<string> =>
  new Set(Array.from(raw.matchAll(/\[((?:\\.|[^[\]\\]){1,999})\]/g), (match) => match[1]!.replace(/\s+/g, " ").toLowerCase()));

/**
 * The text of each block; blank lines belong to the block before them (or, at the start, after them).
 * Cut from the text by length: the lexer's own copy of an empty list item ends with a line break it made up.
 * Only blocks are looked for: what is inside them is read when they are drawn.
 */
function split(text: string): Piece[] {
  const cuts: number[] = [];
  const tokens: Token[] = [];
  let end = 0;
  for (const token of new Lexer().blockTokens(masked(text, true), [])) {
    if (token.type !== "space") {
      if (tokens.length > 0) cuts.push(end);
      tokens.push(token);
    }
    end += token.raw.length;
  }
  return [0, ...cuts].map((from, index) => {
    const raw = text.slice(from, cuts[index]);
    const token = tokens[index];
    if (token?.type !== "def") return { raw };
    return { raw, link: { name: token.tag as string, href: token.href as string, title: token.title as string | undefined } };
  });
}
