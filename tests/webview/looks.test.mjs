// Every main screen in light and dark: no accessibility rule is broken (axe-core), nothing reaches out of the window, and
// pictures of it at three sizes are left in artifacts/.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { ready } from "./chatting.mjs";
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
  await look(window, "search");
});
