import { expect, test } from "vitest";
import { html, isExternal } from "./html";

const done = (raw: string): string => html({ id: 0, raw, done: true });
const open = (raw: string): string => html({ id: 0, raw, done: false });

test("an open bold is completed", () => {
  expect(open("A **bo")).toContain("<strong>bo</strong>");
});

test("a code block has its language, a copy button and colours once closed", () => {
  const raw = "```rust\nfn main() {}\n```";
  expect(done(raw)).toContain("<span>rust</span>");
  expect(done(raw)).toContain("data-copy");
  expect(done(raw)).toContain("hljs-keyword");
  expect(open(raw)).toContain("hljs-keyword");
  expect(open("```rust\nfn main() {}")).not.toContain("hljs-");
});

test("a line break is one", () => {
  expect(done("Grey water folding,\na gull")).toContain("<br>a gull");
});

test("an unknown language stays plain", () => {
  expect(done("```brainfuck\n<+>\n```")).toContain("&lt;+&gt;");
});

test("HTML of the model is shown, not obeyed", () => {
  expect(done('<img src=x onerror="alert(1)">')).not.toContain("<img");
  expect(done("a <b onclick=x>b</b>")).toContain("&lt;b onclick=x&gt;");
  expect(done("```x\"><script>\n1\n```")).not.toContain("<script");
  expect(done("a<br>b")).toContain("a<br>b");
});

test("images are not fetched, and only web and mail links are links", () => {
  expect(done("![cat](https://example.com/cat.png)")).toContain("[image: cat]");
  expect(done("![cat](https://example.com/cat.png)")).not.toContain("<img");
  expect(done("[a](https://example.com)")).toContain('<a href="https://example.com"');
  expect(done("[a](javascript:alert(1))")).not.toContain("href");
  expect(isExternal("file:///etc/passwd")).toBe(false);
  expect(isExternal("mailto:a@example.com")).toBe(true);
});

test("a table keeps its alignment and scrolls in its own box", () => {
  const table = done("| a | b |\n|---|--:|\n| 1 | **2** |");
  expect(table).toContain('<td align="right"><strong>2</strong></td>');
  expect(table).toContain('<div class="table"');
});
