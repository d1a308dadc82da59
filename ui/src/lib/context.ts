//! The web view's own menu of what is under the pointer.

/** Fields of text; what else an `input` may be has nothing to cut or paste. */
const EDITABLE = 'textarea, input:is([type="text"], [type="search"], [type="password"], [type="number"], :not([type])), [contenteditable]:not([contenteditable="false"])';

/** Whether it has something to offer there: to paste in a field, to copy selected text. On a link it would leave the page, elsewhere load it anew. */
export function hasMenu({ target, clientX: x, clientY: y }: Pick<MouseEvent, "target" | "clientX" | "clientY">, selection: Selection | null): boolean {
  if (!(target instanceof Element)) return false;
  if (target.closest(EDITABLE)) return true;
  if (target.closest("a") || !selection || selection.isCollapsed) return false;
  const selected = [...selection.getRangeAt(0).getClientRects()];
  return selected.some(({ left, right, top, bottom }) => x >= left && x <= right && y >= top && y <= bottom);
}
