//! While nobody sees the window nothing is drawn: what arrives is gathered, and shown at once when somebody looks.

import type { ProvenanceNews, TurnEvent } from "../bindings";

type Delta = Extract<TurnEvent, { type: "delta" }>;

const joined = (before: Delta, next: Delta): Delta => ({
  type: "delta",
  reasoning: before.reasoning + next.reasoning,
  answer: before.answer + next.answer,
  thought: next.thought ?? before.thought,
  run: next.run ?? before.run,
  origin: bothNews(before.origin, next.origin),
});

/** News tells all rounds from one on: what came before that one still holds. */
function bothNews(before: ProvenanceNews | null, next: ProvenanceNews | null): ProvenanceNews | null {
  if (!before || !next || next.from <= before.from) return next ?? before;
  return { ...next, from: before.from, rounds: [...before.rounds.slice(0, next.from - before.from), ...next.rounds] };
}

/** What is used of `document`. */
export type Page = Pick<Document, "hidden" | "addEventListener" | "removeEventListener">;

/** Passes a turn's events on, text only while the page is seen. Nothing is lost: whatever else happens takes it along. */
export function whenSeen(pass: (event: TurnEvent) => void, page: Page = document): (event: TurnEvent) => void {
  let held: Delta | null = null;
  const flush = (): void => {
    const event = held;
    held = null;
    page.removeEventListener("visibilitychange", flush);
    if (event) pass(event);
  };
  return (event) => {
    if (event.type === "delta" && page.hidden) {
      if (!held) page.addEventListener("visibilitychange", flush);
      held = held ? joined(held, event) : event;
      return;
    }
    flush();
    pass(event);
  };
}
