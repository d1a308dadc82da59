// Opens the real program under Xvfb and drives it by WebDriver: Xvfb <- slipstream <- WebKitWebDriver <- tauri-driver.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { remote } from "webdriverio";

const root = resolve(import.meta.dirname, "../..");
const built = (name) => join(resolve(root, process.env.CARGO_TARGET_DIR ?? "target"), "release", name);
export const program = built("slipstream");
/** The same window with a past, and with replies that need no model (tests/support/paced.rs). */
export const PACED = built("paced-window");
export const artifacts = join(root, "artifacts");
/** Two busy cores are slow: what must come has this long. */
const PATIENCE = 60_000;

const children = [];

/** Starts a helper in a process group of its own; resolves to the line that it writes to descriptor 3. */
function announced(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit", "pipe"], detached: true });
  children.push(child);
  return new Promise((done, fail) => {
    child.once("error", fail);
    child.once("exit", (status) => fail(new Error(`${command} ended (${status})`)));
    child.stdio[3].once("data", (data) => done(String(data).trim()));
  });
}

function endGroup(child, signal = "SIGTERM") {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended already.
  }
}

let display;
let bus;

before(async () => {
  mkdirSync(artifacts, { recursive: true });
  display = `:${await announced("Xvfb", ["-displayfd", "3", "-screen", "0", "1680x1050x24", "-nolisten", "tcp"])}`;
  bus = await announced("dbus-daemon", ["--session", "--nofork", "--nopidfile", "--print-address=3"]);
});

after(() => children.forEach((child) => endGroup(child)));

const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

const listens = (port) =>
  new Promise((done) => {
    const socket = createConnection(port, "127.0.0.1");
    socket.once("connect", () => done(socket.end() && true));
    socket.once("error", () => done(false));
  });

/** What is drawn anew while it is looked at is looked at again. */
const isStale = (error) => /stale element/.test(`${error.name} ${error.message}`);

/** Resolves to what `get` gives once that is truthy. */
export async function until(what, get, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    try {
      const got = await get();
      if (got) return got;
    } catch (error) {
      if (!isStale(error)) throw error;
    }
    if (Date.now() > end) throw new Error(`not seen in ${patience / 1000} s: ${what}`);
    await sleep(100);
  }
}

/** A home of its own for one story: chats and settings start empty, and outlive a restart within it. */
export function newHome() {
  const path = mkdtempSync(join(tmpdir(), "slipstream-story-"));
  return { path, env: {}, program, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export class Window {
  /** Opens the program with this home. */
  static async open(home) {
    const window = new Window();
    window.display = display;
    const [port, nativePort] = [await freePort(), await freePort()];
    window.home = home;
    window.driver = spawn("tauri-driver", ["--port", String(port), "--native-port", String(nativePort)], {
      stdio: ["ignore", "inherit", "inherit"],
      detached: true,
      env: {
        ...process.env,
        HF_HOME: join(home.path, "huggingface"),
        HF_TOKEN: "",
        // Nothing of a story reaches out: this address answers nobody.
        HF_ENDPOINT: "http://127.0.0.1:9",
        ...home.env,
        DISPLAY: display,
        DBUS_SESSION_BUS_ADDRESS: bus,
        XDG_DATA_HOME: join(home.path, "data"),
        XDG_CONFIG_HOME: join(home.path, "config"),
        XDG_CACHE_HOME: join(home.path, "cache"),
        XDG_STATE_HOME: join(home.path, "state"),
        GDK_BACKEND: "x11",
        LANG: "C.UTF-8",
        NO_AT_BRIDGE: "1",
        // Without it WebKit draws a third of the frames under Xvfb.
        WEBKIT_DISABLE_DMABUF_RENDERER: "1",
      },
    });
    children.push(window.driver);
    await until("tauri-driver", async () => (await listens(port)) && (await listens(nativePort)), 20_000);
    window.browser = await remote({
      hostname: "127.0.0.1",
      port,
      logLevel: "error",
      // No browserName: WebKitWebDriver answers to none.
      capabilities: { "tauri:options": { application: home.program }, "wdio:enforceWebDriverClassic": true },
      connectionRetryCount: 0,
      connectionRetryTimeout: PATIENCE,
      waitforTimeout: PATIENCE,
    });
    return window;
  }

  /** Ends the program as a person does. */
  async close() {
    await this.browser?.deleteSession().catch(() => {});
    endGroup(this.driver);
    await until("the program's end", () => this.processes().length === 0, 20_000);
  }

  /** Ends the program as a power cut does. */
  async kill() {
    for (const pid of this.processes()) process.kill(pid, "SIGKILL");
    await until("the program's end", () => this.processes().length === 0, 20_000);
    endGroup(this.driver);
  }

  /** The program's processes in this home. */
  processes() {
    return readdirSync("/proc").filter((pid) => {
      try {
        return (
          /^\d+$/.test(pid) &&
          readlinkSync(`/proc/${pid}/exe`) === this.home.program &&
          readFileSync(`/proc/${pid}/environ`, "utf8").includes(this.home.path)
        );
      } catch {
        return false; // It ended while we looked, or it is not ours.
      }
    }).map(Number);
  }

  /** The process that draws the page. */
  webProcess() {
    const parents = new Set(this.processes());
    const pid = readdirSync("/proc").find((pid) => {
      try {
        const [, name, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").match(/^\d+ \((.*)\) \S (\d+)/);
        return name.startsWith("WebKitWebProces") && parents.has(Number(parent));
      } catch {
        return false;
      }
    });
    return pid === undefined ? undefined : Number(pid);
  }

  /** The element with this test id. */
  at(id) {
    return this.browser.$(`[data-testid="${id}"]`);
  }

  /** All elements with this test id. */
  all(id) {
    return this.browser.$$(`[data-testid="${id}"]`);
  }

  /** Waits for the element and clicks it. */
  async click(id) {
    const element = await this.at(id);
    await element.waitForClickable();
    await element.click();
  }

  /** The text of an element that is there. */
  async text(id) {
    const element = await this.at(id);
    await element.waitForExist();
    return element.getText();
  }

  /** Leaves a picture of the display in artifacts/. WebDriver's own way waits for ever where nothing moves. */
  screenshot(name) {
    spawnSync("import", ["-display", display, "-window", "root", join(artifacts, `${name}.png`)], { timeout: 20_000 });
  }
}

/** One story. `open()` opens a window in the story's own home; a picture is left if it fails. */
export function story(name, tell) {
  test(name, { timeout: 5 * PATIENCE }, async () => {
    const home = newHome();
    let window;
    const open = async () => (window = await Window.open(home));
    try {
      await tell(open, home);
    } catch (error) {
      window?.screenshot(`failed-${name.replaceAll(/\W+/g, "-")}`);
      throw error;
    } finally {
      await window?.close().catch(() => {});
      home.remove();
    }
  });
}
