import { expect, test } from "vitest";
import type { ProvenanceNews, TurnEvent } from "../bindings";
import { whenSeen } from "./hidden";
import { roundText, run } from "./samples";

const delta = (answer: string, tokens: number | null = null, origin: ProvenanceNews | null = null): TurnEvent => ({
  type: "delta",
  answer,
  reasoning: "",
  thought: null,
  origin,
  run: tokens === null ? null : { ...run(), tokens },
});

class Page extends EventTarget {
  hidden = false;

  turn(hidden: boolean): void {
    this.hidden = hidden;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

test("text that comes while nobody looks is one event when somebody does", () => {
  const heard: TurnEvent[] = [];
  const page = new Page();
  const tell = whenSeen((event) => heard.push(event), page as never);
  tell(delta("a"));
  page.turn(true);
  tell(delta("b", 3));
  tell(delta("c"));
  expect(heard).toEqual([delta("a")]);
  page.turn(false);
  expect(heard).toEqual([delta("a"), delta("bc", 3)]);
  tell(delta("d"));
  expect(heard.at(-1)).toEqual(delta("d"));
});

test("how the text came is heard whole", () => {
  const heard: TurnEvent[] = [];
  const page = new Page();
  const tell = whenSeen((event) => heard.push(event), page as never);
  const [a, b, c] = [1, 2, 3].map((n) => roundText({ pieces: [n] }));
  page.turn(true);
  tell(delta("a", 1, { from: 4, rounds: [a!, b!], pace: [] }));
  tell(delta("b", 2, { from: 5, rounds: [c!], pace: [] }));
  page.turn(false);
  expect(heard).toEqual([delta("ab", 2, { from: 4, rounds: [a!, c!], pace: [] })]);
});

test("the end of a reply is heard in the dark, after its text", () => {
  const heard: TurnEvent[] = [];
  const page = new Page();
  const tell = whenSeen((event) => heard.push(event), page as never);
  page.turn(true);
  tell(delta("a"));
  tell({ type: "failed", error: { kind: "unexpected", message: "x", hint: null }, message: null });
  expect(heard.map((event) => event.type)).toEqual(["delta", "failed"]);
});
