// Every main screen in light and dark: no accessibility rule is broken (axe-core), nothing reaches out of the window, and
// pictures of it at three sizes are left in artifacts/.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { order, ready, send } from "./chatting.mjs";
import { begin, chat } from "./history.mjs";
import { PACED, story, until } from "./window.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const THEMES = ["light", "dark"];
const SIZES = [[1600, 1000], [720, 560], [1180, 800]];
const DAY = 86_400_000;

/** The rules that are broken, each with where. */
async function broken({ browser }) {
  if (!(await browser.execute(() => "axe" in window))) await browser.execute(axe);
  return browser.executeAsync((done) => {
    const where = ({ html, any, all, none }) => `${html.slice(0, 200)}: ${[...any, ...all, ...none][0]?.message}`;
    window.axe.run(document, { resultTypes: ["violations"] }).then(
      ({ violations }) => done(violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${where(node)}`))),
      (error) => done([String(error)]),
    );
  });
}

/** What is cut off at the window's edges. */
const reachingOut = ({ browser }) =>
  browser.execute(() => {
    const root = document.querySelector("dialog[open]") ?? document.body;
    const seen = [...root.querySelectorAll("button, input, select, textarea, h1, h2")].filter((e) => e.checkVisibility());
    const isOut = ({ left, right, width }) => width > 0 && (left < -1 || right > innerWidth + 1);
    const wide = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [];
    return [...wide, ...seen.filter((e) => isOut(e.getBoundingClientRect())).map((e) => e.outerHTML.slice(0, 160))];
  });

/** Shows the theme, once colours have passed over to each other. */
async function paint({ browser }, theme) {
  await browser.execute((theme) => (document.documentElement.dataset.theme = theme), theme);
  await until("calm", () => browser.execute(() => document.getAnimations().every((a) => a.playState !== "running")));
}

async function size({ browser }, [width, height]) {
  await browser.setWindowSize(width, height);
  await until("the size", () => browser.execute((width) => innerWidth === width, width));
}

/** Looks at a screen as it is. */
async function look(window, name, sizes = []) {
  for (const theme of THEMES) {
    await paint(window, theme);
    assert.deepEqual(await broken(window), [], `${name}, ${theme}`);
  }
  for (const at of sizes) {
    await size(window, at);
    assert.deepEqual(await reachingOut(window), [], `${name} at ${at.join("x")}`);
    for (const theme of THEMES) {
      await paint(window, theme);
      window.screenshot(`look-${name}-${at.join("x")}-${theme}`);
    }
  }
}

story("every screen can be read by everybody", async (open, home) => {
  home.program = PACED;
  begin(home, [
    chat("What is a stack, and what is it good for?", 3, { pinned: true }),
    chat("Notes on speculative decoding", 2, { age: DAY, tags: ["work"] }),
    chat("Names for a boat", 1, { age: 3 * DAY }),
  ]);
  const window = await open();
  const { browser } = window;
  await ready(window);
  await size(window, SIZES.at(-1));
  const escape = () => browser.keys("Escape");
  await look(window, "first-start", SIZES);

  await browser.execute(() => document.querySelector("[data-chat]").click());
  await (await window.at("message-assistant")).waitForExist();
  await look(window, "chat", SIZES);
  await browser.keys(["Control", "i"]);
  await (await window.at("inspector")).waitForExist();
  await look(window, "inspector", SIZES);
  await browser.keys(["Control", "i"]);

  const sheets = [
    ["settings", ",", SIZES],
    ["help", "/", []],
    ["switcher", "k", []],
    ["compare", "d", SIZES],
  ];
  for (const [name, key, sizes] of sheets) {
    await browser.keys(["Control", key]);
    await until(name, () => browser.execute(() => document.querySelector("dialog[open]") !== null));
    await look(window, name, sizes);
    await escape();
    await until("its end", () => browser.execute(() => document.querySelector("dialog[open]") === null));
  }
  for (const [name, id, sizes] of [["models", "open-models", SIZES], ["benchmark", "open-bench", []], ["chat-sheet", "open-chat-settings", []]]) {
    await window.click(id);
    await until(name, () => browser.execute(() => document.querySelector("dialog[open]") !== null));
    await look(window, name, sizes);
    await escape();
    await until("its end", () => browser.execute(() => document.querySelector("dialog[open]") === null));
  }
  await browser.keys(["Control", "f"]);
  await look(window, "find");
  await escape();
  await browser.keys(["Control", "Shift", "f"]);
  await browser.keys("stack");
  await (await window.at("search-hit")).waitForExist();
  await look(window, "search", SIZES);
});

const isThere = ({ browser }, selector) => browser.execute((selector) => document.querySelector(selector) !== null, selector);
const comes = (window, selector) => until(selector, () => isThere(window, selector));
const goes = (window, selector) => until(`the end of ${selector}`, async () => !(await isThere(window, selector)));
const id = (name) => `[data-testid="${name}"]`;

/** Clicks what the pointer alone brings into sight. */
const press = ({ browser }, selector) => browser.execute((selector) => document.querySelector(selector).click(), selector);

const reply = (window, status) => comes(window, `${id("message-assistant")}[data-status="${status}"]`);

/** Picks from the menu of the only reply. */
async function pick(window, item) {
  await press(window, id("message-menu"));
  await comes(window, id(item));
  await press(window, id(item));
}

story("what comes and goes can be read by everybody", async (open, home) => {
  home.program = PACED;
  const failed = chat("A reply that failed", 1, { age: DAY });
  const error = { kind: "out_of_memory", message: "The model ran out of memory after 4 tokens.", hint: "Close other programs or start a new chat, then try again." };
  Object.assign(failed.messages.at(-1), { status: "failed", content: "The sea is", error });
  begin(home, [failed]);
  const window = await open();
  const { browser } = window;
  await ready(window);
  await size(window, SIZES.at(-1));

  await send(window, "pace 4000 60");
  await until("some text", () => browser.execute(() => document.querySelector('[data-testid="message-assistant"] [data-testid="message-text"]')?.textContent.length > 200));
  await look(window, "streaming");
  await window.click("stop");
  await reply(window, "stopped");

  await press(window, id("message-menu"));
  await comes(window, "[role=menu]");
  await look(window, "message-menu");
  await browser.keys("Escape");
  await goes(window, "[role=menu]");
  await pick(window, "origin-toggle");
  await comes(window, id("origin-text"));
  await look(window, "origin");
  await pick(window, "origin-toggle");
  await goes(window, id("origin-text"));

  await browser.keys(["Control", "e"]);
  await comes(window, id("edit-input"));
  await look(window, "edit");
  await browser.keys("Escape");
  await goes(window, id("edit-input"));
  await press(window, `${id("message-user")} ${id("message-delete")}`);
  await comes(window, id("confirm-message"));
  await look(window, "confirm-delete");
  // No, wherever the focus is.
  await (await window.at("composer-input")).click();
  await browser.keys("Escape");
  await goes(window, id("confirm-message"));

  await window.click("sampling");
  await (await window.at("temperature")).click();
  await look(window, "sampling");
  await browser.keys("Escape");
  await goes(window, id("sampling-popover"));

  await pick(window, "message-again");
  await comes(window, id("again-sheet"));
  await look(window, "again");
  await browser.keys("Escape");
  await goes(window, "dialog[open]");
  await browser.keys(["Control", "/"]);
  await window.click("open-intro");
  await comes(window, id("intro"));
  await look(window, "intro");
  await browser.keys("Escape");
  await goes(window, "dialog[open]");

  await order(window, "delete this");
  await comes(window, id("toast"));
  // Under the pointer it stays.
  await (await window.at("toast")).moveTo();
  await look(window, "toast");
  await order(window, "deleted");
  await comes(window, id("deleted-chat"));
  await look(window, "deleted");
  await window.click("deleted-purge");
  await comes(window, id("confirm-deleted"));
  await look(window, "confirm-purge");
  await browser.keys("Escape");
  await goes(window, id("confirm-deleted"));
  await browser.keys("Escape");
  await goes(window, "dialog[open]");

  await press(window, "[data-chat]");
  await comes(window, id("error-message"));
  await look(window, "failed");
});

story("what comes and goes fits the window", async (open, home) => {
  home.program = PACED;
  const window = await open();
  const { browser } = window;
  await ready(window);
  await size(window, SIZES.at(-1));

  await send(window, "pace 60 200");
  await reply(window, "complete");
  await browser.keys(["Control", "e"]);
  await (await window.at("edit-input")).setValue("pace 300 2000");
  await browser.keys("Enter");
  await until("two versions", async () => (await window.text("version").catch(() => "")) === "2/2");
  await reply(window, "complete");
  await press(window, id("version-before"));
  await until("the first one", async () => (await window.text("version").catch(() => "")) === "1/2");
  // The button that was used is at its end: the other one has the focus.
  assert.equal(await browser.execute(() => document.activeElement.dataset.testid), "version-after");
  await look(window, "versions", SIZES);
  await browser.keys("Enter");
  await until("the second one", async () => (await window.text("version").catch(() => "")) === "2/2");
  await pick(window, "origin-toggle");
  await comes(window, id("origin-text"));
  await look(window, "origin", SIZES);

  await window.click("new-chat");
  await goes(window, id("message-assistant"));
  await send(window, "pace 9000 60");
  await reply(window, "streaming");
  await (await window.at("composer-input")).setValue("And what became of the dog after that, and of the boats?");
  await browser.keys("Enter");
  await comes(window, id("queued"));
  await browser.execute(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "long ".repeat(10_000));
    document.querySelector("[data-composer]").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await comes(window, id("file"));
  await goes(window, id("toast"));
  await look(window, "composer", SIZES);
  await window.click("stop");
  await reply(window, "stopped");

  await order(window, "delete this");
  await order(window, "deleted");
  await comes(window, id("deleted-chat"));
  await look(window, "deleted", SIZES);
});
