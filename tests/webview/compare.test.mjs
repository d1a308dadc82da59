// The same reply with speculation off and on, and a benchmark, told to the real window and the built-in model.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { QUESTION, ready, send } from "./chatting.mjs";
import { program, story, until } from "./window.mjs";

async function ask(window, text) {
  await send(window, text);
  await until("a whole reply", async () => (await (await window.at("message-assistant")).getAttribute("data-status")) === "complete");
}

const verdict = (window) =>
  until("a verdict", async () => {
    const line = await window.at("verdict");
    return (await line.isExisting()) && line.getText();
  });

story("a click on a reply's badge proves that speculation left it alone", async (open) => {
  let window = await open();
  await ready(window);
  await ask(window, QUESTION);
  const badge = await window.at("exactness");
  assert.equal(await badge.getAttribute("data-exactness"), "exact");
  await badge.click();
  await (await window.at("compare-sheet")).waitForExist();
  // It runs at once.
  const line = await verdict(window);
  assert.match(line, /^Identical, \d+ tokens\./);
  const texts = [await window.text("compare-text-off"), await window.text("compare-text-on")];
  assert.match(texts[0], /France is/);
  assert.equal(texts[1], texts[0]);
  assert.match(await window.text("compare-figures"), /Tokens per second/);
  window.screenshot("compare");
  await until("a line of history", async () => (await (await window.all("history-item")).length) === 1);
  await window.close();

  // It is still there after a restart, and opens as it was.
  window = await open();
  await ready(window);
  await window.browser.keys(["Control", "d"]);
  await until("a line of history", async () => (await (await window.all("history-item")).length) === 1);
  await window.click("history-item");
  assert.equal(await verdict(window), line);
});

story("a comparison is stopped, and the chat goes on", async (open) => {
  const window = await open();
  await ready(window);
  await window.browser.keys(["Control", "d"]);
  await (await window.at("compare-prompt")).setValue("Tell me a long story about a dog and the sea.");
  await (await window.at("repetitions")).selectByAttribute("value", "20");
  await window.click("compare-start");
  await until("some text", async () => (await window.text("compare-text-off")).length > 20);
  await window.click("compare-stop");
  await verdict(window);
  await window.browser.keys("Escape");
  await ask(window, QUESTION);
  const reply = await window.at("message-assistant");
  assert.match(await (await reply.$('[data-testid="message-text"]')).getText(), /France is/);
});

/** Measures the built-in pair from the command line, in the story's home. */
function benchHere(home) {
  const args = ["bench", "--prompts", "predictable", "--block-sizes", "3", "--repetitions", "3", "--max-tokens", "24"];
  const ran = spawnSync(program, args, { env: { ...process.env, XDG_DATA_HOME: join(home.path, "data") }, encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
}

story("a benchmark runs, is stopped, tells what it measured, and a whole one is told where the pair is", async (open, home) => {
  const window = await open();
  await ready(window);
  await window.click("open-bench");
  await (await window.at("bench-repetitions")).selectByAttribute("value", "1");
  await (await window.at("bench-tokens")).selectByAttribute("value", "32");
  await window.click("bench-start");
  await until("progress", async () => Number(await (await window.at("bench-progress")).getAttribute("aria-valuenow")) >= 20);
  await window.click("bench-stop");
  const line = await until("a verdict", async () => {
    const told = await window.at("bench-verdict");
    return (await told.isExisting()) && told.getText();
  });
  assert.match(line, /No winner/);
  assert.match(await window.text("bench-exactness"), /identical/);
  await (await window.at("chart-speedup")).waitForExist();
  window.screenshot("benchmark");
  await window.browser.keys("Escape");

  // What was stopped is no verdict; what was measured whole is.
  await window.click("open-models");
  await (await window.at("model-card")).waitForExist();
  assert.equal((await window.all("worth")).length, 0);
  await window.browser.keys("Escape");
  benchHere(home);
  await window.click("open-models");
  assert.match(await window.text("worth"), /^On this computer: /);
  assert.equal(await (await window.at("worth")).getAttribute("data-stale"), "false");
  assert.match(await window.text("worth-detail"), /^Benchmark of .*, 1 prompt, 3 runs of each · .*MLX /);
  window.screenshot("verdict");
});
