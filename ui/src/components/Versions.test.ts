// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test, vi } from "vitest";
import * as commands from "../lib/commands";
import { message } from "../state/samples";
import Versions from "./Versions.svelte";

vi.mock("../lib/commands", () => ({ showMessage: vi.fn() }));

let opened: Record<string, unknown>[] = [];
afterEach(() => {
  for (const component of opened) void unmount(component);
  opened = [];
  document.body.innerHTML = "";
});

function draw(id: number): HTMLElement {
  const target = document.createElement("article");
  target.dataset.id = String(id);
  document.body.append(target);
  opened.push(mount(Versions, { target, props: { message: message({ id, versions: [1, 2, 3] }) } }));
  flushSync();
  return target;
}

/** The version that has the focus, and by which of its buttons. */
const focused = (): (string | undefined)[] => [document.activeElement?.closest("article")?.dataset.id, (document.activeElement as HTMLElement).dataset.testid];

test.each([
  ["the same button of the next version", 1, "version-after", 2, "version-after"],
  ["at the end, the one that leads back", 2, "version-after", 3, "version-before"],
  ["at the start, the one that leads on", 2, "version-before", 1, "version-after"],
])("stepping leaves the focus on %s", async (_, from, button, to, has) => {
  const old = draw(from);
  vi.mocked(commands.showMessage).mockImplementationOnce(async () => {
    // The other version is drawn in place of this one.
    old.remove();
    draw(to);
    return { summary: { id: 1 }, messages: [] } as never;
  });
  const clicked = old.querySelector<HTMLElement>(`[data-testid="${button}"]`)!;
  clicked.focus();
  clicked.click();
  await vi.waitFor(() => expect(focused()).toEqual([String(to), has]));
});
