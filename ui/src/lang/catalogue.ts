//! How a catalogue differs from English.

/** A word that is counted may have other forms in another language: `few`, `many`. */
const isCounted = (words: object): boolean => "other" in words;

const kind = (words: unknown): string => (Array.isArray(words) ? "list" : typeof words);

/** Places where a catalogue does not have what English has: other keys, another kind, other values to be filled in. */
export function differences(english: unknown, other: unknown, at = ""): string[] {
  if (kind(english) !== kind(other)) return [`${at}: ${kind(other)}, not ${kind(english)}`];
  if (typeof english === "function" && typeof other === "function") {
    return english.length === other.length ? [] : [`${at}: ${other.length} values, not ${english.length}`];
  }
  if (typeof english !== "object" || english === null || typeof other !== "object" || other === null) return [];
  if (isCounted(english)) return isCounted(other) ? [] : [`${at}.other: missing`];
  const [here, there] = [new Map(Object.entries(english)), new Map(Object.entries(other))];
  const path = (key: string): string => (at ? `${at}.${key}` : key);
  return [
    ...[...here].flatMap(([key, words]) => (there.has(key) ? differences(words, there.get(key), path(key)) : [`${path(key)}: missing`])),
    ...[...there.keys()].filter((key) => !here.has(key)).map((key) => `${path(key)}: not in English`),
  ];
}
