import { expect, test } from "vitest";
import { apply, asRepository, downloadOf, headAlone, initial, isPlanning, isRunning, newlySaid, overall, part, patterns, remedy, share, shortName, type DownloadsEvent } from "./downloads";
import { download } from "./samples";

const all = (...events: DownloadsEvent[]) => events.reduce(apply, initial);
const wanted = (repo: string) => ({ name: repo, parts: [part(repo)] });
const error = { kind: "network", message: "No connection.", hint: null };
const plan = (of: ReturnType<typeof wanted>) => ({
  id: "p", wanted: of, parts: [], bytes: 1, there: 0,
  memory: { verdict: "fits" as const, bytes: null, free: null, total: null, limit: null },
  disk: { verdict: "fits" as const, bytes: null, free: null, total: null, limit: null },
});

test("an answer about a plan that was left is dropped", () => {
  const [a, b] = [wanted("a/a"), wanted("b/b")];
  const state = all({ type: "planning", wanted: a }, { type: "planning", wanted: b }, { type: "planned", wanted: a, plan: plan(a) });
  expect(state.draft).toEqual({ wanted: b, plan: null, error: null });
  expect(apply(state, { type: "planFailed", wanted: a, error }).draft?.error).toBeNull();
  expect(apply(state, { type: "planned", wanted: b, plan: plan(b) }).draft?.plan?.id).toBe("p");
});

test("a plan that was given up is no failure of the one that took its place", () => {
  const a = wanted("a/a");
  const state = all({ type: "planning", wanted: a }, { type: "planning", wanted: a });
  const cancelled = { ...error, kind: "cancelled" };
  expect(apply(state, { type: "planFailed", wanted: a, error: cancelled })).toBe(state);
  expect(isPlanning(state)).toBe(true);
  const failed = apply(state, { type: "planFailed", wanted: a, error });
  expect(failed.draft?.error).toBe(error);
  expect([isPlanning(failed), isPlanning(apply(state, { type: "draftClosed" })), isPlanning(initial)]).toEqual([false, false, false]);
});

test("a head alone is told by what it stands for, beside a model it is not", () => {
  const head = { repo: "a/a", commit: "c", headOnly: true, inPlaceOf: 55e9, files: [] };
  const whole = { ...head, repo: "b/b", headOnly: false, inPlaceOf: null };
  const of = (parts: (typeof head | typeof whole)[]) => headAlone({ ...plan(wanted("a/a")), bytes: 0.85e9, parts });
  expect(of([head])).toEqual({ bytes: 0.85e9, of: 55e9 });
  expect(of([whole, head])).toBeNull();
  expect(of([])).toBeNull();
});

test("an answer to an older search is dropped", () => {
  const state = all({ type: "searching", query: "qwen" }, { type: "searching", query: "inkling" }, { type: "found", query: "qwen", found: [] });
  expect(state.search?.found).toBeNull();
  expect(apply(state, { type: "found", query: "inkling", found: [] }).search?.found).toEqual([]);
});

test("only what goes on by itself is running", () => {
  expect(isRunning(download({ state: { phase: "waiting", reason: "network", seconds: null } }))).toBe(true);
  for (const phase of ["paused", "interrupted"] as const) expect(isRunning(download({ state: { phase } }))).toBe(false);
  expect(isRunning(download({ state: { phase: "failed", error } }))).toBe(false);
});

test("shares are known only with the size", () => {
  expect(share(download({ bytes: 200, done: 50 }))).toBe(0.25);
  expect(share(download({ bytes: null }))).toBeNull();
  expect(share(download({ bytes: 10, done: 11 }))).toBe(1);
  const paused = download({ id: "2", state: { phase: "paused" }, bytes: 1000, done: 0 });
  expect(overall([download({ bytes: 200, done: 50 }), paused])).toBe(0.25);
  expect(overall([paused])).toBeNull();
});

test("a catalogue's pair finds its download, pinned or not, until it is over", () => {
  const pinned = download({ wanted: { name: "x", parts: [part("a/a", { revision: "abc" })] } });
  expect(downloadOf([pinned], wanted("a/a"))).toBe(pinned);
  expect(downloadOf([pinned], wanted("a/b"))).toBeUndefined();
  expect(downloadOf([{ ...pinned, state: { phase: "done", model: null, fetched: "files" } }], wanted("a/a"))).toBeUndefined();
});

test("a screen reader hears of a change of phase once, and not of progress", () => {
  const at = (done: number) => [download({ done })];
  expect(newlySaid(at(1), at(2))).toEqual([]);
  const failed = [download({ state: { phase: "failed", error } })];
  expect(newlySaid(at(2), failed)).toHaveLength(1);
  expect(newlySaid(failed, failed)).toEqual([]);
});

test("a repository is told from a search", () => {
  expect(asRepository(" mlx-community/Qwen3.8-27B-4bit ")).toBe("mlx-community/Qwen3.8-27B-4bit");
  expect(asRepository("https://huggingface.co/a/b/tree/main")).toBe("https://huggingface.co/a/b/tree/main");
  expect(asRepository("hf.co/a/b")).toBe("hf.co/a/b");
  expect(asRepository("qwen 27b")).toBeNull();
  expect(asRepository("qwen")).toBeNull();
  expect(shortName("https://huggingface.co/a/b/tree/main")).toBe("b");
  expect(shortName("a/b")).toBe("b");
});

test("patterns are separated by lines or commas", () => {
  expect(patterns("config.json, *.safetensors\n\n mtp/* ")).toEqual(["config.json", "*.safetensors", "mtp/*"]);
  expect(patterns("  ")).toEqual([]);
});

test("a gated repository leads to its page, a refused token to the settings", () => {
  const gated = { kind: "gated", message: "", hint: "accept the licence at https://huggingface.co/a/b, then try again" };
  expect(remedy(gated)).toEqual({ kind: "page", url: "https://huggingface.co/a/b" });
  expect(remedy({ ...gated, kind: "unauthorized" })).toEqual({ kind: "token" });
  expect(remedy({ ...gated, kind: "disk_full" })).toBeNull();
});
