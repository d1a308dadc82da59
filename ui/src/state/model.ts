//! What is loaded, and what could be.

import type { AppError, LocalModel, ModelStatus } from "../bindings";

export interface ModelState {
  status: ModelStatus;
  /** Whether the app has told us its status yet. */
  known: boolean;
  /** Null until listed. */
  models: LocalModel[] | null;
  listError: AppError | null;
  /** The path whose loading was asked for and has not ended. */
  requested: string | null;
  /** Why the last request failed; the model before it may still be loaded. */
  refusal: { path: string; error: AppError } | null;
}

export type ModelEvent =
  | { type: "status"; status: ModelStatus }
  | { type: "listed"; models: LocalModel[] }
  | { type: "listFailed"; error: AppError }
  | { type: "requested"; path: string }
  | { type: "loaded"; status: ModelStatus }
  | { type: "refused"; path: string; error: AppError };

export const initial: ModelState = {
  status: { state: "none" },
  known: false,
  models: null,
  listError: null,
  requested: null,
  refusal: null,
};

export function apply(state: ModelState, event: ModelEvent): ModelState {
  switch (event.type) {
    case "status":
      return { ...state, status: event.status, known: true };
    case "listed":
      return { ...state, models: event.models, listError: null };
    case "listFailed":
      return { ...state, listError: event.error };
    case "requested":
      return { ...state, requested: event.path, refusal: null };
    case "loaded":
      return { ...state, status: event.status, known: true, requested: null };
    case "refused":
      return { ...state, requested: null, refusal: { path: event.path, error: event.error } };
  }
}

/** The failure to show, told once whether it came as a status or as a refusal. */
export function failure(state: ModelState): { name: string; error: AppError } | null {
  if (state.refusal) return { name: nameOf(state, state.refusal.path), error: state.refusal.error };
  return state.status.state === "failed" ? { name: state.status.model.name, error: state.status.error } : null;
}

/** The display name of a path, or its last folder. */
export function nameOf(state: ModelState, path: string): string {
  const known = state.models?.find((m) => m.id === path || m.path === path);
  return known?.name ?? path.split("/").filter(Boolean).at(-1) ?? path;
}

/** Whether the model is the one in memory. */
export const isLoaded = (state: ModelState, model: LocalModel): boolean =>
  state.status.state === "ready" && state.status.model.id === model.id;
