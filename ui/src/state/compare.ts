//! One request with speculation off and on: what is running, what it said, what came out, and what there was before.

import type { CompareEvent, Comparison, Side } from "../bindings";
import { sureRate } from "../lib/pace";
import { applyShared, begun, type Measuring, type MeasuringEvent, type Running } from "./measuring";

/** What one side is saying now. */
export interface Column {
  text: string;
  tokens: number;
  /** Tokens a second; not a number until there is a rate to speak of. */
  rate: number;
  prefill: { done: number; total: number } | null;
}

export interface CompareRunning extends Running {
  side: Side | null;
  /** From 1; 0 warms up. */
  repetition: number;
}

export interface CompareState extends Measuring<CompareRunning> {
  /** The message to run again; null for a new prompt. */
  messageId: number | null;
  prompt: string;
  repetitions: number;
  off: Column;
  on: Column;
  result: Comparison | null;
}

export type CompareStateEvent =
  | MeasuringEvent<CompareEvent>
  | { type: "opened"; messageId: number | null; prompt: string }
  | { type: "written"; prompt: string }
  | { type: "repetitions"; n: number }
  | { type: "shown"; result: Comparison };

const EMPTY: Column = { text: "", tokens: 0, rate: NaN, prefill: null };

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
        running: { ...begun(event.turn), side: null, repetition: 0 },
        off: EMPTY,
        on: EMPTY,
        result: null,
        error: null,
      };
    case "shown":
      return state.running ? state : { ...state, ...shown(event.result), error: null };
    default:
      return applyShared(state, event, streamed);
  }
}

function streamed(state: CompareState, running: CompareRunning, event: CompareEvent): CompareState {
  switch (event.type) {
    case "started":
      return { ...state, prompt: event.prompt, running: { ...running, runs: event.runs } };
    case "run":
      return {
        ...state,
        [event.side]: EMPTY,
        running: { ...running, side: event.side, repetition: event.repetition, done: running.side === null ? 0 : running.done + 1 },
      };
    case "prefill":
      return { ...state, [event.side]: { ...state[event.side], prefill: { done: event.done, total: event.total } } };
    case "delta": {
      const { text } = state[event.side];
      return { ...state, [event.side]: { text: text + event.text, tokens: event.tokens, rate: sureRate(event.tokens, event.tokensPerSecond), prefill: null } };
    }
    case "measured":
      return { ...state, [event.side]: { ...state[event.side], tokens: event.run.tokens, rate: event.run.tokensPerSecond ?? state[event.side].rate } };
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
    rate: result[side].tokensPerSecond?.median ?? NaN,
    prefill: null,
  });
  return { messageId: result.messageId, prompt: result.prompt, off: column("off"), on: column("on"), result };
}
