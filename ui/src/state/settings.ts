//! What the person chose, and whether it is saved.

import type { Settings, TurnOptions } from "../bindings";

export interface SettingsState {
  settings: Settings;
  /** Counts changes: an answer to an older one must not undo a newer. */
  revision: number;
  save: "saved" | "waiting" | "failed";
}

export type SettingsEvent =
  | { type: "loaded"; settings: Settings }
  | { type: "changed"; patch: Partial<Settings> }
  | { type: "saved"; settings: Settings; revision: number }
  | { type: "failed"; revision: number };

const options: TurnOptions = {
  speculation: { mode: "auto" },
  exactness: "exact",
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  seed: null,
  maxTokens: null,
  thinking: null,
};

/** As the app's own defaults, for the moment before it answers. */
export const initial: SettingsState = {
  settings: { options, theme: "system", welcomed: false, sidebar: true, model: "builtin", drafter: null, presets: [], enterSends: true },
  revision: 0,
  save: "saved",
};

export function apply(state: SettingsState, event: SettingsEvent): SettingsState {
  switch (event.type) {
    case "loaded":
      return { settings: event.settings, revision: state.revision, save: "saved" };
    case "changed":
      return { settings: { ...state.settings, ...event.patch }, revision: state.revision + 1, save: "waiting" };
    case "saved":
      return event.revision === state.revision ? { ...state, settings: event.settings, save: "saved" } : state;
    case "failed":
      return event.revision === state.revision ? { ...state, save: "failed" } : state;
  }
}
