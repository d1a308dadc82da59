//! What is shown around the conversation. None of it outlives the window.

import type { AppError } from "../bindings";

export type Sheet = "models" | "settings" | "shortcuts" | "compare" | "bench";

export type ModelTab = "here" | "get";

export interface ViewState {
  sheet: Sheet | null;
  /** Which half of the models is shown. */
  models: ModelTab;
  /** The side bar over a narrow window; the docked one is a setting. */
  overlay: boolean;
  inspector: boolean;
  /** The message the inspector was asked to show; null follows the last reply. */
  inspected: number | null;
  /** What went wrong outside any reply. */
  notice: AppError | null;
  /** For screen readers. */
  announcement: string;
}

export type ViewEvent =
  | { type: "sheet"; sheet: Sheet | null }
  | { type: "models"; tab: ModelTab }
  | { type: "overlay"; open: boolean }
  | { type: "inspector"; open: boolean }
  | { type: "inspected"; messageId: number }
  | { type: "moved" }
  | { type: "notice"; error: AppError | null }
  | { type: "announced"; text: string };

export const initial: ViewState = {
  sheet: null,
  models: "here",
  overlay: false,
  inspector: false,
  inspected: null,
  notice: null,
  announcement: "",
};

export function apply(state: ViewState, event: ViewEvent): ViewState {
  switch (event.type) {
    case "sheet":
      return { ...state, sheet: event.sheet };
    case "models":
      return { ...state, models: event.tab };
    case "overlay":
      return { ...state, overlay: event.open };
    case "inspector":
      return { ...state, inspector: event.open, inspected: null };
    case "inspected":
      // A second click on the same line closes what the first opened.
      return state.inspector && state.inspected === event.messageId
        ? { ...state, inspector: false, inspected: null }
        : { ...state, inspector: true, inspected: event.messageId };
    case "moved":
      return { ...state, overlay: false, inspected: null, notice: null };
    case "notice":
      return { ...state, notice: event.error };
    case "announced":
      return { ...state, announcement: event.text };
  }
}
