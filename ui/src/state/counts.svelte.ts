//! What a conversation comes to that no model has read here: an import, or one whose replies were all deleted.

import type { Message } from "../bindings";
import { estimate } from "../lib/attachments";
import * as commands from "../lib/commands";

/** Counting more than this would take the model longer than a moment. */
export const MOST_COUNTED = 400_000;

/** By the messages as they are: others, and others after a change, are counted anew. */
const counts = new WeakMap<readonly Message[], { modelId: string; tokens: number }>();
let changes = $state(0);

const textOf = (messages: readonly Message[]): string => messages.map((message) => message.content).join("\n\n");

/** As the model counted it, or about. */
export function tokensOfBranch(messages: readonly Message[], modelId: string): number {
  void changes;
  const counted = counts.get(messages);
  return counted?.modelId === modelId ? counted.tokens : estimate(textOf(messages));
}

/** Has the model count, unless it has done so. Without an answer the estimate stays. */
export async function countBranch(messages: readonly Message[], modelId: string): Promise<void> {
  const text = textOf(messages);
  if (counts.get(messages)?.modelId === modelId || text.length === 0 || text.length > MOST_COUNTED) return;
  const tokens = await commands.countTokens(text).catch(() => null);
  if (tokens === null) return;
  counts.set(messages, { modelId, tokens });
  changes += 1;
}
