//! What is said of a reply's thinking.

import type { Thought } from "../bindings";
import { duration, plural } from "./format";
import { strings } from "./strings";

/** The line over the thinking block; of replies of earlier versions only the words are known. */
export function thoughtLine(thought: Thought | null, text: string, isThinking: boolean): string {
  const s = strings.thinking;
  if (!thought) return isThinking ? s.open : s.closed(plural(text.trim().split(/\s+/).length, strings.counted.words));
  const length = s.length(duration(thought.ms), plural(thought.tokens, strings.counted.tokens));
  if (isThinking) return s.openFor(length);
  const by = thought.ended === "person" ? s.endedByYou : thought.ended === "budget" ? s.endedByBudget : null;
  return by === null ? s.closed(length) : s.ended(s.closed(length), by);
}
