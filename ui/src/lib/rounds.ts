//! The round strip's columns: what each draft-verify-accept turn kept.

import type { Run } from "../bindings";

/** One column of the strip: one round, or several that share it. */
export interface Column {
  /** Index of its first round. */
  first: number;
  /** Rounds in it. */
  rounds: number;
  /** Drafts proposed in it. */
  drafted: number;
  /** Drafts kept in it. */
  accepted: number;
  /** For each draft position: the share of its proposals kept, or null where none was proposed. */
  cells: (number | null)[];
}

/**
 * Drafts proposed in round `index`. Where the figures do not tell (replies of earlier versions), all rounds proposed
 * a full block but the last, which may have been cut short by the token limit; the total tells by how much.
 */
function proposed(run: Run, index: number): number {
  const told = run.draftedPerRound[index];
  if (told !== undefined) return told;
  const full = Math.max(0, run.blockSize - 1);
  if (index < run.acceptedPerRound.length - 1) return full;
  const rest = run.drafted - full * (run.acceptedPerRound.length - 1);
  return Math.min(full, Math.max(rest, run.acceptedPerRound[index] ?? 0));
}

/** At most `most` columns, each of the same number of rounds (the last may hold fewer). */
export function columns(run: Run, most: number): Column[] {
  const depth = deepest(run);
  const total = run.acceptedPerRound.length;
  if (depth === 0 || total === 0 || most < 1) return [];
  const per = Math.ceil(total / most);
  const out: Column[] = [];
  for (let first = 0; first < total; first += per) {
    const rounds = Math.min(per, total - first);
    const kept = new Array<number>(depth).fill(0);
    const asked = new Array<number>(depth).fill(0);
    for (let round = first; round < first + rounds; round += 1) {
      const accepted = Math.min(depth, run.acceptedPerRound[round] ?? 0);
      const drafts = proposed(run, round);
      for (let position = 0; position < depth; position += 1) {
        if (position < accepted) kept[position]! += 1;
        if (position < drafts) asked[position]! += 1;
      }
    }
    out.push({
      first,
      rounds,
      drafted: sum(asked),
      accepted: sum(kept),
      cells: asked.map((n, position) => (n === 0 ? null : kept[position]! / n)),
    });
  }
  return out;
}

/** Most drafts of any round. */
export const deepest = (run: Run): number =>
  run.draftedPerRound.length > 0 ? run.draftedPerRound.reduce((a, b) => Math.max(a, b), 0) : Math.max(0, run.blockSize - 1);

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
