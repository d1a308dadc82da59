//! The languages of the window. English is the one that all others are measured by.

import { en } from "./en";
import { pseudo } from "./pseudo";

/** What a language has to say. Sentences of the app behind the window (errors, what speculation does) are English. */
export type Catalogue = typeof en;

export interface Language {
  /** As in `lang` and for numbers and dates. */
  tag: string;
  /** Its own name for itself. */
  name: string;
  words: Catalogue;
}

export const languages: readonly Language[] = [
  { tag: "en", name: "English", words: en },
  // English made strange: what stays plain was never in a catalogue. Left out of every build.
  ...(import.meta.env.DEV ? [{ tag: "en-XA", name: "Pseudo", words: pseudo(en) }] : []),
];

const primary = (tag: string): string => tag.split("-")[0]!.toLowerCase();

/** The language of a setting: the one that is named, or with `system` the first that the system prefers and the window has. */
export function languageOf(setting: string, preferred: readonly string[], known: readonly Language[] = languages): Language {
  const named = known.find((language) => language.tag === setting);
  const asked = preferred.map((tag) => known.find((language) => language.tag === tag || language.tag === primary(tag)));
  return named ?? asked.find((language) => language !== undefined) ?? known[0]!;
}

/** Whose numbers and dates: the system's own variant of the language if it has one, `en-GB` for `en`. */
export const localeOf = (language: Language, preferred: readonly string[]): string =>
  preferred.find((tag) => primary(tag) === primary(language.tag)) ?? language.tag;
