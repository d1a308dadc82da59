// @vitest-environment jsdom
import { beforeEach, expect, test } from "vitest";
import { byId, controlOf, focusOn } from "./focus";

beforeEach(() => {
  document.body.innerHTML = `<textarea data-composer id="composer"></textarea><li data-id="5"><button data-testid="next" id="list"></button></li>
    <article data-id="5"><button data-testid="before" disabled></button><button data-testid="next" id="next"></button></article>`;
});

const focused = (): string | undefined => document.activeElement?.id;

test("the first control that is there and can be used", async () => {
  await focusOn(controlOf(4, "next"), controlOf(5, "before"), controlOf(5, "next"));
  expect(focused()).toBe("next");
});

test("else where one writes, and in an open sheet the sheet", async () => {
  await focusOn(byId("gone"));
  expect(focused()).toBe("composer");
  document.body.insertAdjacentHTML("beforeend", '<dialog open tabindex="-1" id="sheet"></dialog>');
  await focusOn();
  expect(focused()).toBe("sheet");
});
