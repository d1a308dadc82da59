import { expect, test } from "vitest";
import type { CatalogPair, CatalogView, LocalModel, Verdict } from "../bindings";
import { offerOf } from "./offer";

const need = (verdict: Verdict) => ({ verdict, bytes: 5e9, free: null, total: null, limit: null });
const pair = (id: string, patch: Partial<CatalogPair> = {}): CatalogPair => ({
  id, wanted: { name: id, parts: [] }, note: null, quantization: null, licence: null, downloadBytes: 5e9, verified: true,
  recommended: false, memory: need("fits"), disk: need("fits"), installed: null, measured: null, ...patch,
});
const view = (pairs: CatalogPair[], machine: Partial<CatalogView["machine"]> = {}): CatalogView => ({
  machine: { memoryTotal: 16e9, memoryFree: 9e9, diskFree: 1e11, cacheDir: "", offline: false, ...machine }, pairs,
});
const best = pair("best", { recommended: true });

test("the pair that suits the machine is offered, and no other", () => {
  expect(offerOf(view([pair("small"), best]))).toEqual({ kind: "get", pair: best });
  expect(offerOf(view([pair("small"), pair("large", { memory: need("tooLarge") })]))).toEqual({ kind: "none" });
  expect(offerOf(view([]))).toEqual({ kind: "none" });
  const beyond = pair("large", { memory: { ...need("tooLarge"), limit: 1e9 } });
  expect(offerOf(view([beyond]))).toEqual({ kind: "limited" });
});

test("what stands in the way is said", () => {
  expect(offerOf(view([best], { memoryTotal: null }))).toEqual({ kind: "unknown" });
  expect(offerOf(view([best], { offline: true })).kind).toBe("offline");
  expect(offerOf(view([{ ...best, disk: need("tooLarge") }])).kind).toBe("full");
});

test("what is here already is not fetched again", () => {
  const here = { ...best, installed: { path: "/m" } as LocalModel };
  expect(offerOf(view([here], { offline: true })).kind).toBe("here");
});
