// What the page itself must withstand: the death of its process, being hidden, other scripts than Latin, input methods.
import assert from "node:assert/strict";
import { ready } from "./chatting.mjs";
import { PACED, story, until } from "./window.mjs";

/** Writes and sends by the page's own events: some scripts have no keys. */
const say = ({ browser }, text) =>
  browser.execute((text) => {
    const field = document.querySelector('[data-testid="composer-input"]');
    field.value = text;
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    requestAnimationFrame(() => document.querySelector('[data-testid="send"]').click());
  }, text);

/** The replies as they are shown. */
const replies = ({ browser }) =>
  browser.execute(() =>
    [...document.querySelectorAll('[data-testid="message-assistant"]')].map((reply) => ({
      status: reply.dataset.status,
      text: reply.querySelector('[data-testid="message-text"]').textContent.trim(),
    })),
  );

story("a killed page comes back to its chat and the running reply", async (open, home) => {
  home.program = PACED;
  const window = await open();
  await ready(window);
  await say(window, "pace 4000 150");
  const before = await until("some text", async () => (await replies(window)).find(({ text }) => text.length > 200));
  process.kill(window.webProcess(), "SIGKILL");
  const after = await until("the chat", async () => (await replies(window).catch(() => [])).find(({ text }) => text.length > 200));
  assert.equal(after.status, "streaming");
  assert.ok(after.text.startsWith(before.text.slice(0, 100)));
  await until("more of the reply", async () => (await replies(window))[0].text.length > after.text.length + 200);
  assert.equal(await window.browser.execute(() => document.querySelector('[data-testid="chat-item"] [aria-current]') !== null), true);
  window.screenshot("after-killed-page");
  await window.click("stop");
  await until("its end", async () => (await replies(window))[0].status === "stopped");
  await say(window, "echo and on it goes");
  await until("the next reply", async () => (await replies(window))[1]?.text === "and on it goes");
});

/** Families and flags joined from several characters, accents put on letters, scripts from the right and without spaces. */
const SCRIPTS = "👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 👍🏽 · e\u0301 n\u0303 क्षि · שלום عربي · 日本語と漢字 한국어 · 𝔘 🦊";

story("text comes through whole, whatever its script", async (open, home) => {
  home.program = PACED;
  const window = await open();
  await ready(window);
  const wrong = [];
  await say(window, `echo ${SCRIPTS}`);
  const done = await until("the reply", async () => {
    const [reply] = await replies(window);
    // What is shown at any moment is a beginning of it: nothing is a half of a character.
    if (reply && !SCRIPTS.startsWith(reply.text)) wrong.push(reply.text);
    return reply?.status === "complete" && reply;
  });
  assert.deepEqual(wrong, []);
  assert.equal(done.text, SCRIPTS);
  window.screenshot("scripts");

  // Enter that ends a composition chooses a word; it sends nothing.
  const value = await window.browser.execute(() => {
    const field = document.querySelector('[data-testid="composer-input"]');
    const tell = (event) => field.dispatchEvent(event);
    const enter = (more) => new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...more });
    tell(new CompositionEvent("compositionstart", { bubbles: true }));
    field.value = "にほん";
    tell(new CompositionEvent("compositionupdate", { data: "にほん", bubbles: true }));
    tell(new InputEvent("input", { bubbles: true, isComposing: true }));
    tell(enter({ isComposing: true }));
    // WebKit ends the composition first, and the key that ended it comes after, with the code that says so.
    field.value = "日本";
    tell(new CompositionEvent("compositionend", { data: "日本", bubbles: true }));
    tell(new InputEvent("input", { bubbles: true }));
    tell(enter({ keyCode: 229 }));
    return field.value;
  });
  assert.equal(value, "日本");
  assert.equal((await replies(window)).length, 1);
  await (await window.at("composer-input")).click();
  await window.browser.keys("Enter");
  await until("an answer after a plain Enter", async () => (await replies(window)).length === 2);
});
