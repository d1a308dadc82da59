//! Where chats and settings are kept, and what of them waits to be removed.

import type { DataFolder } from "../bindings";
import * as commands from "../lib/commands";
import { endToast, report } from "./view.svelte";

export const data = $state<{ folder: DataFolder | null }>({ folder: null });

export async function readDataFolder(): Promise<void> {
  await take(commands.dataFolder());
}

/** Removes deleted chats for good: no toast offers to take one back then. */
export async function purgeChats(): Promise<void> {
  endToast();
  await take(commands.purgeChats(null).then(commands.dataFolder));
}

export const openDataFolder = (): void => void commands.openDataFolder().catch(report);

async function take(folder: Promise<DataFolder>): Promise<void> {
  try {
    data.folder = await folder;
  } catch (error) {
    report(error);
  }
}
