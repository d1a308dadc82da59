// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { beforeEach, expect, test } from "vitest";
import type { ModelStatus, Run, SpeculationChoice } from "../bindings";
import { chats } from "../state/chats.svelte";
import { model } from "../state/model.svelte";
import { message, ready, run } from "../state/samples";
import { changeOptions } from "../state/settings.svelte";
import { turn } from "../state/turn.svelte";
import ModelLine from "./ModelLine.svelte";
import SpeculationSelect from "./SpeculationSelect.svelte";

beforeEach(() => chats.dispatch({ type: "opened", chatId: 1 }));

/** What the model's line and the composer's control say of speculation. */
function said(speculation: SpeculationChoice, status: ModelStatus, last: Run | null): [string, string] {
  changeOptions({ speculation });
  model.dispatch({ type: "status", status });
  turn.dispatch({ type: "shown", chatId: 1, messages: last ? [message({ run: last })] : [] });
  const target = document.createElement("div");
  const both = [mount(ModelLine, { target }), mount(SpeculationSelect, { target })];
  flushSync();
  const line = [...target.querySelectorAll(".detail")].at(-1)!.textContent;
  const select = target.querySelector("select")!;
  const chosen = select.selectedOptions[0]!.textContent;
  for (const component of both) void unmount(component);
  return [line, chosen];
}

const auto: SpeculationChoice = { mode: "auto" };

test.each<[SpeculationChoice, Run | null, string]>([
  [auto, null, "Auto: 2 drafts"],
  [auto, run({ state: "parked", blockSize: 1 }), "Auto: parked"],
  [auto, run({ state: "on", blockSize: 4 }), "Auto: 3 drafts"],
  [auto, run({ state: "fixed", blockSize: 5 }), "Auto: 2 drafts"],
  [{ mode: "block", size: 4 }, run({ state: "parked", blockSize: 1 }), "Block 4"],
  [{ mode: "off" }, run({ state: "on", blockSize: 4 }), "Off"],
])("the model's line and the composer say the same: %j", (choice, last, label) => {
  const [line, chosen] = said(choice, ready(), last);
  expect([line, chosen]).toEqual([`· MTP · ${label}`, label]);
});

test("without a head that fits, the line says what is missing", () => {
  const [plain] = said(auto, ready({ canSpeculate: false, speculating: "unavailable" }), null);
  const [mismatch] = said(auto, ready({ canSpeculate: false, speculating: "mismatch" }), null);
  expect([plain, mismatch]).toEqual(["· no MTP", "· MTP head does not match"]);
});
