// What a person sets, and what the first start says, told to the real window.
import assert from "node:assert/strict";
import { QUESTION, ready, send } from "./chatting.mjs";
import { story, until } from "./window.mjs";

const attribute = async (window, id, name) => (await window.at(id)).getAttribute(name);
const shown = async (window, id) => (await window.at(id)).isExisting();
const theme = (window) => window.browser.execute(() => document.documentElement.dataset.theme);
const saved = (window) =>
  until("settings that are saved", async () => /Saved/.test(await (await (await window.at("settings")).$("header")).getText()));

async function find(window, words) {
  const field = await window.at("settings-search");
  await field.setValue(words);
  return field;
}

story("settings are found by words, changed, kept and set back", async (open) => {
  let window = await open();
  await ready(window);
  await window.browser.keys(["Control", ","]);
  const field = await window.at("settings-search");
  await field.waitForExist();
  assert.ok(await field.isFocused(), "a search begins at once");
  window.screenshot("settings");

  // By what it is about, not by what it is called.
  await window.browser.keys([..."ram gigabytes"]);
  await until("one setting", async () => (await shown(window, "row-memory")) && !(await shown(window, "section-appearance")));
  window.screenshot("settings-found");
  await (await window.at("setting-memory")).setValue("0.5");
  await saved(window);
  await find(window, "zebra");
  assert.match(await window.text("settings-none"), /“zebra”/);
  // The first Escape takes the words back, and the page is still there.
  await window.browser.keys("Escape");
  await until("all settings", () => shown(window, "section-appearance"));
  assert.equal(await (await window.at("settings-search")).getValue(), "");

  // The radio itself is out of sight: its words are what is clicked.
  await (await window.browser.$('label:has([data-testid="theme-dark"])')).click();
  assert.equal(await theme(window), "dark");
  await (await window.at("setting-kv")).selectByAttribute("value", "eight");
  await until("what the loaded model does", () => shown(window, "kv-now"));
  await saved(window);
  await window.click("kv-reload");
  await until("a model loaded anew", async () => !(await shown(window, "kv-now")));
  assert.match(await window.text("data-folder"), new RegExp(window.home.path));
  await window.click("settings-to-speculation");
  window.screenshot("settings-dark");
  await window.browser.keys("Escape");
  await until("a closed page", async () => !(await shown(window, "settings")));

  // Kept, and in use at the next start: the limit in what is offered, too.
  await window.close();
  window = await open();
  await ready(window);
  assert.equal(await theme(window), "dark");
  assert.equal(await attribute(window, "offer", "data-kind"), "limited");
  await send(window, QUESTION);
  await until("a reply", async () => (await attribute(window, "message-assistant", "data-status")) === "complete");

  await window.browser.keys(["Control", ","]);
  await (await window.at("settings-search")).waitForExist();
  assert.equal(await (await window.at("setting-memory")).getValue(), "0.5");
  assert.ok(!(await shown(window, "kv-now")), "loaded as it was set");
  await find(window, "reset");
  await window.click("reset");
  window.screenshot("settings-reset");
  await window.click("reset-confirm");
  await saved(window);
  assert.notEqual(await theme(window), "dark");
  await window.click("reset-undo");
  await saved(window);
  assert.equal(await theme(window), "dark");
  await window.click("reset");
  await window.click("reset-confirm");
  await saved(window);
  await find(window, "memory limit");
  assert.equal(await (await window.at("setting-memory")).getValue(), "");
  assert.equal(await (await window.all("message-assistant")).length, 1, "no chat was touched");
});

story("the first start explains itself once, offers what fits, and stands in nobody's way", async (open) => {
  let window = await open();
  await (await window.at("first-start")).waitForExist();
  assert.equal(await (await window.all("intro-line")).length, 3);
  await (await window.at("offer")).waitForExist();
  assert.match(await attribute(window, "offer", "data-kind"), /^(get|none|unknown|full)$/);
  window.screenshot("first-start-offer");
  // Nothing to be closed first: a message is answered.
  await ready(window);
  await send(window, QUESTION);
  await until("an answer", async () => /capital of France is/.test(await window.text("message-assistant").catch(() => "")));
  await window.click("new-chat");
  await window.click("welcome-close");
  await until("a closed card", async () => !(await shown(window, "first-start")));
  // The program is ended from outside, in the middle of whatever it does: what is being written down has its moment.
  await new Promise((done) => setTimeout(done, 1000));

  await window.close();
  window = await open();
  await (await window.at("welcome")).waitForExist();
  await ready(window);
  assert.ok(!(await shown(window, "first-start")), "shown once");
  await window.browser.keys(["Control", "/"]);
  await window.click("open-intro");
  await (await window.at("intro")).waitForExist();
  assert.equal(await (await window.all("intro-line")).length, 3);
  window.screenshot("intro");
  if ((await attribute(window, "offer", "data-kind")) !== "get") return;
  await window.click("offer-get");
  await (await window.at("model-sheet")).waitForExist();
  window.screenshot("first-start-plan");
});
