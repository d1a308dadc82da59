//! What is copied of a selection with formulas: their LaTeX, in the place of the letters that they are drawn with.

/** Puts the selection on the clipboard if it holds formulas; otherwise the webview does. */
export function copyFormulas(event: ClipboardEvent): void {
  const selection = getSelection();
  if (!selection || selection.isCollapsed || !event.clipboardData) return;
  const range = selection.getRangeAt(0).cloneRange();
  const first = formulaAt(range.startContainer);
  const last = formulaAt(range.endContainer);
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  const text = withSources(range.cloneContents());
  if (text === null) return;
  event.clipboardData.setData("text/plain", text);
  event.preventDefault();
}

const formulaAt = (node: Node): Element | null => (node instanceof Element ? node : node.parentElement)?.closest(".formula") ?? null;

/** The text of a piece of the page; null if it holds no formula. */
function withSources(piece: DocumentFragment): string | null {
  const formulas = piece.querySelectorAll<HTMLElement>(".formula");
  if (formulas.length === 0) return null;
  for (const formula of formulas) {
    formula.replaceChildren(formula.dataset.source ?? "");
    formula.style.whiteSpace = "pre";
  }
  // Their words cannot be selected.
  for (const caption of piece.querySelectorAll("figcaption")) caption.remove();
  // Only what is in the page has lines.
  const place = document.createElement("div");
  place.className = "markdown";
  place.style.cssText = "position:fixed;inset:0 auto auto -200vw;width:100vw;white-space:normal";
  place.append(piece);
  document.body.append(place);
  const text = place.innerText ?? place.textContent;
  place.remove();
  return text;
}
