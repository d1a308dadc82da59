import { parse } from "svelte/compiler";
import { expect, test } from "vitest";

const components = import.meta.glob<string>(["../components/*.svelte", "../App.svelte"], { query: "?raw", import: "default", eager: true });
const modules = import.meta.glob<string>(["../lib/*.ts", "../state/*.ts", "!../**/*.test.ts"], { query: "?raw", import: "default", eager: true });

/** Attributes that are read or read out. */
const SPOKEN = new Set(["alt", "aria-description", "aria-label", "aria-placeholder", "aria-roledescription", "aria-valuetext", "label", "placeholder", "title"]);
const isWord = (text: string): boolean => /\p{L}{2,}/u.test(text);

type Node = Record<string, unknown> & { type?: string };
const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null;

/** What an expression may come to: its texts, and not those that it is compared with or looks something up by. */
function texts(node: unknown): string[] {
  if (!isNode(node)) return [];
  switch (node.type) {
    case "Literal":
      return typeof node.value === "string" ? [node.value] : [];
    case "TemplateLiteral":
      return [...(node.quasis as { value: { cooked: string } }[]).map((part) => part.value.cooked), ...(node.expressions as unknown[]).flatMap(texts)];
    case "ConditionalExpression":
      return [...texts(node.consequent), ...texts(node.alternate)];
    case "LogicalExpression":
      return [...texts(node.left), ...texts(node.right)];
    case "BinaryExpression":
      return node.operator === "+" ? [...texts(node.left), ...texts(node.right)] : [];
    case "CallExpression": {
      const called = node.callee as Node;
      return called.name === "plural" ? (node.arguments as unknown[]).flatMap(texts) : [];
    }
    default:
      return [];
  }
}

/** Words that a component has of its own, in its markup. */
function ownWords(source: string): string[] {
  const found: string[] = [];
  const visit = (node: unknown, isSpoken: boolean): void => {
    if (Array.isArray(node)) node.forEach((child) => visit(child, isSpoken));
    if (!isNode(node) || Array.isArray(node)) return;
    if (node.type === "Attribute") return visit(node.value, SPOKEN.has(node.name as string));
    if (node.type === "Text" && isSpoken) found.push(node.data as string);
    if (node.type === "ExpressionTag" && isSpoken) found.push(...texts(node.expression));
    for (const [key, child] of Object.entries(node)) {
      if (["fragment", "nodes", "attributes", "consequent", "alternate", "body", "fallback", "pending", "then", "catch", "value"].includes(key)) {
        visit(child, key === "attributes" ? false : isSpoken);
      }
    }
  };
  visit(parse(source, { modern: true }).fragment, true);
  return found.filter(isWord);
}

test("components take every word from a catalogue", () => {
  expect(Object.keys(components).length).toBeGreaterThan(50);
  const offenders = Object.entries(components).flatMap(([path, source]) => ownWords(source).map((words) => `${path}: ${words.trim()}`));
  expect(offenders).toEqual([]);
});

test("words in markup are found wherever they stand", () => {
  const own = (markup: string): string[] => ownWords(`<script>let s, a, n;</script>${markup}`);
  expect(own("<p>Hello</p>{#if a}there{:else}or{/if}{#each s as x}each{/each}")).toEqual(["Hello", "there", "or", "each"]);
  expect(own('<button title="Close it" aria-label={a ? "Open it" : s.x}>×</button>')).toEqual(["Close it", "Open it"]);
  expect(own('<i title="{s.a} (Esc)">{a === "done" ? s.b : `${n} files`}{plural(n, "file")}</i>')).toEqual([" (Esc)", " files", "file"]);
  expect(own('<p class="words" data-testid="here" title={s.name}>{s.text("key")}{a["key"]}</p><Icon name="close" />')).toEqual([]);
});

test("no module keeps words of the language it was loaded with", () => {
  const keeps = Object.entries(modules).filter(([, source]) => /^(export )?const (?:(?!=>).)*\bstrings\b/m.test(source));
  expect(keeps.map(([path]) => path)).toEqual([]);
});
