import type { AppError, Message, TurnEvent } from "../bindings";
import * as commands from "../lib/commands";
import { toAppError } from "../lib/errors";
import { plural } from "../lib/format";
import { strings } from "../lib/strings";
import { find } from "./chats";
import { chats } from "./chats.svelte";
import { draftOf, giveBack, setDraft } from "./drafts.svelte";
import { settings } from "./settings.svelte";
import { Store } from "./store.svelte";
import { apply, initial, lastReply } from "./turn";
import { announce, dismiss, report } from "./view.svelte";

export const turn = new Store(apply, initial);

/** A promise can reject a moment before its stream's last events arrive; those know more. */
const GRACE_MS = 2000;
let turns = 0;

/** Sends the draft of the open chat. */
export function send(): void {
  const chatId = chats.current.openId;
  const text = draftOf(chatId).trim();
  if (text === "" || turn.current.live) return;
  setDraft(chatId, "");
  const { options } = settings.current.settings;
  void begin(chatId, text, (onEvent) => commands.sendMessage(chatId, text, options, onEvent));
}

/** Writes the last reply of the open chat again. */
export function regenerate(): void {
  const chatId = chats.current.openId;
  const reply = chatId === null ? undefined : lastReply(turn.current.conversations[chatId]);
  if (!reply || turn.current.live) return;
  const { options } = settings.current.settings;
  void begin(chatId, null, (onEvent) => commands.regenerate(reply.id, options, onEvent));
}

export async function stop(): Promise<void> {
  if (!turn.current.live || turn.current.live.stopping) return;
  turn.dispatch({ type: "stopping", on: true });
  try {
    await commands.stopTurn();
  } catch (error) {
    turn.dispatch({ type: "stopping", on: false });
    report(error);
  }
}

async function begin(
  chatId: number | null,
  text: string | null,
  call: (onEvent: (event: TurnEvent) => void) => Promise<unknown>,
): Promise<void> {
  turns += 1;
  const mine = turns;
  const isLive = (): boolean => turn.current.live?.turn === mine;
  const hasBegun = (): boolean => turn.current.live?.assistantId != null;
  const refuse = (error: AppError): void => {
    turn.dispatch({ type: "lost", turn: mine, error });
    if (text !== null) giveBack(chatId, text);
    report(error);
  };

  dismiss();
  turn.dispatch({ type: "asked", turn: mine, chatId, text });
  try {
    await call((event) => {
      if (!isLive()) return;
      if (event.type === "failed" && !event.message && !hasBegun()) return refuse(event.error);
      turn.dispatch({ type: "streamed", turn: mine, event });
      follow(chatId, event);
    });
  } catch (thrown) {
    const error = toAppError(thrown);
    if (isLive() && !hasBegun()) return refuse(error);
    setTimeout(() => turn.dispatch({ type: "lost", turn: mine, error }), GRACE_MS);
  }
}

/** What a turn's event means outside its conversation. A chat deleted meanwhile must not come back to the list. */
function follow(asked: number | null, event: TurnEvent): void {
  if (event.type === "started") {
    if (asked === null || find(chats.current, event.chat.id)) chats.dispatch({ type: "changed", chat: event.chat });
    // Only if the person still waits on the new chat's page.
    if (asked === null && chats.current.openId === null) chats.dispatch({ type: "opened", chatId: event.chat.id });
    announce(strings.announce.started);
  } else if (event.type === "done") {
    if (find(chats.current, event.chat.id)) chats.dispatch({ type: "changed", chat: event.chat });
    announce(ending(event.message));
  } else if (event.type === "failed") {
    announce(strings.announce.failed(event.error.message));
  }
}

const ending = (reply: Message): string =>
  reply.status === "stopped"
    ? strings.announce.stopped
    : strings.announce.complete(plural(reply.run?.tokens ?? 0, "token"));
