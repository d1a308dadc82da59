//! A catalogue made strange: each word stays readable and is seen not to be plain English.

const STRANGE: Record<string, string> = {
  a: "á", c: "ç", e: "é", g: "ğ", i: "í", n: "ñ", o: "ö", s: "š", u: "ü", y: "ý", z: "ž",
  A: "Å", C: "Ç", D: "Ð", E: "É", I: "Î", N: "Ñ", O: "Ø", S: "Š", U: "Û", Y: "Ý", Z: "Ž",
};

/** Brackets show where a text is cut off. */
const strange = (text: string): string => `[${text.replaceAll(/[A-Za-z]/g, (letter) => STRANGE[letter] ?? letter)}]`;

export function pseudo<T>(words: T): T {
  if (typeof words === "string") return (words === "" ? words : strange(words)) as T;
  if (Array.isArray(words)) return words.map((word) => pseudo<unknown>(word)) as T;
  if (typeof words === "function") {
    const spoken = (...values: unknown[]): unknown => pseudo<unknown>(words(...values));
    return Object.defineProperty(spoken, "length", { value: words.length }) as T;
  }
  if (typeof words !== "object" || words === null) return words;
  return Object.fromEntries(Object.entries(words).map(([key, word]) => [key, pseudo<unknown>(word)])) as T;
}
