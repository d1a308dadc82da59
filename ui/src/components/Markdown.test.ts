// @vitest-environment jsdom
import { openUrl } from "@tauri-apps/plugin-opener";
import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import * as drawing from "../lib/html";
import { loadKatex } from "../lib/katex";
import Markdown from "./Markdown.svelte";
import { growing } from "./growing.svelte";

vi.mock("@tauri-apps/plugin-opener", () => ({ openUrl: vi.fn() }));
vi.mock("../lib/html", async (original) => {
  const real = await original<typeof import("../lib/html")>();
  return { ...real, html: vi.fn(real.html) };
});

/** A reply that grows, as the window shows it. */
function reply() {
  const target = document.createElement("div");
  const props = growing();
  const component = mount(Markdown, { target, props: props.current });
  opened.push(component);
  flushSync();
  return {
    root: target.firstElementChild as HTMLElement,
    add(text: string): void {
      props.add(text);
      flushSync();
    },
    end(): void {
      props.end();
      flushSync();
    },
  };
}

let opened: Record<string, unknown>[] = [];
const drawn = vi.mocked(drawing.html);

beforeAll(loadKatex);
beforeEach(() => void drawn.mockClear());
afterEach(() => {
  for (const component of opened) void unmount(component);
  opened = [];
});

const CLOSED = "# Title\n\nA **word** with $x^2$.\n\n- a\n  - b\n- c\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nlet a = 1;\n```\n\n$$\ny\n$$\n\n<b>not bold</b>\n\n[here]: https://example.com\n\nEnd.\n\nOne.\n\n";

describe("text at the end", () => {
  test.each([
    ["a paragraph", "The quick brown fox jumps over it."],
    ["a fence", "```js\nlet a = 1;\n\nlet b = 2;\n```\n"],
    ["a table", "| a | b |\n|---|--:|\n| 1 | **2** |\n| 3 | 4 |\n"],
    ["a list", "- one\n- two\n- three\n"],
    ["nested lists", "- one\n  - two\n    1. three\n  - four\n- five\n"],
    ["a formula", "$$\na\n= b\n$$\n"],
    ["what looks like HTML", "<div>\n<b>x</b>\n</div>\n"],
    ["a link's definition", '[there]: https://example.com "There"\n'],
    ["a quote", "> one\n> two\n>\n> three\n"],
  ])("draws the open blocks alone: %s", (_, text) => {
    const page = reply();
    page.add(CLOSED);
    // Two blocks stay open: what follows may still be part of them.
    const closed = [...page.root.children].slice(0, -2);
    const inside = closed.map((block) => [...block.querySelectorAll("*")]);
    drawn.mockClear();
    for (const c of text) page.add(c);
    // A block that is closed is drawn once more, whole.
    for (const [block] of drawn.mock.calls) expect(block.id).toBeGreaterThanOrEqual(closed.length);
    expect(drawn.mock.calls.length).toBeLessThanOrEqual(3 * text.length + 3);
    closed.forEach((block, index) => {
      expect(page.root.children[index]).toBe(block);
      expect([...block.querySelectorAll("*")]).toEqual(inside[index]);
    });
  });

  test("ends up as it would have been drawn at once", () => {
    const page = reply();
    for (const c of CLOSED) page.add(c);
    page.end();
    const whole = reply();
    whole.add(CLOSED);
    whole.end();
    expect(page.root.innerHTML).toBe(whole.root.innerHTML);
  });

  test("leaves what is in an open block where it is: items, rows, formulas, code and its box", () => {
    const page = reply();
    page.add("- one $x$\n- two\n");
    const items = [...page.root.querySelectorAll("li, .katex")];
    page.add("- three");
    expect([...page.root.querySelectorAll("li, .katex")].slice(0, items.length)).toEqual(items);

    page.add("\n\nText.\n\n| a |\n|---|\n| 1 |\n");
    const rows = [...page.root.querySelectorAll(".table, tr")];
    page.add("| 2 |\n");
    expect([...page.root.querySelectorAll(".table, tr")].slice(0, rows.length)).toEqual(rows);

    page.add("\nText.\n\n```js\nlet a");
    const box = page.root.querySelector("pre")!;
    const letters = box.querySelector("code")!.firstChild!;
    page.add(" = 1;\nlet b");
    expect(page.root.querySelector("pre")).toBe(box);
    expect(box.querySelector("code")!.firstChild).toBe(letters);
    expect(letters.textContent).toContain("let a = 1;\nlet b");
  });
});

test("a link that is defined later leads there, and only its block is drawn again", () => {
  const page = reply();
  page.add("See [the page][here], and [here].\n\nTwo.\n\nThree.\n\nFour.\n\n");
  expect(page.root.querySelector("a")).toBeNull();
  const others = [...page.root.children].slice(1, 2);
  drawn.mockClear();
  page.add("[here]: https://example.com\n\n");
  page.end();
  expect([...page.root.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual(["https://example.com", "https://example.com"]);
  expect(drawn.mock.calls.filter(([block]) => block.id === 0)).toHaveLength(1);
  expect(drawn.mock.calls.filter(([block]) => block.id === 1)).toHaveLength(0);
  expect(page.root.children[1]).toBe(others[0]);
});

test("a link may have the name of what every object has", () => {
  const page = reply();
  page.add("[constructor] and [__proto__], [toString][]\n\nTwo.\n\n[__proto__]: https://example.com\n\nThree.\n\n");
  page.end();
  expect(page.root.querySelectorAll("a").length).toBeLessThanOrEqual(1);
  expect(page.root.textContent).toContain("constructor");
});

test("a definition leads to no place that a link may not lead to", () => {
  const page = reply();
  page.add("[a] and [b]\n\n[a]: javascript:alert(1)\n[b]: file:///etc/passwd\n");
  page.end();
  expect(page.root.querySelector("a")).toBeNull();
});

describe("characters of several parts", () => {
  const TEXTS = ["👩‍👩‍👧‍👦 and 👨🏽‍🚀", "🇩🇪🇯🇵", "é ü e\u0301 u\u0308 ก็ नमस्ते", "שלום **עולם** `קוד`", "مرحبا: 1. *واحد*", "天気は**晴れ**です。", "𝒳 $𝒳$ 𠮷野家", "1️⃣ ✍️ ☎️"];

  test.each(TEXTS)("stay whole when they come in halves: %s", (text) => {
    const page = reply();
    let said = "";
    for (let at = 0; at < text.length; at += 1) {
      page.add(text[at]!);
      said += text[at];
      const shown = page.root.textContent!;
      expect(shown).not.toMatch(/\ufffd|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
      // Nothing but marks is taken from what was said, and nothing is added.
      const bare = (of: string): string => of.replace(/[*`]/g, "").replace(/[\ud800-\udbff]$/, "");
      if (!text.includes("$")) expect(shown.trim()).toBe(bare(said).trim());
    }
    page.end();
    const whole = reply();
    whole.add(text);
    whole.end();
    expect(page.root.innerHTML).toBe(whole.root.innerHTML);
  });

  test("each block has its own direction, code and formulas that of their own", () => {
    const page = reply();
    page.add("שלום\n\n```js\nlet a;\n```\n\nHello $x$\n");
    page.end();
    expect([...page.root.children].every((block) => block.getAttribute("dir") === "auto")).toBe(true);
    expect(page.root.querySelector("pre")?.getAttribute("dir")).toBe("ltr");
    expect(page.root.querySelector(".formula")?.getAttribute("dir")).toBe("ltr");
  });
});

describe("a link", () => {
  const link = (): HTMLElement => {
    const page = reply();
    page.add("See [the **page**](https://example.com).");
    page.end();
    document.body.append(page.root);
    return page.root.querySelector<HTMLElement>("strong")!;
  };
  const opened = vi.mocked(openUrl);
  beforeEach(() => void opened.mockClear());
  afterEach(() => document.body.replaceChildren());

  test.each([
    ["click", 0],
    ["auxclick", 1],
    // Web views without `auxclick` tell the middle button as a click.
    ["click", 1],
  ])("opens outside, once, and the window stays: %s of button %i", (type, button) => {
    const event = new MouseEvent(type, { button, bubbles: true, cancelable: true });
    link().dispatchEvent(event);
    expect(event.defaultPrevented).toBe(true);
    expect(opened.mock.calls).toEqual([["https://example.com"]]);
  });

  test("does not open by the right button", () => {
    link().dispatchEvent(new MouseEvent("auxclick", { button: 2, bubbles: true, cancelable: true }));
    expect(opened).not.toHaveBeenCalled();
  });
});
