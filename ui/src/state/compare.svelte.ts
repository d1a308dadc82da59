import * as commands from "../lib/commands";
import { verdict } from "../lib/compare";
import { chats } from "./chats.svelte";
import { apply, initial } from "./compare";
import { optionsFor } from "./configs.svelte";
import { measurer } from "./measuring.svelte";
import { Store } from "./store.svelte";
import { lastReply } from "./turn";
import { turn } from "./turn.svelte";
import { closeSheet, openSheet, report } from "./view.svelte";

export const compare = new Store(apply, initial);

const measuring = measurer(compare, (all) => all.comparisons, (done) => verdict(done.comparison).line);

/** Opens the comparison for a message, the last reply of the open chat, or a new prompt; `now` runs it at once. */
export function openCompare(messageId: number | null = null, now = false): void {
  const chatId = chats.current.openId;
  const messages = chatId === null ? undefined : turn.current.conversations[chatId];
  const reply = messageId === null ? lastReply(messages) : messages?.find((m) => m.id === messageId);
  const place = reply ? (messages?.indexOf(reply) ?? 0) : 0;
  const question = reply?.role === "user" ? reply : messages?.slice(0, place).findLast((m) => m.role === "user");
  const isWhole = reply !== undefined && reply.status !== "streaming";
  compare.dispatch({ type: "opened", messageId: isWhole ? reply.id : null, prompt: isWhole ? (question?.content ?? "") : "" });
  openSheet("compare");
  void measuring.list();
  if (now && isWhole) void startCompare();
}

export const stopCompare = measuring.stop;
export const removeComparison = measuring.remove;

export function startCompare(): Promise<void> {
  const { messageId, prompt, repetitions } = compare.current;
  const options = optionsFor(messageId === null ? null : chats.current.openId);
  return measuring.start((on) => commands.compare({ messageId, prompt: messageId === null ? prompt : null, options, repetitions }, on));
}

/** Nobody watches a comparison that is closed: it ends, and the next message need not wait for it. */
export function closeCompare(): void {
  void stopCompare();
  closeSheet();
}

export async function showComparison(id: number): Promise<void> {
  try {
    compare.dispatch({ type: "shown", result: await commands.openComparison(id) });
  } catch (error) {
    report(error);
  }
}
