import type { Settings, TurnOptions } from "../bindings";
import * as commands from "../lib/commands";
import { apply, initial, type SettingsEvent } from "./settings";
import { Store } from "./store.svelte";
import { report } from "./view.svelte";

export const settings = new Store(apply, initial);

/** Long enough to gather the keystrokes of one field. */
const DEBOUNCE_MS = 400;
let timer: ReturnType<typeof setTimeout> | undefined;

export async function loadSettings(): Promise<void> {
  settings.dispatch({ type: "loaded", settings: await commands.getSettings() });
}

/** Takes effect at once; saved a moment later. */
export const change = (patch: Partial<Settings>): void => take({ type: "changed", patch });

/** Back to what they were at first; no chat, preset or model is touched. */
export const resetSettings = (): void => take({ type: "reset" });
export const undoReset = (): void => take({ type: "undone" });

function take(event: SettingsEvent): void {
  settings.dispatch(event);
  clearTimeout(timer);
  timer = setTimeout(save, DEBOUNCE_MS);
}

export const changeOptions = (patch: Partial<TurnOptions>): void =>
  change({ options: { ...settings.current.settings.options, ...patch } });

/** Saves now what waits to be saved. */
export function flushSettings(): void {
  if (settings.current.save !== "waiting") return;
  clearTimeout(timer);
  void save();
}

async function save(): Promise<void> {
  const { revision, settings: chosen } = settings.current;
  try {
    settings.dispatch({ type: "saved", settings: await commands.updateSettings(chosen), revision });
  } catch (error) {
    settings.dispatch({ type: "failed", revision });
    report(error);
  }
}
