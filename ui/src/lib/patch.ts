//! HTML into the page with as little change as can be: what is the same stays, with its selection and its place in a box that scrolls.

import DOMPurify, { type Config } from "dompurify";

/** What KaTeX keeps a formula's source in, for those who read MathML. */
const ALLOWED: Config & { RETURN_DOM_FRAGMENT: true } = { ADD_TAGS: ["semantics", "annotation"], ADD_ATTR: ["encoding"], RETURN_DOM_FRAGMENT: true };

/** Makes the element hold this HTML, cleaned of all that could act. */
export function show(element: Element, html: string): void {
  patch(element, DOMPurify.sanitize(html, ALLOWED));
}

function patch(old: Node, wanted: Node): void {
  let at = old.firstChild;
  for (let next = wanted.firstChild; next; ) {
    const following = next.nextSibling;
    if (!at) old.appendChild(next);
    else {
      const after: ChildNode | null = at.nextSibling;
      if (!become(at, next)) old.replaceChild(next, at);
      at = after;
    }
    next = following;
  }
  while (at) {
    const after: ChildNode | null = at.nextSibling;
    at.remove();
    at = after;
  }
}

/** Makes a node like another one of its kind; false if it is of another kind. */
function become(old: Node, wanted: Node): boolean {
  if (old.nodeName !== wanted.nodeName) return false;
  if (old instanceof Element && wanted instanceof Element) {
    for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    patch(old, wanted);
  } else if (old.nodeValue !== wanted.nodeValue) grow(old as CharacterData, wanted.nodeValue ?? "");
  return true;
}

/** Text added at the end leaves a selection in what was there alone. */
function grow(node: CharacterData, text: string): void {
  if (text.startsWith(node.data)) node.appendData(text.slice(node.length));
  else node.data = text;
}
