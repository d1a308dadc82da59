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
