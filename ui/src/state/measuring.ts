//! What comparisons and benchmarks share: one of a kind runs at a time, tells how far it is, ends with a result or an
//! error, and is listed among the earlier ones.

import type { AppError, Measurement } from "../bindings";

export interface Running {
  /** Our own number of it: events of an earlier one must not end this one. */
  turn: number;
  /** Runs in all, warm-ups included; 0 until it has begun. */
  runs: number;
  /** Runs that are over. */
  done: number;
  stopping: boolean;
}

export interface Measuring<R extends Running> {
  running: R | null;
  error: AppError | null;
  /** Newest first; null until it was read. */
  history: Measurement[] | null;
}

export type MeasuringEvent<E> =
  | { type: "asked"; turn: number }
  | { type: "streamed"; turn: number; event: E }
  | { type: "stopping"; on: boolean }
  | { type: "lost"; turn: number; error: AppError }
  | { type: "listed"; history: Measurement[] };

export const begun = (turn: number): Running => ({ turn, runs: 0, done: 0, stopping: false });

/** The share of the runs that is over, as far as is known. */
export const share = ({ runs, done }: Running): number => (runs === 0 ? 0 : done / runs);

/** Whatever is not the kind's own; `streamed` takes the events of the one that runs. */
export function applyShared<R extends Running, S extends Measuring<R>, E>(
  state: S,
  event: Exclude<MeasuringEvent<E>, { type: "asked" }>,
  streamed: (state: S, running: R, event: E) => S,
): S {
  switch (event.type) {
    case "streamed":
      return state.running?.turn === event.turn ? streamed(state, state.running, event.event) : state;
    case "stopping":
      return state.running ? { ...state, running: { ...state.running, stopping: event.on } } : state;
    case "lost":
      return state.running?.turn === event.turn ? { ...state, running: null, error: event.error } : state;
    case "listed":
      return { ...state, history: event.history };
  }
}
