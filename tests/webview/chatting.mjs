// What every story that chats does with the window.
import { until } from "./window.mjs";

export const QUESTION = "What is the capital of France?";
export const LONG = "Tell me a long story about a dog and the sea.";

/** Waits until a model is loaded. */
export const ready = (window) =>
  until("a loaded model", async () => (await (await window.at("model-line")).getAttribute("data-state")) === "ready");

/** Writes a message and sends it. */
export async function send(window, text) {
  const field = await window.at("composer-input");
  await field.waitForEnabled();
  await field.setValue(text);
  await window.click("send");
}
