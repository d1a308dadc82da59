// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as commands from "../lib/commands";
import { attachedTo, detachAll } from "../state/attachments.svelte";
import { model } from "../state/model.svelte";
import { closeSheet, dismiss, view } from "../state/view.svelte";
import DropZone from "./DropZone.svelte";

vi.mock("../lib/commands", () => ({
  followDrops: vi.fn(async () => {}),
  sortDrop: vi.fn(),
  addFolder: vi.fn(),
  saveDraft: vi.fn(async () => null),
}));

const error = (message: string) => ({ kind: "input", message, hint: `mend ${message}` });
const nothing = { files: [], pdfs: [], refused: [] };
let component: Record<string, unknown>;
let drop: (event: { paths: string[] }) => void = () => {};

beforeEach(() => {
  component = mount(DropZone, { target: document.body });
  flushSync();
  drop = vi.mocked(commands.followDrops).mock.lastCall![0];
});
afterEach(() => {
  void unmount(component);
  closeSheet();
  dismiss();
  detachAll(null);
});

test("a file goes with the next message, and no sheet opens", async () => {
  vi.mocked(commands.sortDrop).mockResolvedValueOnce({ folders: [], files: { ...nothing, files: [{ name: "notes.md", text: "a", tokens: 1 }], refused: [error("a.png")] } });
  drop({ paths: ["/notes.md", "/a.png"] });
  await vi.waitFor(() => expect(attachedTo(null).map((file) => file.name)).toEqual(["notes.md"]));
  expect(commands.sortDrop).toHaveBeenCalledWith(["/notes.md", "/a.png"]);
  expect(view.current).toMatchObject({ sheet: null, notice: error("a.png") });
});

test("folders are looked through, and all that is wrong with them is told", async () => {
  vi.mocked(commands.sortDrop).mockResolvedValueOnce({ folders: ["/a", "/b", "/c"], files: nothing });
  const shelf = { models: [] } as never;
  vi.mocked(commands.addFolder).mockRejectedValueOnce(error("a")).mockRejectedValueOnce(error("b")).mockResolvedValueOnce(shelf);
  drop({ paths: ["/a", "/b", "/c"] });
  await vi.waitFor(() => expect(model.current.listError?.error.message).toBe("a; b"));
  expect(view.current.sheet).toBe("models");
});
