// What every story that chats does with the window.
import { program, until } from "./window.mjs";

export const QUESTION = "What is the capital of France?";
export const LONG = "Tell me a long story about a dog and the sea.";

/** Waits until a model is loaded. From a home's first start on, the built-in model then says the same in every run. */
export async function ready(window) {
  await until("a loaded model", async () => (await (await window.at("model-line")).getAttribute("data-state")) === "ready");
  const { home } = window;
  if (home.program !== program || home.isRepeatable) return;
  home.isRepeatable = true;
  await makeRepeatable(window);
}

/** Greedy and seeded: of sampled replies one in some dozens is wrong, or goes round in circles for minutes. */
async function makeRepeatable(window) {
  await window.click("sampling");
  await (await window.at("temperature")).setValue("0");
  await (await window.at("seed")).setValue("7");
  await window.browser.keys("Escape");
  await until("a closed menu", async () => !(await (await window.at("temperature")).isExisting()));
}

/** Runs a command of the switcher by its words. */
export async function order(window, words) {
  await window.browser.keys(["Control", "k"]);
  await until("the field with the focus", async () => (await window.at("switcher-input")).isFocused().catch(() => false));
  await window.browser.keys([...words]);
  await window.browser.keys("Enter");
  await until("a closed switcher", async () => !(await (await window.at("switcher-input")).isExisting()));
}

/** Writes a message and sends it. */
export async function send(window, text) {
  const field = await window.at("composer-input");
  await field.waitForEnabled();
  await field.setValue(text);
  await window.click("send");
}
