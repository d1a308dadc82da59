import type { Download, Wanted } from "../bindings";
import * as commands from "../lib/commands";
import { toAppError } from "../lib/errors";
import { strings } from "../lib/strings";
import { apply, initial, isPlanning, newlySaid } from "./downloads";
import { listModels } from "./model.svelte";
import { Store } from "./store.svelte";
import { announce, report } from "./view.svelte";

export const downloads = new Store(apply, initial);

/** Follows all downloads from now on. */
export async function followDownloads(): Promise<void> {
  await commands.watchDownloads(take);
}

function take(list: Download[]): void {
  const said = newlySaid(downloads.current.list, list);
  downloads.dispatch({ type: "changed", list });
  for (const download of said) announce(strings.downloads.say(download.name, download.state.phase));
  if (!said.some((d) => d.state.phase === "done")) return;
  void listModels();
}

/** Asks what a download would fetch, and shows it. */
export async function planDownload(wanted: Wanted): Promise<void> {
  downloads.dispatch({ type: "planning", wanted });
  try {
    downloads.dispatch({ type: "planned", wanted, plan: await commands.planDownload(wanted) });
  } catch (error) {
    downloads.dispatch({ type: "planFailed", wanted, error: toAppError(error) });
  }
}

export async function startDownload(wanted: Wanted, planId: string | null, thenChat: boolean): Promise<void> {
  await attempt(async () => {
    await commands.startDownload(wanted, planId, thenChat);
    downloads.dispatch({ type: "draftClosed" });
  });
}

export const pauseDownload = (id: string): Promise<void> => attempt(() => commands.pauseDownload(id));
export const resumeDownload = (id: string): Promise<void> => attempt(() => commands.resumeDownload(id));

/** Stops it and takes it off the list, or takes off one that is over. */
export async function cancelDownload(download: Download): Promise<void> {
  await attempt(async () => {
    const { kept } = await commands.cancelDownload(download.id);
    if (kept > 0) downloads.dispatch({ type: "cancelled", name: download.name, bytes: kept });
    void listModels();
  });
}

/** Searches a moment after the last keystroke. */
const DEBOUNCE_MS = 350;
let timer: ReturnType<typeof setTimeout> | undefined;

export function search(query: string): void {
  clearTimeout(timer);
  if (query.trim().length < 2) downloads.dispatch({ type: "searchClosed" });
  else timer = setTimeout(() => void ask(query.trim()), DEBOUNCE_MS);
}

async function ask(query: string): Promise<void> {
  downloads.dispatch({ type: "searching", query });
  try {
    downloads.dispatch({ type: "found", query, found: await commands.searchHub(query) });
  } catch (error) {
    downloads.dispatch({ type: "searchFailed", query, error: toAppError(error) });
  }
}

/** Nobody waits for a plan that is not looked at any more. */
export function closeDraft(): void {
  if (isPlanning(downloads.current)) commands.cancelPlan().catch(report);
  downloads.dispatch({ type: "draftClosed" });
}

export const dismissNote = (): void => downloads.dispatch({ type: "noted" });
export const openPage = (url: string): void => void commands.openLink(url).catch(report);

async function attempt(act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    downloads.dispatch({ type: "refused", error: toAppError(error) });
  }
}
