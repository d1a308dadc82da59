//! How the text of a reply came: the tokens of its rounds, laid over its text.

import type { RoundText } from "../bindings";

/** What a stretch of text is: a draft that was accepted, the model's own token, a round of several (replies of earlier
 * versions), or nothing that was kept. */
export type Kind = "draft" | "own" | "round" | "unknown";

export interface Stretch {
  text: string;
  kind: Kind;
  /** The draft's position in its round, from 1; of a whole round, the drafts accepted; else 0. */
  depth: number;
  /** Null where it is not known. */
  round: RoundText | null;
  /** The draft that was rejected in the place of this token. */
  rejected: string | null;
}

/** Shades that can be told apart; deeper drafts share the last. */
export const SHADES = 4;

/** 0 for the model's own tokens, else a shade by the position of the draft. */
export const shade = ({ depth }: Stretch): number => Math.min(SHADES, depth);

/** The deepest draft that was accepted, as far as shades go. */
export const deepest = (cut: readonly Stretch[]): number => cut.reduce((most, stretch) => Math.max(most, shade(stretch)), 0);

/** Whether a round says which token showed what. */
const isByToken = (round: RoundText): boolean => round.pieces.length > 0;

function stretch(text: string, round: RoundText, token: number): Stretch {
  const isDraft = token < round.accepted;
  return { text, kind: isDraft ? "draft" : "own", depth: isDraft ? token + 1 : 0, round, rejected: isDraft ? null : round.rejected };
}

const unknown = (text: string): Stretch => ({ text, kind: "unknown", depth: 0, round: null, rejected: null });

/**
 * The answer, or the thinking block, cut by token; tokens without text are in none. What no round accounts for, at the
 * end, is of unknown origin.
 */
export function stretches(text: string, rounds: readonly RoundText[], part: "answer" | "thinking" = "answer"): Stretch[] {
  const cut: Stretch[] = [];
  let at = 0;
  const take = (length: number, make: (piece: string) => Stretch): void => {
    const piece = text.slice(at, at + length);
    if (piece !== "") cut.push(make(piece));
    at += length;
  };
  for (const round of rounds) {
    if (isByToken(round)) {
      const lengths = part === "answer" ? round.pieces : round.thinking;
      lengths.forEach((length, token) => take(length, (piece) => stretch(piece, round, token)));
    } else if (part === "answer") {
      take(round.length, (piece) =>
        round.tokens > 0 ? { text: piece, kind: "round", depth: round.accepted, round, rejected: null } : unknown(piece),
      );
    }
  }
  if (at < text.length) cut.push(unknown(text.slice(at)));
  return cut;
}

/** A round, token by token. */
export interface Spelled {
  /** Texts of the accepted drafts; empty ones showed nothing. */
  accepted: string[];
  rejected: string | null;
  /** Drafts behind the rejected one, which nobody judged. */
  behind: number;
  /** The model's own token; null where the reply ended before one. */
  own: string | null;
}

/** What the rounds with drafts wrote, the `index`th of them; null where that was not kept. */
export function spelled(answer: string, thinking: string, rounds: readonly RoundText[], index: number): Spelled | null {
  let [inAnswer, inThinking, drafting] = [0, 0, -1];
  for (const round of rounds) {
    const texts = round.pieces.map((length, token) => {
      const thought = round.thinking[token] ?? 0;
      const text = thinking.slice(inThinking, inThinking + thought) + answer.slice(inAnswer, inAnswer + length);
      [inAnswer, inThinking] = [inAnswer + length, inThinking + thought];
      return text;
    });
    if (!isByToken(round)) inAnswer += round.length;
    if (round.drafted === 0 || (drafting += 1) < index) continue;
    if (!isByToken(round)) return null;
    const judged = round.accepted + (round.rejected === null ? 0 : 1);
    return {
      accepted: texts.slice(0, round.accepted),
      rejected: round.rejected,
      behind: Math.max(0, round.drafted - judged),
      own: texts[round.accepted] ?? null,
    };
  }
  return null;
}

const NAMES: Record<string, string> = { "\n": "↵", "\t": "⇥", "\r": "↵" };

/** A token's text on one line: white space that would not be seen is shown. */
export const visible = (text: string): string =>
  /^\s+$/.test(text) ? text.replaceAll(/\s/g, (c) => NAMES[c] ?? "␣") : text.replaceAll(/[\n\t\r]/g, (c) => NAMES[c] ?? c);
