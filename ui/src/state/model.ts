//! What is loaded, and what could be.

import type { AppError, CatalogView, LocalModel, ModelStatus, ModelsView, ShelfView, Shelved } from "../bindings";

export type ListWish = "list" | "addFolder" | "removeFolder" | "delete";

export interface ModelState {
  status: ModelStatus;
  /** Whether the app has told us its status yet. */
  known: boolean;
  /** All checkpoints on this machine; null until listed. */
  shelf: ShelfView | null;
  /** What can be downloaded by one click, compared with what is here; null until listed. */
  catalog: CatalogView | null;
  catalogError: AppError | null;
  /** Why the last wish about the lists failed, and which it was. */
  listError: { wish: ListWish; error: AppError } | null;
  /** The path whose loading was asked for and has not ended. */
  requested: string | null;
  /** Why the last request failed; the model before it may still be loaded. */
  refusal: { path: string; error: AppError } | null;
}

export type ModelEvent =
  | { type: "status"; status: ModelStatus }
  | { type: "listed"; models: ModelsView }
  | { type: "shelved"; shelf: ShelfView }
  | { type: "listFailed"; wish: ListWish; error: AppError }
  | { type: "requested"; path: string }
  | { type: "loaded"; status: ModelStatus }
  | { type: "refused"; path: string; error: AppError };

export const initial: ModelState = {
  status: { state: "none" },
  known: false,
  shelf: null,
  catalog: null,
  catalogError: null,
  listError: null,
  requested: null,
  refusal: null,
};

export function apply(state: ModelState, event: ModelEvent): ModelState {
  switch (event.type) {
    case "status":
      return { ...state, status: event.status, known: true };
    case "listed":
      return { ...state, ...event.models, listError: null };
    case "shelved":
      return { ...state, shelf: event.shelf, listError: null };
    case "listFailed":
      return { ...state, listError: { wish: event.wish, error: event.error } };
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
  const known = state.shelf?.models.find(({ model: m }) => m.id === path || m.path === path);
  return known?.model.name ?? path.split("/").filter(Boolean).at(-1) ?? path;
}

/** Whether the model is the one in memory. */
export const isLoaded = (state: ModelState, model: LocalModel): boolean =>
  state.status.state === "ready" && state.status.model.id === model.id;

export interface Shelves {
  /** What can be chatted with. */
  chat: Shelved[];
  /** Draft heads: they are never chat models. */
  heads: Shelved[];
  /** Something is missing that can be fetched. */
  incomplete: Shelved[];
  /** Other models of this machine, which this app does not run. */
  refused: Shelved[];
}

/** The models by what can be done with them. */
export function shelves(models: Shelved[]): Shelves {
  const whole = models.filter((m) => m.health === "whole");
  return {
    chat: whole.filter((m) => m.role === "target" || m.role === "both"),
    heads: whole.filter((m) => m.role === "drafter"),
    incomplete: models.filter((m) => m.health === "incomplete"),
    refused: models.filter((m) => m.health === "refused" || (m.health === "whole" && m.role === "unknown")),
  };
}

/** Whether a draft head helps this model, and from where. */
export function draftNote(shelved: Shelved): "own" | "separate" | "none" {
  if (shelved.model.drafterPath) return "separate";
  return shelved.role === "both" ? "own" : "none";
}
