//! What speculation will do with the next reply: told by the composer and by the model's line, in the same words.

import type { Run, SpeculationChoice } from "../bindings";
import { plan, type Plan } from "../lib/speculation";
import { chats } from "./chats.svelte";
import { model } from "./model.svelte";
import { settings } from "./settings.svelte";
import { lastReply } from "./turn";
import { turn } from "./turn.svelte";

/** The figures of the open chat's last reply. */
export function lastRun(): Run | null {
  const { openId } = chats.current;
  return openId === null ? null : (lastReply(turn.current.conversations[openId])?.run ?? null);
}

/** By the choice that was made, or by another. */
export const nextPlan = (choice: SpeculationChoice = settings.current.settings.options.speculation): Plan =>
  plan(choice, model.current.status, lastRun());
