import { expect, test } from "vitest";
import type { ModelStatus } from "../bindings";
import { localModel, ready, run } from "../state/samples";
import { clause, fromValue, plan, toValue } from "./speculation";

const auto = { mode: "auto" } as const;

test("a ready model with a head does as asked", () => {
  expect(plan(auto, ready())).toEqual({ speculates: true, blockSize: 3, label: "Auto: 2 drafts", blocked: false, goesOn: false });
  expect(plan(auto, ready({ autoDepth: 0 })).label).toBe("Auto: parked");
  expect(plan({ mode: "block", size: 5 }, ready())).toMatchObject({ speculates: true, blockSize: 5, label: "Block 5" });
  expect(plan({ mode: "off" }, ready())).toEqual({ speculates: false, blockSize: 1, label: "Off", blocked: false, goesOn: false });
});

test("automatic depth goes on from where the last reply of this model left it", () => {
  const last = run({ state: "on", blockSize: 2 });
  expect(plan(auto, ready(), last).label).toBe("Auto: 1 draft");
  expect(plan(auto, ready(), run({ state: "parked", blockSize: 1 })).label).toBe("Auto: parked");
  for (const other of [run({ state: "fixed", blockSize: 6 }), run({ ...last, model: "Another" }), null]) {
    expect(plan(auto, ready(), other).label).toBe("Auto: 2 drafts");
  }
});

test("a model without a head says why", () => {
  const status = ready({ canSpeculate: false, speculationNote: "No MTP head in this model.", defaultBlockSize: 1 });
  expect(plan(auto, status)).toEqual({ speculates: false, blockSize: 1, label: "Off: no MTP head in this model", blocked: true, goesOn: false });
  expect(plan({ mode: "block", size: 4 }, status).blocked).toBe(true);
  expect(plan({ mode: "off" }, status)).toMatchObject({ label: "Off", blocked: false, goesOn: false });
});

test("without a model there is nothing to promise", () => {
  const failed: ModelStatus = { state: "failed", model: localModel(), error: { kind: "x", message: "x", hint: null } };
  expect(plan(auto, { state: "none" }).label).toBe("Off: no model loaded");
  expect(plan(auto, failed).label).toBe("Off: no model loaded");
  expect(plan(auto, { state: "loading", model: localModel() })).toMatchObject({ speculates: false, label: "Waiting for the model" });
});

test("select values and choices are the same thing", () => {
  for (const value of ["off", "auto", "2", "8"]) expect(toValue(fromValue(value))).toBe(value);
  expect(fromValue("nonsense")).toEqual(auto);
});

test("a sentence becomes a clause, an acronym stays one", () => {
  expect(clause("This model has no MTP head.")).toBe("this model has no MTP head");
  expect(clause("MTP head missing")).toBe("MTP head missing");
  expect(clause("A head is missing.")).toBe("a head is missing");
});
