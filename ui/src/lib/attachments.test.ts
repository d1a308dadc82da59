import { expect, test } from "vitest";
import { compose, estimate, split, tokensOf, withFile } from "./attachments";

const back = (files: { name: string; text: string }[], words: string) => split(compose(files, words));

test("files and words come out as they went in", () => {
  const files = [
    { name: "a b.md", text: "# A\n\n```js\nlet a;\n```\n" },
    { name: "notes", text: "File: x\n````\nno file\n````\n" },
    { name: "empty.txt", text: "\n" },
  ];
  expect(back(files, "Compare them.\n\nFile: not one")).toEqual({ files, words: "Compare them.\n\nFile: not one" });
  expect(back(files, "")).toEqual({ files, words: "" });
  expect(back([], "Hi")).toEqual({ files: [], words: "Hi" });
});

test("the text of a PDF is no code", () => {
  const files = [{ name: "Two.PDF", text: "--- Page 1 of 1 ---\nA ```stack``` and $x$\n" }, { name: "a.pdf.rs", text: "fn main() {}\n" }];
  expect(compose(files, "")).toMatch(/^File: Two\.PDF\n````\n[^]*\n````\n\nFile: a\.pdf\.rs\n```rs\n/);
  expect(back(files, "Hi")).toEqual({ files, words: "Hi" });
});

test("a file without a last line end gets one", () => {
  expect(back([{ name: "a.csv", text: "1,2" }], "x").files).toEqual([{ name: "a.csv", text: "1,2\n" }]);
});

test("words that only look like a file are words", () => {
  for (const words of ["File: a.md\nno fence", "File: a\n```\nnever closed", "File: a\n```\nx\n```y"]) expect(split(words)).toEqual({ files: [], words });
});

test("tokens add up, unless one file's are not known", () => {
  const file = (tokens: number | null) => ({ name: "a", text: "", tokens });
  expect([tokensOf([]), tokensOf([file(2), file(3)]), tokensOf([file(2), file(null)])]).toEqual([0, 5, null]);
  expect([estimate(""), estimate("four"), estimate("天気は")]).toEqual([0, 1, 2]);
});

test("no file takes the place of another of its name", () => {
  const file = (name: string, text: string) => ({ name, text });
  const names = (...files: { name: string; text: string }[]) => files.reduce(withFile, [] as typeof files).map(({ name, text }) => `${name}: ${text}`);
  expect(names(file("mod.rs", "a"), file("mod.rs", "b"), file("mod.rs", "c"))).toEqual(["mod.rs: a", "mod (2).rs: b", "mod (3).rs: c"]);
  expect(names(file("mod.rs", "a"), file("mod.rs", "b"), file("mod.rs", "a"), file("mod.rs", "b"))).toEqual(["mod.rs: a", "mod (2).rs: b"]);
  expect(names(file("notes", "a"), file("notes", "b"), file(".env", "a"), file(".env", "b"))).toEqual(["notes: a", "notes (2): b", ".env: a", ".env (2): b"]);
});
