//! Downloads as the app tells them, and the one that is being looked at before it starts.

import type { AppError, Download, DownloadPlan, FoundRepo, Wanted, WantedPart } from "../bindings";

export interface Draft {
  wanted: Wanted;
  /** Null while the hub is asked. */
  plan: DownloadPlan | null;
  error: AppError | null;
}

export interface Search {
  query: string;
  /** Null until answered. */
  found: FoundRepo[] | null;
  error: AppError | null;
}

export interface DownloadsState {
  list: Download[];
  draft: Draft | null;
  search: Search | null;
  /** What the last cancelled download left in the cache. */
  kept: { name: string; bytes: number } | null;
  /** Why the last wish about a download was refused. */
  refusal: AppError | null;
}

export type DownloadsEvent =
  | { type: "changed"; list: Download[] }
  | { type: "planning"; wanted: Wanted }
  | { type: "planned"; wanted: Wanted; plan: DownloadPlan }
  | { type: "planFailed"; wanted: Wanted; error: AppError }
  | { type: "draftClosed" }
  | { type: "searching"; query: string }
  | { type: "found"; query: string; found: FoundRepo[] }
  | { type: "searchFailed"; query: string; error: AppError }
  | { type: "searchClosed" }
  | { type: "cancelled"; name: string; bytes: number }
  | { type: "refused"; error: AppError }
  | { type: "noted" };

export const initial: DownloadsState = {
  list: [],
  draft: null,
  search: null,
  kept: null,
  refusal: null,
};

export function apply(state: DownloadsState, event: DownloadsEvent): DownloadsState {
  switch (event.type) {
    case "changed":
      return { ...state, list: event.list };
    case "planning":
      return { ...state, draft: { wanted: event.wanted, plan: null, error: null }, refusal: null };
    case "planned":
      // The person may have gone on to another one meanwhile.
      return state.draft?.wanted === event.wanted ? { ...state, draft: { ...state.draft, plan: event.plan } } : state;
    case "planFailed":
      // Only what nobody looks at any more is cancelled; another plan of the same may be on its way.
      if (event.error.kind === "cancelled") return state;
      return state.draft?.wanted === event.wanted ? { ...state, draft: { ...state.draft, error: event.error } } : state;
    case "draftClosed":
      return { ...state, draft: null };
    case "searching":
      return { ...state, search: { query: event.query, found: null, error: null } };
    case "found":
      return state.search?.query === event.query ? { ...state, search: { ...state.search, found: event.found } } : state;
    case "searchFailed":
      return state.search?.query === event.query ? { ...state, search: { ...state.search, error: event.error } } : state;
    case "searchClosed":
      return { ...state, search: null };
    case "cancelled":
      return { ...state, kept: { name: event.name, bytes: event.bytes }, refusal: null };
    case "refused":
      return { ...state, refusal: event.error };
    case "noted":
      return { ...state, kept: null, refusal: null };
  }
}

/** Whether the hub is still asked for the draft's plan. */
export const isPlanning = (state: DownloadsState): boolean => state.draft !== null && !state.draft.plan && !state.draft.error;

/** Of a plan that fetches the heads of larger models alone: its bytes, and those of the weights that stay where they are. */
export function headAlone(plan: DownloadPlan): { bytes: number; of: number } | null {
  const heads = plan.parts.filter((part) => part.headOnly);
  if (heads.length === 0 || heads.length < plan.parts.length) return null;
  return { bytes: plan.bytes, of: heads.reduce((sum, part) => sum + (part.inPlaceOf ?? 0), 0) };
}

const RUNS: Download["state"]["phase"][] = ["planning", "transferring", "waiting", "verifying"];

/** Whether it goes on by itself. */
export const isRunning = (download: Download): boolean => RUNS.includes(download.state.phase);

/** What of it is here, 0 to 1; null while its size is not known. */
export const share = (download: Download): number | null =>
  download.bytes ? Math.min(1, download.done / download.bytes) : null;

/** The share of all running downloads together; null when none runs or nothing is known. */
export function overall(list: Download[]): number | null {
  const known = list.filter((d) => isRunning(d) && d.bytes);
  const bytes = known.reduce((sum, d) => sum + (d.bytes ?? 0), 0);
  return bytes > 0 ? known.reduce((sum, d) => sum + d.done, 0) / bytes : null;
}

/** The download of these repositories, if there is one. */
export const downloadOf = (list: Download[], wanted: Wanted): Download | undefined =>
  list.find((d) => d.state.phase !== "done" && sameParts(d.wanted, wanted));

const sameParts = (a: Wanted, b: Wanted): boolean =>
  a.parts.length === b.parts.length &&
  a.parts.every((part, i) => part.repo === b.parts[i]!.repo && part.headOnly === b.parts[i]!.headOnly);

/** Downloads that changed their phase in a way worth saying aloud. */
export function newlySaid(before: Download[], after: Download[]): Download[] {
  const said: Download["state"]["phase"][] = ["done", "failed", "waiting"];
  return after.filter((d) => said.includes(d.state.phase) && before.find((b) => b.id === d.id)?.state.phase !== d.state.phase);
}

/** What a person typed as a repository, or null if it is a search. */
export function asRepository(text: string): string | null {
  const typed = text.trim();
  if (/^(https?:\/\/|hf:\/\/|hf\.co\/|huggingface\.co\/)\S+$/.test(typed)) return typed;
  return /^[\w.-]+\/[\w.-]+$/.test(typed) ? typed : null;
}

/** Patterns as typed, one a line or separated by commas. */
export const patterns = (text: string): string[] =>
  text
    .split(/[\n,]/)
    .map((pattern) => pattern.trim())
    .filter(Boolean);

export const part = (repo: string, patch: Partial<WantedPart> = {}): WantedPart => ({
  repo,
  revision: null,
  include: [],
  exclude: [],
  headOnly: false,
  ...patch,
});

/** The last words of an address or `OWNER/NAME`. */
export const shortName = (repo: string): string => repo.replace(/^\w+:\/\/[^/]+\//, "").split("/").slice(0, 2).at(-1) ?? repo;

/** What can be done about a failure, besides trying again. */
export function remedy(error: AppError): { kind: "token" } | { kind: "page"; url: string } | null {
  const url = error.hint?.match(/https?:\/\/[^\s,;)]+/)?.[0];
  if (error.kind === "gated" && url) return { kind: "page", url };
  return ["unauthorized", "forbidden", "gated", "token"].includes(error.kind) ? { kind: "token" } : null;
}
