//! Finding text in what is shown, also where it runs from one element into the next.

/** Where the query is in a text, without regard to case; matches do not overlap. */
export function findAll(text: string, query: string): number[] {
  const wanted = fold(query);
  const found: number[] = [];
  if (wanted === "") return found;
  const folded = fold(text);
  for (let at = folded.indexOf(wanted); at >= 0; at = folded.indexOf(wanted, at + wanted.length)) found.push(at);
  return found;
}

/** Lower case of the same length, so that places stay places. */
const fold = (text: string): string => {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return lower;
  // The lower case of İ is an i with a dot of its own.
  return Array.from(text, (c) => c.toLowerCase().slice(0, c.length)).join("");
};

/** The piece and the place in it of a place in all pieces together; at a border, the end of the one before if `end`. */
export function placeIn(lengths: readonly number[], at: number, end: boolean): { piece: number; offset: number } {
  let before = 0;
  for (let piece = 0; piece < lengths.length; piece += 1) {
    const length = lengths[piece]!;
    if (at < before + length || (end && at === before + length)) return { piece, offset: at - before };
    before += length;
  }
  const last = Math.max(0, lengths.length - 1);
  return { piece: last, offset: lengths[last] ?? 0 };
}

/** A formula is in the page twice: once drawn, once for those who listen. */
const isSeen = (node: Node): number =>
  node.parentElement?.closest(".katex-mathml") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;

/** The matches in the elements, in their order. */
export function findRanges(elements: Iterable<Element>, query: string): Range[] {
  const ranges: Range[] = [];
  for (const element of elements) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT, isSeen);
    const nodes: Text[] = [];
    while (walker.nextNode()) nodes.push(walker.currentNode as Text);
    const lengths = nodes.map((node) => node.data.length);
    for (const at of findAll(nodes.map((node) => node.data).join(""), query)) {
      const from = placeIn(lengths, at, false);
      const to = placeIn(lengths, at + query.length, true);
      const range = document.createRange();
      range.setStart(nodes[from.piece]!, from.offset);
      range.setEnd(nodes[to.piece]!, to.offset);
      ranges.push(range);
    }
  }
  return ranges;
}

/** Colours the matches without a change to the page; where the webview cannot, selects the one that is shown. */
export function mark(ranges: readonly Range[], now: Range | undefined): void {
  if (typeof Highlight === "undefined" || !CSS.highlights) {
    const selection = getSelection();
    selection?.removeAllRanges();
    if (now) selection?.addRange(now);
    return;
  }
  CSS.highlights.set("found", new Highlight(...ranges.filter((range) => range !== now)));
  CSS.highlights.set("found-now", new Highlight(...(now ? [now] : [])));
}
