//! What the person chose, and whether it is saved.

import type { Settings, TurnOptions } from "../bindings";

export interface SettingsState {
  settings: Settings;
  /** Counts changes: an answer to an older one must not undo a newer. */
  revision: number;
  save: "saved" | "waiting" | "failed";
  /** What was set before a reset, until something else is. */
  before: Settings | null;
  /** Whether the app has told them yet. */
  known: boolean;
}

export type SettingsEvent =
  | { type: "loaded"; settings: Settings }
  | { type: "changed"; patch: Partial<Settings> }
  | { type: "reset" }
  | { type: "undone" }
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
  thinkingBudget: null,
};

/** As the app's own defaults, for the moment before it answers. */
export const initial: SettingsState = {
  settings: {
    options,
    theme: "system",
    welcomed: false,
    sidebar: true,
    model: "builtin",
    drafter: null,
    presets: [],
    language: "system",
    kv: "plain",
    memoryLimitGb: null,
    enterSends: true,
  },
  revision: 0,
  save: "saved",
  before: null,
  known: false,
};

export function apply(state: SettingsState, event: SettingsEvent): SettingsState {
  switch (event.type) {
    case "loaded":
      return { settings: event.settings, revision: state.revision, save: "saved", before: null, known: true };
    case "changed":
      return { ...set(state, event.patch), before: null };
    case "reset": {
      // What the person made, was told or loaded is no setting to be set back.
      const { model: _, drafter: __, presets: ___, welcomed: ____, ...defaults } = initial.settings;
      return { ...set(state, defaults), before: state.settings };
    }
    case "undone": {
      if (!state.before) return state;
      // A model that was loaded since stays the one that is loaded.
      const { model, drafter } = state.settings;
      return { ...set(state, { ...state.before, model, drafter }), before: null };
    }
    case "saved":
      return event.revision === state.revision ? { ...state, settings: event.settings, save: "saved" } : state;
    case "failed":
      return event.revision === state.revision ? { ...state, save: "failed" } : state;
  }
}

const set = (state: SettingsState, patch: Partial<Settings>): SettingsState => ({
  ...state,
  settings: { ...state.settings, ...patch },
  revision: state.revision + 1,
  save: "waiting",
});
