//! Text with names in backticks, as errors have it.

export interface Span {
  text: string;
  isCode: boolean;
}

/** The parts in their order. A backtick without a second one is itself. */
export const spans = (text: string): Span[] =>
  text
    .split(/`([^`\n]+)`/)
    .map((part, index) => ({ text: part, isCode: index % 2 === 1 }))
    .filter((span) => span.text !== "");
