//! A growing markdown text as blocks, of which only the open tail is lexed again.

import { marked } from "marked";

/** One top-level markdown block with the blank lines after it. A block that did not change keeps its identity. */
export interface Block {
  id: number;
  raw: string;
  /** Nothing that follows can change it any more. */
  done: boolean;
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

  /** Adds text at the end. A text that goes on after its end is lexed again: what seemed to be its last block goes on too. */
  push(text: string): void {
    if (text === "") return;
    if (this.#finished) {
      this.#finished = false;
      this.#closed = 0;
      this.#tail = this.blocks.map((block) => block.raw).join("");
    }
    // The lexer counts line ends as one character.
    this.#tail += text.replaceAll("\r", "");
    if (this.#tail === "") return;
    const raws = split(this.#tail);
    const closing = Math.max(0, raws.length - OPEN);
    const next = this.blocks.slice(0, this.#closed);
    raws.forEach((raw, index) => next.push(this.#keep({ id: this.#closed + index, raw, done: index < closing })));
    this.#tail = raws.slice(closing).join("");
    this.#closed += closing;
    this.blocks = next;
  }

  /** The text is complete: all blocks are done. */
  finish(): void {
    this.blocks = this.blocks.map((block) => this.#keep({ ...block, done: true }));
    this.#closed = this.blocks.length;
    this.#tail = "";
    this.#finished = true;
  }

  #keep(block: Block): Block {
    const old = this.blocks[block.id];
    return old && old.raw === block.raw && old.done === block.done ? old : block;
  }
}

/**
 * The text of each block; blank lines belong to the block before them (or, at the start, after them).
 * Cut from the text by length: the lexer's own copy of an empty list item ends with a line break it made up.
 */
function split(text: string): string[] {
  const cuts: number[] = [];
  let end = 0;
  let begun = false;
  for (const token of marked.lexer(text)) {
    if (token.type !== "space") {
      if (begun) cuts.push(end);
      begun = true;
    }
    end += token.raw.length;
  }
  return [0, ...cuts].map((from, index) => text.slice(from, cuts[index]));
}
