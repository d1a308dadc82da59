// How a reply came, token by token, told to the real window and the built-in model.
import assert from "node:assert/strict";
import { LONG, ready, send } from "./chatting.mjs";
import { story, until } from "./window.mjs";

const ended = (window, status) =>
  until(`a reply ${status}`, async () => (await (await window.at("message-assistant")).getAttribute("data-status").catch(() => "")) === status);

/** What the app has stored of the only reply. */
const stored = (window) =>
  window.browser.execute(async () => {
    const { invoke } = window.__TAURI_INTERNALS__;
    const [chat] = await invoke("list_chats");
    const { messages } = await invoke("open_chat", { chatId: chat.id });
    const reply = messages.at(-1);
    return { reply, origin: await invoke("message_origin", { messageId: reply.id }) };
  });

/** The coloured text: its tokens, each with what it is. */
const tokens = (window) =>
  window.browser.execute(() =>
    [...document.querySelectorAll('[data-testid="origin-text"] > span')].map((span) => ({
      text: span.textContent,
      kind: span.dataset.kind,
      shade: Number(span.dataset.shade),
      instead: "instead" in span.dataset,
    })),
  );

/** The least contrast of the coloured text with what is behind it. */
const contrast = (window) =>
  window.browser.execute(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const over = (...colours) => {
      for (const colour of colours) {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
      }
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
      const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const page = getComputedStyle(document.body).backgroundColor;
    const ratios = [...document.querySelectorAll('[data-testid="origin-text"] > span, [data-testid="origin-legend"] i')].map((span) => {
      const { color, backgroundColor } = getComputedStyle(span);
      const [a, b] = [light(over(page, backgroundColor)), light(over(page, backgroundColor, color))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    });
    return Math.min(...ratios);
  });

async function showOrigin(window) {
  await window.click("message-menu");
  const item = await window.at("origin-toggle");
  await item.waitForDisplayed();
  await item.click();
  await (await window.at("origin-text")).waitForExist();
}

story("each token says how it came, while it is written, afterwards and after a restart", async (open) => {
  let window = await open();
  await ready(window);
  await (await window.at("speculation")).selectByAttribute("value", "4");
  await send(window, LONG);
  await window.click("origin-live");
  await until("coloured text while it is written", async () => (await tokens(window)).some((token) => token.kind === "draft"));
  window.screenshot("origin-live");
  await ended(window, "complete");

  const { reply, origin } = await stored(window);
  const all = await until("the whole text", async () => {
    const all = await tokens(window);
    return all.map(({ text }) => text).join("") === reply.content && all.every(({ kind }) => kind !== "unknown") && all;
  });
  const drafts = all.filter(({ kind }) => kind === "draft");
  const [depths, instead] = [new Set(drafts.map(({ shade }) => shade)), all.filter((token) => token.instead)];
  assert.ok(drafts.length > 5 && depths.size > 1 && instead.length > 2, JSON.stringify({ drafts: drafts.length, instead: instead.length }));
  assert.ok(drafts.length <= reply.run.accepted);
  assert.equal(origin.rounds.reduce((sum, round) => sum + round.accepted, 0), reply.run.accepted);
  assert.equal(origin.rounds.reduce((sum, round) => sum + round.drafted, 0), reply.run.drafted);
  const decodeMs = origin.pace.reduce((sum, bin) => sum + bin.ms, 0);
  assert.ok(Math.abs(decodeMs - reply.run.decodeMs) < 0.1 * origin.pace.length + 1, `${decodeMs} of ${reply.run.decodeMs} ms`);
  assert.ok((await contrast(window)) >= 4.5);

  // The pointer, then the keys: from one rejected draft to the next.
  const spans = await window.browser.$$('[data-testid="origin-text"] > span[data-instead]');
  await spans[0].moveTo();
  const said = /^The draft here was “.+”; the model chose “.+”\.$/s;
  assert.match(await window.text("origin-told"), said);
  window.screenshot("origin-hover");
  await window.browser.execute(() => document.querySelector('[data-testid="origin-text"]').parentElement.focus());
  await window.browser.keys("Home");
  await window.browser.keys("ArrowDown");
  const at = await window.browser.execute(() => [...document.activeElement.parentElement.children].indexOf(document.activeElement));
  assert.ok(all[at].instead);
  const first = await window.text("origin-told");
  assert.match(first, said);

  // Copied, it is the text alone.
  const copied = await window.browser.execute(() => {
    const text = document.querySelector('[data-testid="origin-text"]');
    getSelection().selectAllChildren(text);
    const data = new DataTransfer();
    text.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true }));
    return { types: [...data.types], text: data.getData("text/plain") };
  });
  assert.deepEqual(copied.types, ["text/plain"]);
  assert.equal(copied.text.trim(), reply.content.trim());

  await window.click("live-line");
  await (await window.at("pace")).waitForExist();
  assert.ok(Number(await (await window.at("pace")).getAttribute("data-points")) > 1);
  await window.browser.execute(() => document.querySelector('[data-testid="round-strip"]').focus());
  await window.browser.keys("Home");
  assert.match(await window.text("round-told"), /^Round 1: \d of 3 drafts accepted\n.*(accepted|rejected) “/s);
  window.screenshot("origin-inspector");

  await window.close();
  window = await open();
  await ready(window);
  await window.click("chat-item");
  await ended(window, "complete");
  await showOrigin(window);
  await until("the same colours", async () => JSON.stringify(await tokens(window)) === JSON.stringify(all));
  await window.browser.execute(() => (document.documentElement.dataset.theme = "dark"));
  assert.ok((await contrast(window)) >= 4.5);
  window.screenshot("origin-dark");
});
