//! What each command of the window does, by whatever way it was asked for.

import { controlOf, focusOn } from "../lib/focus";
import type { Action } from "../lib/keys";
import type { Command } from "../lib/menus";
import { openBench } from "./bench.svelte";
import { find } from "./chats";
import { chats, exportChats, importChats, importing, pin, startRename, startTagging } from "./chats.svelte";
import { openCompare } from "./compare.svelte";
import { loadModel, model, unloadModel } from "./model.svelte";
import { duplicateChat, newChat, removeChat } from "./navigation.svelte";
import { change, settings } from "./settings.svelte";
import { lastAsked } from "./turn";
import { answer, lastOpen, stop, turn, unanswered, writeLast } from "./turn.svelte";
import { askAgain, askDelete, closeSheet, edit, openSheet, report, showFind, toggleInspector, view } from "./view.svelte";

/** Narrower windows show the side bar over the conversation. */
export const SIDEBAR_PX = 720;

const isNarrow = (): boolean => innerWidth < SIDEBAR_PX;

export function toggleSidebar(): void {
  if (isNarrow()) view.dispatch({ type: "overlay", open: !view.current.overlay });
  else change({ sidebar: !settings.current.settings.sidebar });
}

function showSidebar(): void {
  if (isNarrow() ? !view.current.overlay : !settings.current.settings.sidebar) toggleSidebar();
}

/** Ready to search all chats. */
export function showFilter(): void {
  showSidebar();
  requestAnimationFrame(() => document.querySelector<HTMLElement>("[data-filter]")?.focus());
}

/** Loads another model; what stands in the way is told, and the chat stays as it is. */
export async function switchModel(path: string, drafter: string | null): Promise<void> {
  await loadModel(path, drafter);
  const { refusal } = model.current;
  if (refusal?.path === path) report(refusal.error);
}

function editLast(): void {
  const { openId } = chats.current;
  const last = openId === null ? undefined : lastAsked(turn.current.conversations[openId]);
  if (last && !turn.current.live) edit(last.id);
}

/** The message whose deletion was asked for stays. */
export function keepMessage(): void {
  const { confirming } = view.current;
  askDelete(null);
  if (confirming !== null) void focusOn(controlOf(confirming, "message-delete"), controlOf(confirming, "message-menu"));
}

/** Ready to search the open chat, also where the field is there and the focus is elsewhere. */
function findInChat(): void {
  showFind(true);
  const field = document.querySelector<HTMLInputElement>("[data-find]");
  field?.focus();
  field?.select();
}

/** Does something with the open chat, if one is open. */
const withOpen = (act: (chatId: number) => unknown) => (): void => {
  const { openId } = chats.current;
  if (openId !== null) act(openId);
};

const keyed: Record<Action, () => unknown> = {
  newChat,
  switcher: () => openSheet("switcher"),
  find: withOpen(findInChat),
  edit: editLast,
  chat: () => openSheet("chat"),
  filter: showFilter,
  sidebar: toggleSidebar,
  inspector: toggleInspector,
  settings: () => openSheet("settings"),
  shortcuts: () => openSheet("shortcuts"),
  models: () => openSheet("models"),
  regenerate: writeLast,
  compare: () => openCompare(),
};

const all: Record<Command, () => unknown> = {
  ...keyed,
  importChats,
  exportChat: withOpen((id) => exportChats(id, "markdown")),
  exportAll: () => exportChats(null, "json"),
  deleted: () => openSheet("deleted"),
  rename: withOpen((id) => {
    showSidebar();
    startRename(id);
  }),
  tags: withOpen((id) => {
    showSidebar();
    startTagging(id);
  }),
  pin: withOpen((id) => pin(id, !find(chats.current, id)?.pinned)),
  duplicate: withOpen(duplicateChat),
  remove: withOpen(removeChat),
  again: () => !turn.current.live && lastOpen() && askAgain(),
  answer: () => answer(),
  stop,
  bench: openBench,
  unload: unloadModel,
};

/** Whether a command would do anything now. */
export function canRun(command: Command): boolean {
  const { openId } = chats.current;
  const { live } = turn.current;
  switch (command) {
    case "find":
    case "exportChat":
    case "rename":
    case "tags":
    case "pin":
    case "duplicate":
    case "remove":
      return openId !== null;
    case "edit":
      return openId !== null && !live;
    case "regenerate":
    case "again":
    case "compare":
      return lastOpen() !== undefined && !live;
    case "answer":
      return unanswered() !== undefined && !live;
    case "stop":
      return live !== null;
    case "importChats":
      return !importing.now;
    case "unload":
      return model.current.status.state === "ready" && !live;
    default:
      return true;
  }
}

export const run = (command: Command): void => void all[command]();

/** A key may reach both the window and the menu bar: within this, what both ask for is asked for once. */
const TWICE_MS = 300;
let last = { command: "" as Command | "", by: "", at: 0 };

/** Does what a key or a menu asks for. A sheet has the window for itself; the switcher's own key closes it. */
export function ask(command: Command, by: "key" | "menu"): void {
  const at = performance.now();
  const isTwice = last.command === command && last.by !== by && at - last.at < TWICE_MS;
  last = { command, by, at };
  if (isTwice) return;
  if (!view.current.sheet) run(command);
  else if (view.current.sheet === "switcher" && command === "switcher") closeSheet();
}
