// What the page itself must withstand: the death of its process, being hidden, other scripts than Latin, input methods.
import assert from "node:assert/strict";
import { ready } from "./chatting.mjs";
import { press, stored } from "./outside.mjs";
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

const ESCAPE = 0xff1b;

// WebKit's driver ends with the page, so that what comes after is seen from outside.
story("a killed page comes back to its chat and the running reply", async (open, home) => {
  home.program = PACED;
  const window = await open();
  await ready(window);
  await say(window, "pace 60000 150");
  await until("some text", async () => (await replies(window)).find(({ text }) => text.length > 200));
  const killed = window.webProcess();
  const { length } = await until("a saved part", () => stored(home)[0]);
  process.kill(killed, "SIGKILL");
  await until("another page", () => ![undefined, killed].includes(window.webProcess()));
  await until("more of the reply", () => stored(home)[0].length > length + 400);
  assert.equal(stored(home)[0].status, "streaming");
  window.screenshot("after-killed-page");
  // Escape stops what the page knows to be running in the chat that it shows.
  await until("a stopped reply", () => {
    press(window, ESCAPE);
    return stored(home)[0].status === "stopped";
  });
  assert.equal(window.processes().length, 1);
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
