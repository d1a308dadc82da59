//! The option fields: their ranges, and reading them from text.

import type { ChatConfig, SamplingDefaults, TurnOptions } from "../bindings";

export type NumberKey = "temperature" | "topP" | "topK" | "minP" | "maxTokens" | "seed" | "thinkingBudget";

export interface Range {
  min: number;
  max: number;
  step: number;
  integer: boolean;
}

export const RANGES: Record<NumberKey, Range> = {
  temperature: { min: 0, max: 5, step: 0.1, integer: false },
  topP: { min: 0, max: 1, step: 0.05, integer: false },
  topK: { min: 0, max: 100_000, step: 1, integer: true },
  minP: { min: 0, max: 1, step: 0.01, integer: false },
  maxTokens: { min: 1, max: 10_000_000, step: 1, integer: true },
  thinkingBudget: { min: 0, max: 10_000_000, step: 1, integer: true },
  // Seeds cross to Rust as a double: whole numbers end at 2^53.
  seed: { min: 0, max: Number.MAX_SAFE_INTEGER, step: 1, integer: true },
};

/** The field's number, null when it is empty (the model's default), undefined when it is neither. */
export function parseOption(key: NumberKey, text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const value = Number(text.trim().replace(",", "."));
  const { min, max, integer } = RANGES[key];
  if (!Number.isFinite(value) || value < min || value > max) return undefined;
  return integer && !Number.isInteger(value) ? undefined : value;
}

/** The model's own value for a field, where it has one. */
export function defaultOf(key: NumberKey, defaults: SamplingDefaults | null): number | null {
  return key === "maxTokens" || key === "seed" || key === "thinkingBudget" ? null : (defaults?.[key] ?? null);
}

/** How many of the sampling options were set by hand; speculation has a control of its own. */
export function changed(options: TurnOptions): number {
  const { speculation: _, exactness, ...sampling } = options;
  return Object.values(sampling).filter((value) => value !== null).length + Number(exactness !== "exact");
}

/** What a message in a chat is sent with: the chat's own sampling if it has one, the composer's speculation always. */
export const effective = (config: ChatConfig, options: TurnOptions): TurnOptions =>
  config.options ? { ...config.options, speculation: options.speculation } : options;
