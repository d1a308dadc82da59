import { expect, test } from "vitest";
import { apply, initial, type SettingsEvent, type SettingsState } from "./settings";

const all = (...events: SettingsEvent[]): SettingsState => events.reduce(apply, initial);

test("an answer to an older change does not undo a newer", () => {
  const state = all({ type: "changed", patch: { theme: "dark" } }, { type: "changed", patch: { theme: "light" } });
  const late = apply(state, { type: "saved", settings: { ...state.settings, theme: "dark" }, revision: 1 });
  expect(late.settings.theme).toBe("light");
  expect(late.save).toBe("waiting");
  expect(apply(late, { type: "saved", settings: late.settings, revision: 2 }).save).toBe("saved");
});

test("a failed save keeps the choice and says so", () => {
  const state = all({ type: "changed", patch: { sidebar: false } }, { type: "failed", revision: 1 });
  expect(state).toMatchObject({ save: "failed", settings: { sidebar: false } });
});

test("a reset sets back what was set, keeps what was made, and can be undone", () => {
  const preset = { name: "Brief", instructions: "", options: null };
  const set = all(
    { type: "changed", patch: { theme: "dark", kv: "four", memoryLimitGb: 12, language: "en", sidebar: false, welcomed: true } },
    { type: "changed", patch: { presets: [preset] as never, model: "/m", options: { ...initial.settings.options, temperature: 0 } } },
  );
  const reset = apply(set, { type: "reset" });
  expect(reset.settings).toEqual({ ...initial.settings, welcomed: true, presets: [preset], model: "/m" });
  expect([reset.save, reset.revision]).toEqual(["waiting", 3]);
  const saved = apply(reset, { type: "saved", settings: { ...reset.settings, model: "/other" }, revision: 3 });
  const undone = apply(saved, { type: "undone" });
  expect(undone.settings).toEqual({ ...set.settings, model: "/other" });
  expect(apply(undone, { type: "undone" })).toBe(undone);
});

test("a reset is not undone over a later change", () => {
  const changed = all({ type: "changed", patch: { kv: "eight" } }, { type: "reset" }, { type: "changed", patch: { theme: "light" } });
  expect(apply(changed, { type: "undone" })).toBe(changed);
});
