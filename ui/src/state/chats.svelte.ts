import * as commands from "../lib/commands";
import { apply, find, initial } from "./chats";
import { Store } from "./store.svelte";
import { report } from "./view.svelte";

export const chats = new Store(apply, initial);

export async function listChats(): Promise<void> {
  chats.dispatch({ type: "listed", chats: await commands.listChats() });
}

export const filter = (query: string): void => chats.dispatch({ type: "filtered", query });
export const startRename = (chatId: number): void => chats.dispatch({ type: "renaming", chatId });
export const cancelRename = (): void => chats.dispatch({ type: "renaming", chatId: null });
export const askRemove = (chatId: number): void => chats.dispatch({ type: "confirming", chatId });
export const cancelRemove = (): void => chats.dispatch({ type: "confirming", chatId: null });

/** An empty or unchanged title leaves the chat as it was. */
export async function rename(chatId: number, text: string): Promise<void> {
  cancelRename();
  const title = text.trim();
  if (title === "" || title === find(chats.current, chatId)?.title) return;
  try {
    chats.dispatch({ type: "changed", chat: await commands.renameChat(chatId, title) });
  } catch (error) {
    report(error);
  }
}
