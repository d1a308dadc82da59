// @vitest-environment jsdom
//! What WebKit would keep of every reply, for good or for a while: see ARCHITECTURE.md.
import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test, vi } from "vitest";
import { message, run } from "../state/samples";
import { edit } from "../state/view.svelte";
import Composer from "./Composer.svelte";
import EditMessage from "./EditMessage.svelte";
import LiveLine from "./LiveLine.svelte";
import Waiting from "./Waiting.svelte";

vi.mock("../lib/commands", async (original) =>
  Object.fromEntries(Object.keys(await original<object>()).map((name) => [name, vi.fn(async () => null)])),
);

const asked = message({ id: 1, role: "user", content: "Hi" });
const target = document.body;
let shown: Record<string, unknown>[] = [];

afterEach(() => {
  for (const component of shown) void unmount(component);
  shown = [];
});

test("what comes and goes with messages is in no form", () => {
  edit(asked.id);
  shown = [mount(Composer, { target }), mount(EditMessage, { target, props: { message: asked } })];
  flushSync();
  const controls = [...document.querySelectorAll<HTMLButtonElement>("button, textarea, select, input")];
  expect(controls.length).toBeGreaterThan(5);
  expect(controls.filter((control) => control.form !== null)).toEqual([]);
});

test("what comes and goes with replies has no style of its own", () => {
  const reply = message({ id: 2, role: "assistant", status: "streaming" });
  shown = [
    mount(LiveLine, { target, props: { message: reply, run: run({ drafted: 8, acceptanceRate: 0.5 }) } }),
    mount(Waiting, { target, props: { prefill: { done: 1, total: 4 } } }),
  ];
  flushSync();
  expect([...document.querySelectorAll("line")].map((line) => line.getAttribute("x2"))).toEqual(["0.5", "0.25"]);
  expect(document.querySelectorAll("[style]")).toHaveLength(0);
});
