import * as commands from "../lib/commands";
import { strings } from "../lib/strings";
import { apply, find, initial, parseTags } from "./chats";
import { Store } from "./store.svelte";
import { report, toast } from "./view.svelte";

export const chats = new Store(apply, initial);

/** Long enough to gather the keystrokes of one word. */
const SEARCH_MS = 150;
let timer: ReturnType<typeof setTimeout> | undefined;

export async function listChats(): Promise<void> {
  chats.dispatch({ type: "listed", chats: await commands.listChats() });
}

/** Titles are looked through at once, messages a moment later. */
export function filter(query: string): void {
  chats.dispatch({ type: "filtered", query });
  clearTimeout(timer);
  if (query.trim()) timer = setTimeout(() => void search(query), SEARCH_MS);
}

async function search(query: string): Promise<void> {
  try {
    chats.dispatch({ type: "found", query, hits: await commands.searchChats(query) });
  } catch (error) {
    report(error);
  }
}

export const startRename = (chatId: number): void => chats.dispatch({ type: "renaming", chatId });
export const cancelRename = (): void => chats.dispatch({ type: "renaming", chatId: null });
export const startTagging = (chatId: number): void => chats.dispatch({ type: "tagging", chatId });
export const cancelTagging = (): void => chats.dispatch({ type: "tagging", chatId: null });

/** An empty or unchanged title leaves the chat as it was. */
export async function rename(chatId: number, text: string): Promise<void> {
  cancelRename();
  const title = text.trim();
  if (title === "" || title === find(chats.current, chatId)?.title) return;
  await change(commands.renameChat(chatId, title));
}

export async function tag(chatId: number, text: string): Promise<void> {
  cancelTagging();
  await change(commands.tagChat(chatId, parseTags(text)));
}

export const pin = (chatId: number, pinned: boolean): Promise<void> => change(commands.pinChat(chatId, pinned));

export async function restoreChat(chatId: number): Promise<void> {
  await change(commands.restoreChat(chatId));
  if (chats.current.query) await search(chats.current.query);
}

export async function exportChats(chatId: number | null, format: "markdown" | "json" | "html"): Promise<void> {
  const name = find(chats.current, chatId)?.title ?? strings.library.allName;
  try {
    const path = await commands.exportChats(chatId, format, name);
    if (path !== null) toast(strings.library.exported(path));
  } catch (error) {
    report(error);
  }
}

/** Whether chats are being imported: a large file takes its time. */
export const importing = $state({ now: false });

export async function importChats(): Promise<void> {
  if (importing.now) return;
  importing.now = true;
  try {
    const imported = await commands.importChats();
    if (!imported) return;
    await listChats();
    toast(strings.library.imported(imported.chats.length, imported.already, imported.leftOut));
  } catch (error) {
    report(error);
  } finally {
    importing.now = false;
  }
}

async function change(changed: ReturnType<typeof commands.renameChat>): Promise<void> {
  try {
    chats.dispatch({ type: "changed", chat: await changed });
  } catch (error) {
    report(error);
  }
}
