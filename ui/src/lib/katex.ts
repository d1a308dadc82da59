//! Formulas as MathML, for those who listen, and as boxes of letters, for those who look. KaTeX comes with the first formula.

import type { KatexOptions } from "katex";
import { copyFormulas } from "./copy";
import { escape } from "./escape";
import type { Formula } from "./formulas";

/** No command that leads or loads anywhere or gives out HTML; bounds where a formula could grow without end. */
const OPTIONS: KatexOptions = { output: "htmlAndMathml", throwOnError: true, strict: "ignore", trust: false, maxSize: 10, maxExpand: 500 };
/** A longer formula, and one that comes to more HTML, is shown as its source. */
const LONGEST = 4000;
const MOST_HTML = 400_000;
/** Formulas kept drawn: a block that grows is drawn again at each piece of text. */
const KEPT = 500;

type Draw = (tex: string, options: KatexOptions) => string;
let render: Draw | undefined;
let loading: Promise<void> | undefined;
const drawn = new Map<string, string>();

/** Loads KaTeX; resolves when formulas can be drawn. */
export function loadKatex(): Promise<void> {
  loading ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")]).then(([katex]) => {
    render = katex.default.renderToString;
    document.addEventListener("copy", copyFormulas);
  });
  return loading;
}

export const isKatexHere = (): boolean => render !== undefined;

/** HTML of a formula: its source while it is open, before KaTeX is here, and where KaTeX cannot read it. */
export function draw(formula: Formula): string {
  const { source, tex, display, open } = formula;
  if (open) return `<span class="formula-open">${escape(source)}</span>`;
  const shown = render && tex.length <= LONGEST ? (drawn.get(source) ?? keep(source, tried(render, tex, display))) : null;
  const body = shown || `<code dir="ltr">${escape(source)}</code>`;
  const attributes = `class="formula${display ? " display" : ""}" dir="ltr" data-source="${escape(source)}"`;
  return `<span ${attributes}${display ? ' tabindex="0"' : ""}>${body}</span>`;
}

function tried(render: Draw, tex: string, displayMode: boolean): string {
  try {
    const html = render(tex, { ...OPTIONS, displayMode });
    return html.length <= MOST_HTML ? html : "";
  } catch {
    return "";
  }
}

function keep(source: string, html: string): string {
  if (drawn.size >= KEPT) drawn.delete(drawn.keys().next().value!);
  drawn.set(source, html);
  return html;
}
