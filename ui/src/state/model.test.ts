import { expect, test } from "vitest";
import { apply, failure, initial, isLoaded, nameOf, type ModelEvent, type ModelState } from "./model";
import { localModel, ready } from "./samples";

const all = (...events: ModelEvent[]): ModelState => events.reduce(apply, initial);
const error = { kind: "checkpoint", message: "A tensor is missing.", hint: "Download it again." };

test("a refused request keeps the model that is loaded", () => {
  const state = all({ type: "status", status: ready() }, { type: "requested", path: "/m/big" }, { type: "refused", path: "/m/big", error });
  expect(state.status.state).toBe("ready");
  expect(state.requested).toBeNull();
  expect(failure(state)).toEqual({ name: "big", error });
});

test("a new request clears the failure before", () => {
  const state = all({ type: "refused", path: "/m/big", error }, { type: "requested", path: "/m/big" });
  expect(failure(state)).toBeNull();
});

test("a failure that came as a status and as a refusal is told once", () => {
  const model = localModel({ id: "/m/big", path: "/m/big", name: "Big" });
  const state = all(
    { type: "listed", models: [model] },
    { type: "status", status: { state: "failed", model, error } },
    { type: "refused", path: "/m/big", error },
  );
  expect(failure(state)).toEqual({ name: "Big", error });
});

test("a model is known by id or path", () => {
  const state = all({ type: "listed", models: [localModel()] }, { type: "status", status: ready() });
  expect(nameOf(state, "builtin")).toBe("Tiny");
  expect(nameOf(state, "/models/tiny")).toBe("Tiny");
  expect(isLoaded(state, localModel())).toBe(true);
  expect(isLoaded(state, localModel({ id: "/m/big" }))).toBe(false);
});
