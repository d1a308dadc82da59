// What a person sets, and what the first start says, told to the real window.
import assert from "node:assert/strict";
import { order, QUESTION, ready, send } from "./chatting.mjs";
import { begin, chat } from "./history.mjs";
import { PACED, story, until } from "./window.mjs";

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

story("what comes of something done in a sheet is told in it, where it can be reached", async (open, home) => {
  home.program = PACED;
  begin(home, [chat("Names for a boat", 1)]);
  const window = await open();
  const { browser } = window;
  await ready(window);
  const inSheet = (id) => browser.execute((id) => document.querySelector(`[data-testid="${id}"]`)?.closest("dialog[open]") != null, id);
  const chats = async () => (await window.all("chat-item")).length;
  await browser.execute(() => document.querySelector("[data-chat]").click());
  await (await window.at("message-assistant")).waitForExist();

  // A sheet that opens over what was said takes it along: its button is clicked there.
  await order(window, "delete this");
  await until("no chat", async () => (await chats()) === 0);
  await browser.keys(["Control", ","]);
  await (await window.at("settings")).waitForExist();
  await until("the toast in the sheet", () => inSheet("toast"));
  window.screenshot("settings-toast");
  await window.click("undo");
  await until("the chat", async () => (await chats()) === 1);
  assert.equal(await window.text("chat-title"), "Names for a boat", "it was open, and is again");
  await browser.keys("Escape");
  await until("a closed page", async () => !(await shown(window, "settings")));

  // What fails is said in the sheet, and nowhere else.
  await order(window, "delete this");
  await until("no chat", async () => (await chats()) === 0);
  await order(window, "deleted");
  const deleted = await window.at("deleted-chat");
  await deleted.waitForExist();
  const id = Number(await deleted.getAttribute("data-id"));
  await browser.execute(async (chatId) => window.__TAURI_INTERNALS__.invoke("purge_chats", { chatId }), id);
  await window.click("deleted-restore");
  await until("the failure in the sheet", () => inSheet("error-message"));
  assert.equal(await (await window.all("error-message")).length, 1);
  window.screenshot("sheet-notice");
  await window.click("dismiss");
  await until("no failure", async () => !(await shown(window, "error-message")));
  assert.ok(await shown(window, "deleted-sheet"));
});
