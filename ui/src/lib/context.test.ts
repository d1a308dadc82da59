// @vitest-environment jsdom
import { beforeEach, expect, test } from "vitest";
import { hasMenu } from "./context";

beforeEach(() => {
  document.body.innerHTML = `<p id="text">Some <a href="https://example.com"><b id="in-link">link</b></a></p><p id="other">Other</p>
    <textarea id="area"></textarea><input id="field" /><input id="name" type="text" /><input id="box" type="checkbox" /><button id="button">Do</button>`;
  getSelection()!.removeAllRanges();
});

// Nothing is laid out here: what is selected lies from 0 to 100.
Range.prototype.getClientRects = () => [{ left: 0, right: 100, top: 0, bottom: 20 }] as unknown as DOMRectList;

const at = (id: string, x = 50): boolean => hasMenu({ target: document.getElementById(id), clientX: x, clientY: 10 }, getSelection());

test("fields have the web view's menu, and nothing else has", () => {
  expect(["area", "field", "name"].map((id) => at(id))).toEqual([true, true, true]);
  expect(["text", "in-link", "box", "button"].map((id) => at(id))).toEqual([false, false, false, false]);
  expect(hasMenu({ target: document, clientX: 50, clientY: 10 }, getSelection())).toBe(false);
});

test("selected text has it, but not a link in it, which the menu would follow", () => {
  getSelection()!.selectAllChildren(document.getElementById("text")!);
  expect([at("text"), at("in-link"), at("text", 150)]).toEqual([true, false, false]);
});
