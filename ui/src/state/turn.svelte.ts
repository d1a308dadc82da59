import type { AppError, Message, TurnEvent, TurnOptions } from "../bindings";
import * as commands from "../lib/commands";
import { compose } from "../lib/attachments";
import { toAppError } from "../lib/errors";
import { focusOn } from "../lib/focus";
import { plural } from "../lib/format";
import { strings } from "../lib/strings";
import { attachedTo, detachAll, giveBackMessage } from "./attachments.svelte";
import { find } from "./chats";
import { chats } from "./chats.svelte";
import { adoptConfig, configOf, optionsFor } from "./configs.svelte";
import { draftOf, hold, release, setDraft } from "./drafts.svelte";
import { dropEdit } from "./edits.svelte";
import { whenSeen } from "./hidden";
import { origin } from "./origin.svelte";
import { afterTurn, apply as applyQueue, type Queued } from "./queue";
import { Store } from "./store.svelte";
import { apply, initial, isOrphan, type TurnState, type TurnStateEvent } from "./turn";
import { announce, dismiss, report } from "./view.svelte";

/** `turn.current` changes with each piece of text; a list of chats must not look at it as often. */
class TurnStore extends Store<TurnState, TurnStateEvent> {
  /** The chat in which a reply is being written. */
  liveChatId: number | null = $state(null);

  override dispatch(event: TurnStateEvent): void {
    super.dispatch(event);
    this.liveChatId = this.current.live?.chatId ?? null;
  }
}

export const turn = new TurnStore(apply, initial);
export const queue = new Store(applyQueue, null as Queued | null);

/** A promise can reject a moment before its stream's last events arrive; those know more. */
const GRACE_MS = 2000;
let turns = 0;

/** Sends the draft of the open chat. */
export function send(): void {
  const chatId = chats.current.openId;
  const text = compose(attachedTo(chatId), draftOf(chatId).trim());
  if (text === "" || isQueueFull()) return;
  setDraft(chatId, "");
  detachAll(chatId);
  post(chatId, text);
}

/** Sends a text in the open chat that nobody wrote into the composer: the draft and its files stay. */
export function sendAlone(text: string): void {
  if (!isQueueFull()) post(chats.current.openId, text);
}

const isQueueFull = (): boolean => turn.current.live !== null && queue.current !== null;

/** While a reply is being written, a message waits for its end. */
function post(chatId: number | null, text: string): void {
  if (turn.current.live) {
    queue.dispatch({ type: "queued", chatId, text });
    hold(chatId, text);
  } else sendText(chatId, text);
}

function sendText(chatId: number | null, text: string): void {
  const config = chatId === null ? configOf(null) : null;
  void begin(chatId, text, (onEvent) => commands.sendMessage(chatId, text, optionsFor(chatId), config, onEvent));
}

/** The queued message becomes a draft again. */
export function unqueue(): void {
  const waiting = queue.current;
  queue.dispatch({ type: "removed" });
  if (!waiting) return;
  release(waiting.chatId);
  giveBackMessage(waiting.chatId, waiting.text);
}

/** Sends another version of a message. Until it is stored, the edit is kept: it may be refused. */
export function sendEdited(message: Message, text: string): void {
  if (text.trim() === "" || turn.current.live) return;
  void begin(message.chatId, null, (onEvent) =>
    commands.editMessage(message.id, text.trim(), optionsFor(message.chatId), (event) => {
      if (event.type === "started") dropEdit(message.id);
      onEvent(event);
    }),
  );
}

/** Writes another version of a reply; without one, of the last reply of the open chat. */
export function regenerate(reply = lastOpen(), options?: TurnOptions): void {
  if (!reply || turn.current.live) return;
  const chosen = options ?? optionsFor(reply.chatId);
  void begin(reply.chatId, null, (onEvent) => commands.regenerate(reply.id, chosen, onEvent));
}

/** Answers a message that no reply follows; without one, the last message of the open chat. */
export function answer(message = unanswered()): void {
  if (!message || turn.current.live) return;
  void begin(message.chatId, null, (onEvent) => commands.answerMessage(message.id, optionsFor(message.chatId), onEvent));
}

/** Writes a reply to what the open chat ends with: another version, or the first one. */
export const writeLast = (): void => (unanswered() ? answer() : regenerate());

/** Goes on with a reply that broke off. */
export function goOn(reply: Message): void {
  if (turn.current.live) return;
  void begin(reply.chatId, null, (onEvent) => commands.continueReply(reply.id, optionsFor(reply.chatId), onEvent));
}

const endOfOpen = (role: Message["role"]): Message | undefined => {
  const chatId = chats.current.openId;
  const last = chatId === null ? undefined : turn.current.conversations[chatId]?.at(-1);
  return last?.role === role ? last : undefined;
};

/** The reply that the open chat ends with. */
export const lastOpen = (): Message | undefined => endOfOpen("assistant");

/** The message of the person that the open chat ends with: its reply was deleted, or it was imported without one. */
export const unanswered = (): Message | undefined => endOfOpen("user");

/** Whether there is a reply to stop: our own, or one in the open chat that was begun before the page was loaded anew. */
export function isWriting(): boolean {
  const { live, conversations } = turn.current;
  const { openId } = chats.current;
  return live !== null || (openId !== null && (conversations[openId]?.some((message) => isOrphan(message, live)) ?? false));
}

export async function stop(): Promise<void> {
  if (!isWriting() || turn.current.live?.stopping) return;
  turn.dispatch({ type: "stopping", on: true });
  try {
    await commands.stopTurn();
  } catch (error) {
    turn.dispatch({ type: "stopping", on: false });
    report(error);
  }
}

/** The model stops thinking and answers. */
export async function answerNow(): Promise<void> {
  if (!turn.current.live || turn.current.live.answering) return;
  turn.dispatch({ type: "answering", on: true });
  try {
    await commands.answerNow();
  } catch (error) {
    turn.dispatch({ type: "answering", on: false });
    report(error);
  }
}

/** Shows a chat. What was read of those not looked at for long is let go. */
export function enter(chatId: number): void {
  chats.dispatch({ type: "opened", chatId });
  turn.dispatch({ type: "opened", chatId, queued: queue.current?.chatId ?? null });
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
    if (text !== null) giveBackMessage(chatId, text);
    unqueue();
    report(error);
  };

  dismiss();
  turn.dispatch({ type: "asked", turn: mine, chatId, text });
  // What asked for another version goes away with the old one.
  if (text === null) void focusOn();
  try {
    await call(
      whenSeen((event) => {
        if (!isLive()) return;
        if (event.type === "failed" && !event.message && !hasBegun()) return refuse(event.error);
        turn.dispatch({ type: "streamed", turn: mine, event });
        follow(chatId, event);
      }),
    );
  } catch (thrown) {
    const error = toAppError(thrown);
    if (isLive() && !hasBegun()) return refuse(error);
    setTimeout(() => {
      if (isLive()) unqueue();
      turn.dispatch({ type: "lost", turn: mine, error });
    }, GRACE_MS);
  }
}

/** What a turn's event means outside its conversation. A chat deleted meanwhile must not come back to the list. */
function follow(asked: number | null, event: TurnEvent): void {
  if (event.type === "delta" && event.origin) {
    const messageId = turn.current.live?.assistantId;
    if (messageId != null) origin.dispatch({ type: "told", messageId, news: event.origin });
  } else if (event.type === "started") {
    origin.dispatch({ type: "began", messageId: event.assistant.id });
    if (asked === null || find(chats.current, event.chat.id)) chats.dispatch({ type: "changed", chat: event.chat });
    // Only if the person still waits on the new chat's page.
    if (asked === null && chats.current.openId === null) enter(event.chat.id);
    if (asked === null) {
      adoptConfig(event.chat.id);
      queue.dispatch({ type: "began", chatId: event.chat.id });
      if (queue.current?.chatId === event.chat.id) {
        release(null);
        hold(event.chat.id, queue.current.text);
      }
    }
    announce(strings.announce.started);
  } else if (event.type === "done") {
    if (find(chats.current, event.chat.id)) chats.dispatch({ type: "changed", chat: event.chat });
    announce(ending(event.message));
    sendQueued(event.message.status);
  } else if (event.type === "failed") {
    announce(strings.announce.failed(event.error.message));
    sendQueued("failed");
  }
}

function sendQueued(status: Message["status"]): void {
  const waiting = queue.current;
  if (!waiting) return;
  if (afterTurn(status) === "giveBack") return unqueue();
  queue.dispatch({ type: "removed" });
  release(waiting.chatId);
  sendText(waiting.chatId, waiting.text);
}

const ending = (reply: Message): string =>
  reply.status === "stopped"
    ? strings.announce.stopped
    : strings.announce.complete(plural(reply.run?.tokens ?? 0, strings.counted.tokens));
