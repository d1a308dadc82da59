//! The words of the window in the language in use. Taken when a component is made, never when a module is: the language may
//! change, and then the window is drawn anew.

import { languageOf, localeOf, type Catalogue } from "../lang";

/** A form for one and for the rest; languages with more forms name them as `Intl.PluralRules` does. */
export type Counted = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

export let strings: Catalogue = languageOf("en", []).words;
/** Whose numbers and dates. */
export let locale = "en";

/** Has the window speak the language of a setting, and gives its tag. */
export function speak(setting: string, preferred: readonly string[]): string {
  const language = languageOf(setting, preferred);
  strings = language.words;
  locale = localeOf(language, preferred);
  return language.tag;
}
