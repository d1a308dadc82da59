//! The focus, where what had it goes away with a click on it.

import { tick } from "svelte";

/** Where one goes on: in the open sheet, else where one writes. */
export const focusHome = (): void =>
  (document.querySelector<HTMLElement>("dialog[open]") ?? document.querySelector<HTMLElement>("[data-composer]"))?.focus();

/** Once the page is drawn, the first of these that is there and can be used gets the focus; without one, one goes on elsewhere. */
export async function focusOn(...selectors: string[]): Promise<void> {
  await tick();
  const found = selectors.map((selector) => document.querySelector<HTMLElement>(`${selector}:not(:disabled)`)).find(Boolean);
  if (found) found.focus();
  else focusHome();
}

export const byId = (testid: string): string => `[data-testid="${testid}"]`;

/** A control of a message. */
export const controlOf = (messageId: number, testid: string): string => `article[data-id="${messageId}"] ${byId(testid)}`;
