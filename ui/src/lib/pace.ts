//! Tokens a second over the time of a reply.

import type { PaceBin, Run } from "../bindings";

export interface PacePoint {
  /** Milliseconds of writing up to here. */
  ms: number;
  /** Tokens a second of the rounds around here. */
  rate: number;
}

/** Fewest rounds that make a rate: a single one gives a burst, not a pace. */
const WINDOW = 8;
/** The share of the reply that a rate is taken over. */
const SHARE = 1 / 20;

/** A rate for each stretch of rounds, taken over as many before it as make one. Empty where there are too few rounds. */
export function points(bins: readonly PaceBin[]): PacePoint[] {
  const rounds = bins.reduce((sum, bin) => sum + bin.rounds, 0);
  const window = Math.max(WINDOW, Math.round(rounds * SHARE));
  const out: PacePoint[] = [];
  let [ms, from] = [0, 0];
  const within = { rounds: 0, tokens: 0, ms: 0 };
  const add = (bin: PaceBin, sign: 1 | -1): void => {
    within.rounds += sign * bin.rounds;
    within.tokens += sign * bin.tokens;
    within.ms += sign * bin.ms;
  };
  bins.forEach((bin) => {
    add(bin, 1);
    ms += bin.ms;
    while (within.rounds - bins[from]!.rounds >= window) {
      add(bins[from]!, -1);
      from += 1;
    }
    if (within.rounds >= window && within.ms > 0) out.push({ ms, rate: (within.tokens / within.ms) * 1000 });
  });
  return out.length > 1 ? out : [];
}

/** So much writing makes a rate that says something: a first round is over in no time. */
const SURE_MS = 250;
const SURE_ROUNDS = 2;

/** Tokens a second of a reply that is being written; not a number until there is one to speak of. */
export const liveRate = (run: Run): number => (run.decodeMs >= SURE_MS || run.rounds >= SURE_ROUNDS ? run.tokensPerSecond : NaN);

/** The same where only tokens and their rate are told. */
export const sureRate = (tokens: number, rate: number): number => (tokens >= (rate * SURE_MS) / 1000 && tokens > 0 ? rate : NaN);
