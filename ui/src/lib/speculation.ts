//! What the speculation control says: the choice, what the engine will do with it, and why not.

import type { ModelStatus, Run, SpeculationChoice } from "../bindings";
import { strings } from "./strings";

/** Block sizes the control offers; the engine takes up to 16. */
export const BLOCK_SIZES = [2, 3, 4, 5, 6, 7, 8] as const;

/** The value of the `<select>` for a choice, and back. */
export const toValue = (choice: SpeculationChoice): string =>
  choice.mode === "block" ? String(choice.size) : choice.mode;

export function fromValue(value: string): SpeculationChoice {
  if (value === "off" || value === "auto") return { mode: value };
  const size = Number(value);
  return Number.isInteger(size) && size >= 2 ? { mode: "block", size } : { mode: "auto" };
}

/** What the next reply will do. */
export interface Plan {
  /** Whether drafts will be made. */
  speculates: boolean;
  /** Tokens verified a round; 1 without drafts. */
  blockSize: number;
  /** Shown in the control's place, e.g. `Auto: 2 drafts` or `Off: no MTP head in this model`. */
  label: string;
  /** Whether `label` tells of something that stands in the way of the person's choice. */
  blocked: boolean;
  /** Whether it goes on from the last reply. */
  goesOn: boolean;
}

/** `last` is the last reply's run: automatic depth goes on from where it was. */
export function plan(choice: SpeculationChoice, status: ModelStatus, last: Run | null = null): Plan {
  const s = strings.speculation;
  const off = (label: string, blocked: boolean): Plan => ({ speculates: false, blockSize: 1, label, blocked, goesOn: false });
  if (choice.mode === "off") return off(s.off, false);
  if (status.state === "loading") return off(s.waiting, true);
  if (status.state !== "ready") return off(s.blocked(s.noModel), true);
  if (!status.canSpeculate) return off(s.blocked(clause(status.speculationNote)), true);
  if (choice.mode === "auto") {
    const goesOn = last !== null && last.model === status.model.name && (last.state === "on" || last.state === "parked");
    const depth = goesOn ? last.blockSize - 1 : status.autoDepth;
    return { speculates: true, blockSize: depth + 1, label: s.auto(depth), blocked: false, goesOn };
  }
  return { speculates: true, blockSize: choice.size, label: s.block(choice.size), blocked: false, goesOn: false };
}

/** A sentence made to follow a colon: no capital (unless it starts an acronym), no full stop. */
export function clause(sentence: string): string {
  const bare = sentence.trim().replace(/\.$/, "");
  return /^[A-Z][a-z]/.test(bare) || /^[A-Z] /.test(bare) ? bare[0]!.toLowerCase() + bare.slice(1) : bare;
}

/** A clause made to stand alone. */
export const sentence = (text: string): string => capital(text) + (text.endsWith(".") ? "" : ".");

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
