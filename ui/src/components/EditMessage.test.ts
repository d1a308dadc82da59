// @vitest-environment jsdom
import { flushSync, mount, unmount } from "svelte";
import { expect, test } from "vitest";
import { message } from "../state/samples";
import { edit, view } from "../state/view.svelte";
import EditMessage from "./EditMessage.svelte";

const asked = message({ id: 10, role: "user", content: "Why?" });

/** The editor as it opens; what it says, and a way to leave it. */
function open() {
  const target = document.body.appendChild(document.createElement("div"));
  edit(asked.id);
  const component = mount(EditMessage, { target, props: { message: asked } });
  flushSync();
  const field = target.querySelector("textarea")!;
  return {
    field,
    write(text: string): void {
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
      flushSync();
    },
    press: (key: string) => field.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })),
    cancel: () => target.querySelector<HTMLElement>("[data-testid=edit-cancel]")!.click(),
    close(): void {
      void unmount(component);
      target.remove();
    },
  };
}

test("what was written is there again after a look elsewhere and after Escape, and gone after Cancel", () => {
  const first = open();
  expect(first.field.value).toBe("Why?");
  first.write("Why, and how?");
  first.close();

  const second = open();
  expect(second.field.value).toBe("Why, and how?");
  second.press("Escape");
  expect(view.current.editing).toBeNull();
  second.close();

  const third = open();
  expect(third.field.value).toBe("Why, and how?");
  third.cancel();
  expect(view.current.editing).toBeNull();
  third.close();

  const fourth = open();
  expect(fourth.field.value).toBe("Why?");
  fourth.close();
});
