import { expect, test } from "vitest";
import { removePreset, savePreset } from "./presets";

const config = (systemPrompt: string) => ({ systemPrompt, options: null });

test("a preset takes the place of the one of its name, in order", () => {
  let presets = savePreset([], "Translate", config("a"));
  presets = savePreset(presets, "brief", config("b"));
  presets = savePreset(presets, "translate", config("c"));
  expect(presets.map((p) => [p.name, p.config.systemPrompt])).toEqual([["brief", "b"], ["translate", "c"]]);
  expect(removePreset(presets, "brief").map((p) => p.name)).toEqual(["translate"]);
});
