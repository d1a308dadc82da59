// How fast the window is, measured in the real webview. Started by `npm run measure:window`; no test, as it depends on the machine.
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ready } from "./chatting.mjs";
import { begin, chat } from "./history.mjs";
import { hide, show } from "./outside.mjs";
import { PACED, Window, artifacts, newHome, until } from "./window.mjs";

const LONG = { tokens: Number(process.env.MEASURE_TOKENS ?? 12_000), rate: 500 };
const REPLIES = Number(process.env.MEASURE_REPLIES ?? 1000);
const KEYS = "how does this work when a stack is empty and somebody pops from it all the same? ";

const results = [];

function add(name, unit, values, target = null) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const round = (value) => Math.round(value * 10) / 10;
  results.push({ name, unit, n: sorted.length, median: round(at(0.5)), p95: round(at(0.95)), max: round(sorted.at(-1)), target });
}

// ---------------------------------------------------------------------------------------------- from /proc

/** Processor time of a process so far, in milliseconds. */
const cpuOf = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

/** Time that a process's main thread has run, in milliseconds: what a page's work costs, however busy the machine is. */
const workOf = (pid) => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;

const memoryOf = (pid) => Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/^RssAnon:\s+(\d+)/m)[1]) / 1024;

/** Share of one core that the process takes while `wait` lasts, in percent. */
async function load(pid, wait) {
  const [cpu, start] = [cpuOf(pid), performance.now()];
  await wait();
  return ((cpuOf(pid) - cpu) / (performance.now() - start)) * 100;
}

// ---------------------------------------------------------------------------------------------- in the page

/** From the click on a chat to the frame after the one that shows its last message. */
const openChat = (browser, title) =>
  browser.executeAsync((title, done) => {
    const item = [...document.querySelectorAll("[data-chat]")].find((button) => button.textContent.includes(title));
    const isThere = () => document.title.startsWith(title) && document.querySelectorAll('[data-testid="message-text"]').length > 1;
    const start = performance.now();
    const look = () => {
      if (!isThere()) return requestAnimationFrame(look);
      const { port1, port2 } = new MessageChannel();
      // After the frame: its drawing is over when the next message is handled.
      port1.onmessage = () => done(performance.now() - start);
      requestAnimationFrame(() => port2.postMessage(0));
    };
    item.click();
    requestAnimationFrame(look);
  }, title);

/** Notes what each key costs: the work it causes, layout included, and the time to its frame. Also all frames. */
const watch = (browser) =>
  browser.execute(() => {
    const seen = (window.seen = { work: [], frame: [], frames: [], on: true });
    const field = document.querySelector('[data-testid="composer-input"]');
    let start = 0;
    field.addEventListener("keydown", () => (start = performance.now()), true);
    field.addEventListener("input", () => {
      queueMicrotask(() => {
        document.body.offsetHeight;
        seen.work.push(performance.now() - start);
      });
      requestAnimationFrame(() => seen.frame.push(performance.now() - start));
    });
    let last = performance.now();
    const frame = () => {
      const now = performance.now();
      seen.frames.push(now - last);
      last = now;
      if (seen.on) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });

const seen = (browser) =>
  browser.execute(() => {
    window.seen.on = false;
    return { ...window.seen, typed: document.querySelector('[data-testid="composer-input"]').value };
  });

const clear = (browser) =>
  browser.execute(() => {
    const field = document.querySelector('[data-testid="composer-input"]');
    field.value = "";
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  });

async function type(browser, text) {
  await (await browser.$('[data-testid="composer-input"]')).click();
  for (const key of text) await browser.keys(key);
}

/** Sends as a person does, without waiting. */
const say = (browser, text) =>
  browser.execute((text) => {
    const field = document.querySelector('[data-testid="composer-input"]');
    field.value = text;
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    requestAnimationFrame(() => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })));
  }, text);

const isWriting = (browser) => browser.execute(() => document.querySelector('[data-testid="stop"]') !== null);
const written = (browser) => until("the end of the reply", async () => !(await isWriting(browser)), 300_000);

/** Sends `count` short messages, each after the reply to the one before. */
const manyReplies = (browser, count) =>
  browser.executeAsync((count, done) => {
    const field = () => document.querySelector('[data-testid="composer-input"]');
    const sendButton = () => document.querySelector('[data-testid="send"]');
    const last = () => [...document.querySelectorAll('[data-testid="message-assistant"]')].at(-1)?.dataset ?? {};
    const pause = () => new Promise((go) => setTimeout(go, 4));
    const all = async () => {
      for (let n = 0; n < count; n += 1) {
        const before = last().id;
        field().value = "pace 9 300";
        field().dispatchEvent(new InputEvent("input", { bubbles: true }));
        while (!sendButton() || sendButton().disabled) await pause();
        sendButton().click();
        while (last().id === before || last().status !== "complete" || !sendButton()) await pause();
      }
      const { callbacks } = window.__TAURI_INTERNALS__;
      done(callbacks?.size ?? -1);
    };
    void all();
  }, count);

/** Counts, from now on, what the window makes and what of it was collected: events that arrive, and pieces of the page. */
const countObjects = (browser) =>
  browser.execute(() => {
    const count = (window.made = { events: [0, 0], pieces: [0, 0] });
    const registry = new FinalizationRegistry((kind) => (count[kind][1] += 1));
    const register = (kind, object) => {
      count[kind][0] += 1;
      registry.register(object, kind);
    };
    const { cloneNode } = Node.prototype;
    Node.prototype.cloneNode = function (deep) {
      const made = cloneNode.call(this, deep);
      register("pieces", made.nodeType === Node.DOCUMENT_FRAGMENT_NODE && made.firstChild ? made.firstChild : made);
      return made;
    };
    const { callbacks } = window.__TAURI_INTERNALS__;
    const get = Map.prototype.get;
    callbacks.get = (id) => {
      const call = get.call(callbacks, id);
      return (
        call &&
        ((data) => {
          if (typeof data?.message === "object" && data.message) register("events", data.message);
          return call(data);
        })
      );
    };
  });

/** Lets the page collect what nobody holds: by much that is soon gone. */
const collect = (browser) =>
  browser.executeAsync((done) => {
    let left = 10;
    const press = () => {
      for (let n = 0; n < 20; n += 1) window.pressure = Array.from({ length: 200_000 }, (_, k) => ({ k }));
      window.pressure = null;
      if (--left > 0) setTimeout(press, 20);
      else done(true);
    };
    press();
  });

/** Memory of a process in MiB, the least of four seconds. It collects when it likes: memory that is asked for to make it do so would stay. */
async function settled(pid) {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 8; n += 1) {
    await sleep(500);
    least = Math.min(least, memoryOf(pid));
  }
  return least;
}

// ---------------------------------------------------------------------------------------------- what is measured

test("the window, measured", { timeout: 1_800_000 }, async () => {
  const home = newHome();
  home.program = PACED;
  begin(home, [chat("Four hundred messages", 200), chat("Another chat", 3, { age: 90_000 })]);
  const window = await Window.open(home);
  const { browser } = window;
  try {
    await browser.setTimeout({ script: 600_000 });
    await ready(window);

    const cold = [];
    for (let n = 0; n < 8; n += 1) {
      await browser.refresh();
      await (await window.at("chat-item")).waitForExist();
      await ready(window);
      await sleep(500);
      cold.push(await openChat(browser, "Four hundred messages"));
    }
    add("open 400 messages, read from disk", "ms", cold, 300);
    const web = window.webProcess();
    const again = [];
    const work = [];
    for (let n = 0; n < 20; n += 1) {
      await openChat(browser, "Another chat");
      const before = workOf(web);
      again.push(await openChat(browser, "Four hundred messages"));
      work.push(workOf(web) - before);
    }
    add("open 400 messages again", "ms", again, 300);

    add("open 400 messages again, work of the page", "ms", work, 300);

    await watch(browser);
    await type(browser, KEYS);
    const idle = await seen(browser);
    add("a key, its work", "ms", idle.work, 16);
    add("a key, to its frame", "ms", idle.frame);
    await clear(browser);

    const [app] = window.processes();
    await say(browser, `pace ${LONG.tokens} ${LONG.rate}`);
    await until("the reply", () => isWriting(browser));
    const start = performance.now();
    await watch(browser);
    const costs = {};
    let typed = "";
    const typing = async () => {
      while (performance.now() - start < (LONG.tokens / LONG.rate) * 900) {
        await type(browser, KEYS);
        typed += KEYS;
      }
    };
    costs.app = cpuOf(app);
    costs.web = await load(web, typing);
    await written(browser);
    const seconds = (performance.now() - start) / 1000;
    costs.app = ((cpuOf(app) - costs.app) / (seconds * 1000)) * 100;
    const busy = await seen(browser);
    add("a key while 500 tokens/s arrive, its work", "ms", busy.work, 16);
    add("a key while 500 tokens/s arrive, to its frame", "ms", busy.frame);
    add("frames while 500 tokens/s arrive", "ms", busy.frames);
    add(`${LONG.tokens} tokens at 500/s take`, "s", [seconds], LONG.tokens / LONG.rate);
    add("web process meanwhile", "% of a core", [costs.web]);
    add("app meanwhile", "% of a core", [costs.app]);
    add("keys lost", "of " + typed.length, [typed === busy.typed ? 0 : typed.length - busy.typed.length], 0);
    await clear(browser);

    await say(browser, `pace ${LONG.rate * 24} ${LONG.rate}`);
    await until("the reply", () => isWriting(browser));
    add("web process, seen", "% of a core", [await load(web, () => sleep(6000))]);
    hide(window);
    await until("a hidden page", () => browser.execute(() => document.hidden), 5000);
    const textLength = () => browser.execute(() => document.querySelector('[data-testid="conversation"]').textContent.length);
    const before = await textLength();
    add("web process, hidden", "% of a core", [await load(web, () => sleep(6000))], 5);
    add("characters drawn while hidden", "", [(await textLength()) - before], 0);
    show(window);
    await until("a page that is seen", () => browser.execute(() => !document.hidden), 5000);
    await written(browser);
  } finally {
    await window.close().catch(() => {});
    home.remove();
  }
});

// In a process of its own: what the streams above made it set aside is not of these replies.
test("its memory, measured", { timeout: 1_800_000 }, async () => {
  const home = newHome();
  home.program = PACED;
  // As many chats as are listed at once, so that new ones do not lengthen the list.
  begin(
    home,
    Array.from({ length: 102 }, (_, k) => chat(`Older chat ${k}`, 1, { age: 90_000 + k })),
  );
  const window = await Window.open(home);
  const { browser } = window;
  try {
    await browser.setTimeout({ script: 600_000 });
    await ready(window);
    const web = window.webProcess();
    // Ten to a chat. A few at a time, as a script that runs longer is given up.
    const replies = async (count) => {
      let open;
      for (let left = count; left > 0; left -= 10) {
        await window.click("new-chat");
        open = await manyReplies(browser, Math.min(left, 10));
      }
      return open;
    };
    const memory = [];
    const channels = [];
    for (let n = 0; n < 10; n += 1) {
      channels.push(await replies(REPLIES / 10));
      memory.push(await settled(web));
    }
    // The first tenth fills caches.
    add(`web process after ${REPLIES / 10} replies`, "MiB", [memory[0]]);
    add(`web process after ${REPLIES} replies`, "MiB", [memory.at(-1)], memory[0] * 1.25);
    add("channels open", "", [channels.at(-1)], channels[0]);
    await browser.refresh();
    await ready(window);
    await countObjects(browser);
    await replies(50);
    await collect(browser);
    await sleep(3000);
    const made = await browser.execute(() => window.made);
    add(`events of ${made.events[0]} not collected`, "", [made.events[0] - made.events[1]]);
    add(`pieces of the page of ${made.pieces[0]} not collected`, "", [made.pieces[0] - made.pieces[1]]);
    results.push({ name: "memory every tenth", memory: memory.map(Math.round), channels });
  } finally {
    await window.close().catch(() => {});
    home.remove();
  }
});

after(() => report(results));

function report(rows) {
  const machine = { cores: cpus().length, cpu: cpus()[0].model, display: "Xvfb, software rendering" };
  writeFileSync(join(artifacts, "window.json"), JSON.stringify({ machine, rows }, null, 2));
  const line = (cells) => console.log(`| ${cells.join(" | ")} |`);
  line(["", "unit", "n", "median", "p95", "max", "target"]);
  line(["---", "---", "---:", "---:", "---:", "---:", "---:"]);
  for (const row of rows) if (row.unit !== undefined) line([row.name, row.unit, row.n, row.median, row.p95, row.max, row.target === null ? "" : Math.round(row.target)]);
}
