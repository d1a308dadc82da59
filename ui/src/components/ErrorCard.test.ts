// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { expect, test } from "vitest";
import { spans } from "../lib/spans";
import ErrorCard from "./ErrorCard.svelte";

test("names in backticks are code, and a single backtick is itself", () => {
  expect(spans("cannot read `a b.txt`: it is no `b`")).toEqual([
    { text: "cannot read ", isCode: false },
    { text: "a b.txt", isCode: true },
    { text: ": it is no ", isCode: false },
    { text: "b", isCode: true },
  ]);
  expect(spans("one ` alone")).toEqual([{ text: "one ` alone", isCode: false }]);
});

test("an error begins with a capital and shows names as code", () => {
  const target = document.createElement("div");
  const card = mount(ErrorCard, { target, props: { error: { kind: "x", message: "cannot attach `x.png`: it is no text", hint: "attach `x.txt`" } } });
  flushSync();
  expect(target.querySelector("[data-testid=error-message]")?.innerHTML.replaceAll(/ class="[^"]*"|<!--.*?-->/g, "")).toBe("Cannot attach <code>x.png</code>: it is no text");
  expect(target.querySelector("[data-testid=error-hint]")?.textContent).toBe("Attach x.txt");
  void unmount(card);
});
