import { describe, expect, test } from "vitest";
import { BlockStream } from "./blocks";

const whole = (text: string): BlockStream => {
  const stream = new BlockStream();
  stream.push(text);
  stream.finish();
  return stream;
};
const streamed = (text: string, sizes: () => number): BlockStream => {
  const stream = new BlockStream();
  for (let at = 0; at < text.length; ) {
    const size = sizes();
    stream.push(text.slice(at, at + size));
    at += size;
  }
  stream.finish();
  return stream;
};
const raws = (stream: BlockStream): string[] => stream.blocks.map((block) => block.raw);

const PIECES = [
  "# Title\n\n", "A **bold** word.\n\n", "A line\nand a second.\n", "- a\n- b\n\n", "- a\n\n- b\n\n", "1. a\n\n2. b\n\n10. c\n",
  "- a\n\n  more of a\n\n      code in a\n", "```js\nlet a = 1;\n\nlet b;\n```\n\n", "~~~\n```\n~~~\n", "> quote\nlazy\n\n",
  "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "Setext\n===\n", "    indented\n\n    code\n\n", "---\n", "<div>\nraw\n</div>\n\n",
  "[x]: https://example.com\n", "end", "\n\n", "* one\n* two\n", "1) x\n2) y\n\n", "a\n- b\n", "$x$ and `code`\n\n",
  "$$\na\n= b\n- c\n$$\n\n", "\\[\n# x\n> y\n\\]\n", "It is $5\n", "$$ no end\n- a\n\n", "`$$ no code\n", "> > > deep\n\n",
];

describe("streaming", () => {
  test("one character at a time equals the whole", () => {
    const text = PIECES.join("");
    expect(raws(streamed(text, () => 1))).toEqual(raws(whole(text)));
  });

  test("a text that goes on after its end equals the whole, and closed blocks keep their identity", () => {
    const stream = new BlockStream();
    stream.push("One.\n\nTwo.\n\nA tall lighthouse");
    stream.finish();
    const [one] = stream.blocks;
    stream.push(". Every day");
    expect(stream.blocks[0]).toBe(one);
    stream.push(" she played.\n\nEnd");
    stream.finish();
    expect(raws(stream)).toEqual(raws(whole("One.\n\nTwo.\n\nA tall lighthouse. Every day she played.\n\nEnd")));
  });

  test("a loose ordered list stays one list", () => {
    expect(raws(streamed("1. a\n\n2. b\n\n3. c\n\nend\n\nof it", () => 1))[0]).toBe("1. a\n\n2. b\n\n3. c\n\n");
  });

  test("a formula is one block from its first sign on, whatever its lines begin with", () => {
    const stream = new BlockStream();
    for (const c of "Text.\n\n$$\na\n= b\n- c\n1. d\n# e\n> f\n$$\n") {
      stream.push(c);
      expect(stream.blocks.length).toBeLessThanOrEqual(2);
    }
  });

  test("blank lines make no block of their own", () => {
    expect(raws(whole("\n\na\n\n\nb\n"))).toEqual(["\n\na\n\n\n", "b\n"]);
  });

  test("any order of blocks, cut anywhere, equals the whole and loses nothing", () => {
    let seed = 7;
    const random = (n: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let run = 0; run < 150; run += 1) {
      const text = Array.from({ length: 6 }, () => PIECES[random(PIECES.length)]).join("");
      const got = raws(streamed(text, () => 1 + random(9)));
      expect(got, JSON.stringify(text)).toEqual(raws(whole(text)));
      if (got.length > 0) expect(got.join("").trim()).toBe(text.trim());
    }
  });
});

describe("identity", () => {
  test("closed blocks are the same objects after more text", () => {
    const stream = new BlockStream();
    stream.push("a\n\nb\n\nc\n\nd");
    const [a, b] = stream.blocks;
    expect(a?.done && b?.done).toBe(true);
    stream.push(" more\n\ne");
    expect(stream.blocks[0]).toBe(a);
    expect(stream.blocks[1]).toBe(b);
  });

  test("an open block that did not change is the same object too", () => {
    const stream = new BlockStream();
    stream.push("a\n\nb");
    const [a] = stream.blocks;
    stream.push("c");
    expect(stream.blocks[0]).toBe(a);
    expect(stream.blocks[1]?.raw).toBe("bc");
  });
});
