// What a person does with Slipstream, told to the real window and the built-in model.
import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { LONG, QUESTION, ready, send } from "./chatting.mjs";
import { story, until } from "./window.mjs";

const builtin = resolve(import.meta.dirname, "../../assets/builtin");

/** The last reply: its status, its text and its line of figures. */
async function lastReply(window) {
  const replies = await window.all("message-assistant");
  const last = await replies[(await replies.length) - 1];
  if (!last) return undefined;
  const part = async (id) => {
    const element = await last.$(`[data-testid="${id}"]`);
    return (await element.isExisting()) ? element.getText() : "";
  };
  return {
    status: await last.getAttribute("data-status"),
    text: await part("message-text"),
    figures: (await part("live-line")).replaceAll(/\s+/g, " "),
    note: await part("state-note"),
  };
}

/** Waits until the last of `count` replies has this status. */
const reply = (window, status, count) =>
  until(`reply ${count} ${status}`, async () => {
    if ((await (await window.all("message-assistant")).length) < count) return undefined;
    // The list may be drawn anew between two looks at it.
    const last = await lastReply(window).catch(() => undefined);
    return last?.status === status && last;
  });

/** Sends a message as the only one of a new chat; gives the whole reply. */
async function askAnew(window, text) {
  await window.click("new-chat");
  await until("an empty chat", async () => (await (await window.all("message-assistant")).length) === 0);
  await send(window, text);
  return reply(window, "complete", 1);
}

const choose = async (window, value) => (await window.at("speculation")).selectByAttribute("value", value);

const titles = async (window) => (await window.all("chat-item")).map((item) => item.getText());

story("the first start answers, and its figures move", async (open) => {
  const window = await open();
  await (await window.at("welcome")).waitForExist();
  await ready(window);
  window.screenshot("first-start");
  await send(window, LONG);
  assert.ok((await window.text("message-user")).includes(LONG));
  const seen = new Set();
  const done = await until("a streamed reply", async () => {
    const now = await lastReply(window).catch(() => undefined);
    if (now?.status === "streaming" && now.figures) {
      if (seen.size === 2) window.screenshot("streaming");
      seen.add(`${now.text.length} ${now.figures}`);
    }
    return now?.status === "complete" && now;
  });
  assert.ok(seen.size >= 3, `text and figures were seen to change only ${seen.size} times`);
  assert.ok(done.text.length > 100, done.text);
  // Whether drafts pay is the machine's affair.
  assert.match(done.figures, /[\d.]+ tok\/s .*([\d.]+ tok\/round .*\d+ % accepted|parked)/);
  window.screenshot("answered");
});

story("whoever does not want to wait ends the thinking, and the answer comes", async (open) => {
  const window = await open();
  await ready(window);
  await window.click("sampling");
  // So hot that it would think on for long.
  for (const [field, value] of [["temperature", "5"], ["top-k", "0"], ["top-p", "1"], ["min-p", "0"], ["max-tokens", "4000"]])
    await (await window.at(field)).setValue(value);
  await (await window.at("thinking-choice")).selectByAttribute("value", "on");
  assert.equal(await (await window.at("no-thinking")).isExisting(), false);
  await window.browser.keys("Escape");
  await send(window, LONG);
  const button = await window.at("answer-now");
  await button.waitForExist();
  assert.match(await window.text("thinking-toggle"), /^Thinking…/);
  assert.equal(await (await window.at("thinking-text")).isExisting(), false, "it is folded");
  window.screenshot("thinking");
  // By keyboard: it is behind the block's own button.
  await window.browser.execute(() => document.querySelector('[data-testid="thinking-toggle"]').focus());
  await window.browser.keys("Tab");
  await window.browser.keys("Enter");
  const line = await until("the end of the thinking", async () => {
    const text = await window.text("thinking-toggle").catch(() => "");
    return /^Thought for/.test(text) && text;
  });
  assert.match(line, /^Thought for .*, \d+ tokens?, until you asked for the answer$/);
  assert.equal(await (await window.at("answer-now")).isExisting(), false);
  await until("an answer", async () => (await window.text("message-text").catch(() => "")).trim() !== "");
  await window.click("stop");
  await reply(window, "stopped", 1);
  assert.equal(await window.text("thinking-toggle"), line, "as it was stored");
  window.screenshot("thought");
});

story("switching speculation off changes the speed, not the text", async (open) => {
  const window = await open();
  await ready(window);
  await choose(window, "4");
  const fast = await askAnew(window, LONG);
  assert.match(fast.figures, /[\d.]+ tok\/round .*\d+ % accepted/);
  await window.click("live-line");
  assert.equal(await window.text("inspector-state"), "On: 3 drafts a round, as asked.");
  assert.match(await window.text("inspector-exactness"), /^Exact: /);
  assert.match(await window.text("inspector-costs"), /8 tokens/);
  window.screenshot("inspector");
  await choose(window, "auto");
  const auto = await askAnew(window, LONG);
  assert.match(await window.text("inspector-state"), /^(On|Parked|Probing): /);
  assert.equal(auto.text, fast.text);
  await choose(window, "off");
  const plain = await askAnew(window, LONG);
  assert.match(plain.figures, /speculation off/);
  assert.equal(plain.text, fast.text);
  window.screenshot("speculation-off");
});

story("a reply stopped half-way is kept, and the chat goes on", async (open) => {
  const window = await open();
  await ready(window);
  await send(window, LONG);
  await until("some text", async () => (await lastReply(window).catch(() => undefined))?.text.length > 20);
  await window.click("stop");
  const stopped = await reply(window, "stopped", 1);
  assert.ok(stopped.text.length > 20);
  assert.match(stopped.note, /Stopped by you/);
  await send(window, QUESTION);
  const next = await reply(window, "complete", 2);
  assert.match(next.text, /France is/);
  window.screenshot("stopped");
});

story("chats outlive a restart, and a power cut in mid-reply", async (open) => {
  let window = await open();
  await ready(window);
  const { text } = await askAnew(window, QUESTION);
  await window.close();

  window = await open();
  await ready(window);
  await (await window.at("chat-item")).waitForExist();
  await (await (await window.at("chat-item")).$("[data-chat]")).click();
  assert.equal((await reply(window, "complete", 1)).text, text);

  await send(window, LONG);
  await until("some text", async () => (await (await window.all("message-assistant")).length) === 2 && (await lastReply(window)).text.length > 20);
  await window.kill();

  window = await open();
  await ready(window);
  await (await (await window.at("chat-item")).$("[data-chat]")).click();
  const cut = await reply(window, "interrupted", 2);
  assert.match(cut.note, /closed while this was written/);
  await send(window, QUESTION);
  await reply(window, "complete", 3);
  window.screenshot("after-power-cut");
});

story("a broken model says what is wrong and what to do, and the chat goes on", async (open, home) => {
  const broken = join(home.path, "broken");
  cpSync(join(builtin, "target"), broken, { recursive: true });
  writeFileSync(join(broken, "config.json"), "{ not json");
  const window = await open();
  await ready(window);
  await window.click("open-models");
  await (await window.at("model-path-input")).setValue(broken);
  await window.click("model-load");
  const hint = await window.at("error-hint");
  await hint.waitForExist();
  assert.match(await window.text("error-message"), /config\.json/);
  assert.ok((await hint.getText()).length > 10);
  window.screenshot("broken-model");

  await window.click("model-card-load");
  await ready(window);
  await window.browser.keys("Escape");
  assert.match((await askAnew(window, QUESTION)).text, /France is/);
});

/** Picks from the menu of a chat. */
async function pick(window, item, id) {
  await item.moveTo();
  await (await item.$('[data-testid="chat-menu"]')).click();
  await window.click(id);
}

story("a chat is renamed and deleted", async (open) => {
  const window = await open();
  await ready(window);
  await askAnew(window, QUESTION);
  await askAnew(window, "What is 12 + 30?");
  assert.equal((await titles(window)).length, 2);

  await pick(window, await window.at("chat-item"), "chat-rename");
  await (await window.at("chat-title-input")).setValue("Sums");
  await window.browser.keys("Enter");
  await until("the new title", async () => (await titles(window)).includes("Sums"));
  assert.equal(await window.text("chat-title"), "Sums");

  await pick(window, await window.at("chat-item"), "chat-delete");
  window.screenshot("delete-chat");
  await until("one chat", async () => (await titles(window)).length === 1);
  assert.ok(!(await titles(window)).includes("Sums"));
});
