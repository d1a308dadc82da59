//! How the text of an answer came: the rounds that wrote it, laid over its text.

import type { RoundText } from "../bindings";

export interface Stretch {
  text: string;
  /** Null where it is not known. */
  round: RoundText | null;
}

/** The text cut where rounds end; what no round accounts for, at the end, is of unknown origin. */
export function stretches(text: string, rounds: readonly RoundText[]): Stretch[] {
  const cut: Stretch[] = [];
  let at = 0;
  for (const round of rounds) {
    if (round.length === 0) continue;
    const piece = text.slice(at, at + round.length);
    if (piece !== "") cut.push({ text: piece, round: round.tokens > 0 ? round : null });
    at += round.length;
  }
  if (at < text.length) cut.push({ text: text.slice(at), round: null });
  return cut;
}

/** Shades that can be told apart; more accepted drafts share the last. */
export const SHADES = 4;

/** 0 for the model's own tokens alone, else a shade by how many drafts the round kept. */
export const shade = (round: RoundText | null): number => Math.min(SHADES, round?.accepted ?? 0);

/** The most drafts that any round kept, as far as shades go. */
export const deepest = (cut: readonly Stretch[]): number => Math.max(0, ...cut.map(({ round }) => shade(round)));
