//! What is shown around the conversation. None of it outlives the window.

import type { AppError } from "../bindings";

export type Sheet = "models" | "settings" | "shortcuts" | "chat" | "switcher" | "compare" | "bench" | "intro" | "again" | "deleted";

export type ModelTab = "here" | "get";

/** A deleted chat that can be taken back, and whether it was the open one. */
export interface Undo {
  chatId: number;
  wasOpen: boolean;
}

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
  /** The message of the person that is being edited. */
  editing: number | null;
  /** The message whose deletion waits to be confirmed. */
  confirming: number | null;
  /** The message that is to be brought into sight; counts up so that one can be sought twice. */
  target: { messageId: number; query: string; n: number } | null;
  /** The reply of which another version with other settings is to be written; null is the last one. */
  again: number | null;
  /** Whether the chat is being searched. */
  finding: boolean;
  /** What was done a moment ago, and the deleted chat if it can be taken back. */
  toast: { text: string; undo: Undo | null } | null;
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
  | { type: "editing"; messageId: number | null }
  | { type: "confirming"; messageId: number | null }
  | { type: "sought"; messageId: number; query: string }
  | { type: "again"; messageId: number | null }
  | { type: "finding"; on: boolean }
  | { type: "toast"; text: string; undo: Undo | null }
  | { type: "toastOver" }
  | { type: "announced"; text: string };

export const initial: ViewState = {
  sheet: null,
  models: "here",
  overlay: false,
  inspector: false,
  inspected: null,
  notice: null,
  editing: null,
  confirming: null,
  target: null,
  again: null,
  finding: false,
  toast: null,
  announcement: "",
};

export function apply(state: ViewState, event: ViewEvent): ViewState {
  switch (event.type) {
    case "sheet":
      // A sheet reads out what comes while it is open: what was read out already is not said again at its end.
      return { ...state, sheet: event.sheet, announcement: "" };
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
      return { ...state, overlay: false, inspected: null, notice: null, editing: null, confirming: null, finding: false };
    case "notice":
      return { ...state, notice: event.error };
    case "editing":
      return { ...state, editing: event.messageId, confirming: null };
    case "confirming":
      return { ...state, confirming: event.messageId, editing: null };
    case "sought":
      return { ...state, target: { messageId: event.messageId, query: event.query, n: (state.target?.n ?? 0) + 1 } };
    case "again":
      return { ...state, sheet: "again", again: event.messageId, announcement: "" };
    case "finding":
      return { ...state, finding: event.on };
    case "toast":
      return { ...state, toast: { text: event.text, undo: event.undo }, announcement: event.text };
    case "toastOver":
      return { ...state, toast: null };
    case "announced":
      return { ...state, announcement: event.text };
  }
}
