import { describe, expect, test } from "vitest";
import { BlockStream } from "./blocks";
import { html } from "./html";

// Each of these took minutes, or ended the call stack, where a step was repeated for each sign. The limits are far beyond
// what a slow machine needs and far below what that would take.
const LENGTH = 200_000;
const PATIENCE_MS = 20_000;
const filled = (piece: string): string => piece.repeat(Math.ceil(LENGTH / piece.length)).slice(0, LENGTH);

const draw = (text: string): string => {
  const stream = new BlockStream();
  stream.push(text);
  const open = stream.blocks.map(html).join("");
  stream.finish();
  return open && stream.blocks.map(html).join("");
};

const SIGNS = ["a", "word ", "*", "_a ", "**a ", "[", "[a](", "![", "`", "`a ", "``a` ", "<", "$", "$a", "$$", "\\(", "\\[a", "\\", "|", "~~a ", "$x$ ", "\\(x\\) ", "> ", ">", "<!-- ", "http://a.b "];

describe("a line of 200,000 characters", () => {
  test.each(SIGNS.map((sign) => [sign]))("of %j", (sign) => void draw(filled(sign)), PATIENCE_MS);

  test("loses none of them", () => {
    const text = filled("ab**c ");
    expect(draw(text).replace(/<[^>]*>/g, "")).toBe(text);
  });
});

describe("many of one thing", () => {
  const most = (piece: string): string => filled(piece).slice(0, 20_000);
  test.each([["* a\n"], ["- a\n\n"], ["| a | b |\n"], ["a\n\n"], ["[a]: b\n"], ["$x$\n\n"], ["> a\n"], ["```\na\n```\n"], ["$a\n"], ["=\n"]])("%j", (piece) => void draw(most(piece)), PATIENCE_MS);
});

test("10,000 quotes in each other", () => {
  for (const [sign, count] of [[">", 10_000], ["> ", 5_000]] as const) {
    const drawn = draw(`${sign.repeat(count)}deep`);
    const depth = drawn.split("<blockquote>").length - 1;
    expect(depth).toBeGreaterThan(10);
    expect(depth).toBeLessThan(100);
    expect(drawn.split("&gt;").length - 1 + depth).toBe(count);
    expect(drawn).toContain("deep");
  }
});

test("10,000 lists in each other", () => {
  const drawn = draw(`${"- ".repeat(10_000)}deep`);
  expect(drawn.split("<ul>").length).toBeLessThan(100);
  expect(drawn).toContain("deep");
  expect(draw(Array.from({ length: 80 }, (_, level) => `${"  ".repeat(level)}- a`).join("\n"))).toContain("<li>a");
}, PATIENCE_MS);

test("a line that comes in small pieces is read once for each, not once for each sign of it", () => {
  const stream = new BlockStream();
  const piece = "word ".repeat(20);
  for (let at = 0; at < 500; at += 1) {
    stream.push(piece);
    html(stream.blocks.at(-1)!);
  }
  expect(stream.blocks).toHaveLength(1);
}, PATIENCE_MS);
