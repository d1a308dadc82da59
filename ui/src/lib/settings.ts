//! What the settings page holds, and finding something on it.

import { strings } from "./strings";

export type Section = "appearance" | "replies" | "speculation" | "models" | "token" | "chats" | "data";
export type Row =
  | "theme" | "language" | "sidebar"
  | "sampling" | "enter"
  | "drafts" | "exactness" | "kv"
  | "folders" | "memory"
  | "token"
  | "files" | "purge"
  | "data" | "reset";

/** In the order of the page. */
export const SECTIONS: readonly { id: Section; rows: readonly Row[] }[] = [
  { id: "appearance", rows: ["theme", "language", "sidebar"] },
  { id: "replies", rows: ["sampling", "enter"] },
  { id: "speculation", rows: ["drafts", "exactness", "kv"] },
  { id: "models", rows: ["memory", "folders"] },
  { id: "token", rows: ["token"] },
  { id: "chats", rows: ["files", "purge"] },
  { id: "data", rows: ["data", "reset"] },
];

/** Without case and accents. */
const plain = (text: string): string => text.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();

/** The sections with those of their rows that have to do with every word of the query; all for an empty one. */
export function searchSettings(query: string): { id: Section; rows: readonly Row[] }[] {
  const wanted = plain(query).split(/\s+/).filter(Boolean);
  const { sections, rows } = strings.settings;
  const holds = (section: Section, row: Row): boolean => {
    const { name, note, also } = rows[row];
    const words = plain(`${sections[section]} ${name} ${note} ${also}`);
    return wanted.every((word) => words.includes(word));
  };
  return SECTIONS.map(({ id, rows }) => ({ id, rows: rows.filter((row) => holds(id, row)) })).filter(({ rows }) => rows.length > 0);
}

const LIMITS = { min: 0.5, max: 100_000 };

/** The memory limit of a field: null when it is empty (automatic), undefined when it is no limit. */
export function parseLimit(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const value = Number(text.trim().replace(",", "."));
  return value >= LIMITS.min && value <= LIMITS.max ? value : undefined;
}
