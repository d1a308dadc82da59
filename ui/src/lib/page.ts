//! How much of a long chat is drawn.

import type { Message } from "../bindings";

/** Messages that join at once when one scrolls up to them. */
export const PAGE = 12;
/** As many characters as fill a large window; each message takes some room besides. */
const FILLS = 5000;
const ROOM = 200;

/** Messages at the end that fill the window when a chat opens. A shorter chat is drawn whole, and grows to some pages. */
export function firstPage(messages: readonly Pick<Message, "content">[]): number {
  let filled = 0;
  for (let count = 1; count <= messages.length; count += 1) {
    filled += ROOM + messages.at(-count)!.content.length;
    if (filled >= FILLS && count > 1) return count;
  }
  return 2 * PAGE;
}
