//! What holds for one chat alone, by chat; "new" is the chat not begun yet.

import type { ChatConfig, TurnOptions } from "../bindings";
import * as commands from "../lib/commands";
import { effective } from "../lib/options";
import { changeOptions, settings } from "./settings.svelte";
import { report } from "./view.svelte";

let configs = $state.raw<Record<string, ChatConfig>>({});

const none: ChatConfig = { systemPrompt: "", options: null };
const key = (chatId: number | null): string => (chatId === null ? "new" : String(chatId));

/** Long enough to gather the keystrokes of one field. */
const DEBOUNCE_MS = 400;
const waiting = new Map<number, ReturnType<typeof setTimeout>>();

export const configOf = (chatId: number | null): ChatConfig => configs[key(chatId)] ?? none;

/** As read from disk; what is waiting to be saved is newer. */
export function loadConfig(chatId: number, config: ChatConfig): void {
  if (!waiting.has(chatId)) configs = { ...configs, [key(chatId)]: config };
}

/** What was set on the new chat's page belongs to the chat that came of it. */
export function adoptConfig(chatId: number): void {
  const { new: config = none, ...others } = configs;
  configs = { ...others, [key(chatId)]: config };
}

/** Takes effect with the next message; saved a moment later. */
export function changeConfig(chatId: number | null, patch: Partial<ChatConfig>): void {
  configs = { ...configs, [key(chatId)]: { ...configOf(chatId), ...patch } };
  if (chatId === null) return;
  clearTimeout(waiting.get(chatId));
  waiting.set(chatId, setTimeout(() => void save(chatId), DEBOUNCE_MS));
}

/** Changes what the chat's messages are sent with: its own sampling if it has one, else that of all chats. */
export function changeSampling(chatId: number | null, patch: Partial<TurnOptions>): void {
  const { options } = configOf(chatId);
  if (options) changeConfig(chatId, { options: { ...options, ...patch } });
  else changeOptions(patch);
}

export function flushConfigs(): void {
  for (const [chatId, timer] of waiting) {
    clearTimeout(timer);
    void save(chatId);
  }
}

async function save(chatId: number): Promise<void> {
  waiting.delete(chatId);
  try {
    await commands.configureChat(chatId, configOf(chatId));
  } catch (error) {
    report(error);
  }
}

/** What the next message of a chat is sent with. */
export const optionsFor = (chatId: number | null): TurnOptions => effective(configOf(chatId), settings.current.settings.options);
