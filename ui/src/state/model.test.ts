import { expect, test } from "vitest";
import { apply, draftNote, failure, initial, isLoaded, nameOf, shelves, type ModelEvent, type ModelState } from "./model";
import { localModel, ready, shelf, shelved } from "./samples";

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
    { type: "shelved", shelf: shelf([model]) },
    { type: "status", status: { state: "failed", model, error } },
    { type: "refused", path: "/m/big", error },
  );
  expect(failure(state)).toEqual({ name: "Big", error });
});

test("a model is known by id or path", () => {
  const state = all({ type: "shelved", shelf: shelf([localModel()]) }, { type: "status", status: ready() });
  expect(nameOf(state, "builtin")).toBe("Tiny");
  expect(nameOf(state, "/models/tiny")).toBe("Tiny");
  expect(isLoaded(state, localModel())).toBe(true);
  expect(isLoaded(state, localModel({ id: "/m/big" }))).toBe(false);
});

test("heads are never offered as chat models, and what is incomplete is neither", () => {
  const models = [
    shelved({ role: "both" }),
    shelved({ role: "target" }),
    shelved({ role: "drafter" }),
    shelved({ role: "drafter", health: "incomplete" }),
    shelved({ role: "target", health: "incomplete" }),
    shelved({ role: "unknown", health: "refused" }),
  ];
  const { chat, heads, incomplete, refused } = shelves(models);
  expect(chat.map((m) => m.role)).toEqual(["both", "target"]);
  expect(heads).toHaveLength(1);
  expect(incomplete).toHaveLength(2);
  expect(refused).toHaveLength(1);
});

test("a head in a folder of its own is told apart from one inside", () => {
  expect(draftNote(shelved({ role: "both" }))).toBe("own");
  expect(draftNote(shelved({ role: "target" }))).toBe("none");
  expect(draftNote(shelved({ role: "target", model: localModel({ drafterPath: "/m/head" }) }))).toBe("separate");
});

test("a wish that failed is named as what it was, until the next list", () => {
  const failed = all({ type: "listFailed", wish: "addFolder", error });
  expect(failed.listError).toEqual({ wish: "addFolder", error });
  const models = { shelf: shelf([]), catalog: null, catalogError: error };
  expect(apply(failed, { type: "listed", models })).toMatchObject({ ...models, listError: null });
});
