//! Named configurations for chats.

import type { ChatConfig, Preset } from "../bindings";

/** Keeps a configuration under a name, in place of one that had it, in the order of the alphabet. */
export function savePreset(presets: readonly Preset[], name: string, config: ChatConfig): Preset[] {
  const same = (other: Preset): boolean => other.name.toLowerCase() === name.toLowerCase();
  return [...presets.filter((other) => !same(other)), { name, config }].sort((a, b) => a.name.localeCompare(b.name));
}

export const removePreset = (presets: readonly Preset[], name: string): Preset[] => presets.filter((other) => other.name !== name);
