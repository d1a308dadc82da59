//! One request with speculation off and on: what is running, what it said, what came out, and what there was before.

import type { AppError, CompareEvent, Comparison, Measurement, Side } from "../bindings";

/** What one side is saying now. */
export interface Column {
  text: string;
  tokens: number;
  rate: number;
  prefill: { done: number; total: number } | null;
}

export interface Running {
  /** Our own number of it: events of an earlier one must not end this one. */
  turn: number;
  /** Runs in all, warm-ups included; 0 until it has begun. */
  runs: number;
  /** Runs that have begun. */
  begun: number;
  side: Side | null;
  /** From 1; 0 warms up. */
  repetition: number;
  stopping: boolean;
}

export interface CompareState {
  /** The reply to run again; null for a new prompt. */
  messageId: number | null;
  prompt: string;
  repetitions: number;
  running: Running | null;
  off: Column;
  on: Column;
  result: Comparison | null;
  error: AppError | null;
  /** Newest first; null until it was read. */
  history: Measurement[] | null;
}

export type CompareStateEvent =
  | { type: "opened"; messageId: number | null; prompt: string }
  | { type: "written"; prompt: string }
  | { type: "repetitions"; n: number }
  | { type: "asked"; turn: number }
  | { type: "streamed"; turn: number; event: CompareEvent }
  | { type: "stopping"; on: boolean }
  | { type: "lost"; turn: number; error: AppError }
  | { type: "listed"; history: Measurement[] }
  | { type: "shown"; result: Comparison };

const EMPTY: Column = { text: "", tokens: 0, rate: 0, prefill: null };

export const initial: CompareState = {
  messageId: null,
  prompt: "",
  repetitions: 5,
  running: null,
  off: EMPTY,
  on: EMPTY,
  result: null,
  error: null,
  history: null,
};

export function apply(state: CompareState, event: CompareStateEvent): CompareState {
  switch (event.type) {
    case "opened":
      // What runs is shown first; it cannot be another's.
      if (state.running) return state;
      return { ...state, messageId: event.messageId, prompt: event.prompt, off: EMPTY, on: EMPTY, result: null, error: null };
    case "written":
      return { ...state, messageId: null, prompt: event.prompt };
    case "repetitions":
      return { ...state, repetitions: event.n };
    case "asked":
      return {
        ...state,
        running: { turn: event.turn, runs: 0, begun: 0, side: null, repetition: 0, stopping: false },
        off: EMPTY,
        on: EMPTY,
        result: null,
        error: null,
      };
    case "streamed":
      return state.running?.turn === event.turn ? streamed(state, state.running, event.event) : state;
    case "stopping":
      return state.running ? { ...state, running: { ...state.running, stopping: event.on } } : state;
    case "lost":
      return state.running?.turn === event.turn ? { ...state, running: null, error: event.error } : state;
    case "listed":
      return { ...state, history: event.history };
    case "shown":
      return state.running ? state : { ...state, ...shown(event.result), error: null };
  }
}

function streamed(state: CompareState, running: Running, event: CompareEvent): CompareState {
  switch (event.type) {
    case "started":
      return { ...state, prompt: event.prompt, running: { ...running, runs: event.runs } };
    case "run":
      return {
        ...state,
        [event.side]: EMPTY,
        running: { ...running, side: event.side, repetition: event.repetition, begun: running.begun + 1 },
      };
    case "prefill":
      return { ...state, [event.side]: { ...state[event.side], prefill: { done: event.done, total: event.total } } };
    case "delta": {
      const { text } = state[event.side];
      return { ...state, [event.side]: { text: text + event.text, tokens: event.tokens, rate: event.tokensPerSecond, prefill: null } };
    }
    case "measured":
      return { ...state, [event.side]: { ...state[event.side], tokens: event.run.tokens, rate: event.run.tokensPerSecond } };
    case "done":
      return { ...state, ...shown(event.comparison), running: null };
    case "failed":
      return { ...state, running: null, error: event.error };
  }
}

/** A result and its texts, in place of what was streamed. */
function shown(result: Comparison): Pick<CompareState, "messageId" | "prompt" | "off" | "on" | "result"> {
  const column = (side: Side): Column => ({
    text: side === "off" ? result.offText : result.onText,
    tokens: result.runs.findLast((run) => (run.speculation.mode === "off") === (side === "off"))?.tokens ?? 0,
    rate: result[side].tokensPerSecond?.median ?? 0,
    prefill: null,
  });
  return { messageId: result.messageId, prompt: result.prompt, off: column("off"), on: column("on"), result };
}

/** The share of the runs that is over, as far as is known. */
export const progress = (running: Running): number => (running.runs === 0 ? 0 : Math.max(0, running.begun - 1) / running.runs);
