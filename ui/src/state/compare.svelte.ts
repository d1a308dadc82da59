import type { CompareEvent } from "../bindings";
import * as commands from "../lib/commands";
import { verdict } from "../lib/compare";
import { toAppError } from "../lib/errors";
import { chats } from "./chats.svelte";
import { apply, initial } from "./compare";
import { optionsFor } from "./configs.svelte";
import { Store } from "./store.svelte";
import { lastReply } from "./turn";
import { turn } from "./turn.svelte";
import { announce, closeSheet, openSheet, report } from "./view.svelte";

export const compare = new Store(apply, initial);

/** A promise can reject a moment before its stream's last events arrive; those know more. */
const GRACE_MS = 2000;
let turns = 0;

/** Opens the comparison for a reply, the last one of the open chat, or a new prompt. */
export function openCompare(messageId: number | null = null): void {
  const chatId = chats.current.openId;
  const messages = chatId === null ? undefined : turn.current.conversations[chatId];
  const reply = messageId === null ? lastReply(messages) : messages?.find((m) => m.id === messageId);
  const place = reply ? (messages?.indexOf(reply) ?? 0) : 0;
  const question = messages?.slice(0, place).findLast((m) => m.role === "user");
  const isWhole = reply !== undefined && reply.status !== "streaming";
  compare.dispatch({ type: "opened", messageId: isWhole ? reply.id : null, prompt: isWhole ? (question?.content ?? "") : "" });
  openSheet("compare");
  void listComparisons();
}

export async function startCompare(): Promise<void> {
  const { messageId, prompt, repetitions, running } = compare.current;
  if (running || turn.current.live) return;
  turns += 1;
  const mine = turns;
  compare.dispatch({ type: "asked", turn: mine });
  const options = optionsFor(messageId === null ? null : chats.current.openId);
  try {
    await commands.compare({ messageId, prompt: messageId === null ? prompt : null, options, repetitions }, (event) => {
      compare.dispatch({ type: "streamed", turn: mine, event });
      follow(event);
    });
  } catch (thrown) {
    const error = toAppError(thrown);
    setTimeout(() => compare.dispatch({ type: "lost", turn: mine, error }), GRACE_MS);
  }
}

function follow(event: CompareEvent): void {
  if (event.type === "done") {
    announce(verdict(event.comparison).line);
    void listComparisons();
  } else if (event.type === "failed") announce(event.error.message);
}

export async function stopCompare(): Promise<void> {
  if (!compare.current.running || compare.current.running.stopping) return;
  compare.dispatch({ type: "stopping", on: true });
  try {
    await commands.stopTurn();
  } catch (error) {
    compare.dispatch({ type: "stopping", on: false });
    report(error);
  }
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

async function listComparisons(): Promise<void> {
  try {
    compare.dispatch({ type: "listed", history: (await commands.listMeasurements()).comparisons });
  } catch (error) {
    report(error);
  }
}
