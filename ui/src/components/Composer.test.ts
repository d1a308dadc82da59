// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { expect, test, vi } from "vitest";
import { message } from "../state/samples";
import { edit } from "../state/view.svelte";
import Composer from "./Composer.svelte";
import EditMessage from "./EditMessage.svelte";

vi.mock("../lib/commands", async (original) =>
  Object.fromEntries(Object.keys(await original<object>()).map((name) => [name, vi.fn(async () => null)])),
);

const controls = () => [...document.querySelectorAll<HTMLButtonElement>("button, textarea, select, input")];

test("what comes and goes with messages is in no form: WebKitGTK keeps every control that ever was in one", () => {
  const asked = message({ id: 1, role: "user", content: "Hi" });
  edit(asked.id);
  const shown = [mount(Composer, { target: document.body }), mount(EditMessage, { target: document.body, props: { message: asked } })];
  flushSync();
  expect(controls().length).toBeGreaterThan(5);
  expect(controls().filter((control) => control.form !== null)).toEqual([]);
  for (const component of shown) void unmount(component);
});
