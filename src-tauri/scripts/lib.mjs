// What the scripts behind `npm start`, `npm test` and the others share. Node's own modules only: it runs before `npm ci`.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "../..");
export const isLinux = process.platform === "linux";
export const isMac = process.platform === "darwin";

/** Where cargo puts what it builds. */
export const targetDir = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
export const binary = join(targetDir, "release", "slipstream");

// cargo is often installed but not yet in the PATH of the shell that installed it.
process.env.PATH = [process.env.PATH, join(homedir(), ".cargo", "bin")].join(delimiter);

export const step = (text) => console.log(`\n[slipstream] ${text}`);

/** A failure whose message is all that the person needs. */
export class Stop extends Error {}

let running;
let stopped = false;

/** Runs a program with our terminal; resolves to its exit code. */
export function code(command, args = [], options = {}) {
  return new Promise((done) => {
    const child = (running = spawn(command, args, { cwd: root, stdio: "inherit", ...options }));
    child.once("error", (error) => {
      console.error(error.code === "ENOENT" ? `${command} is not installed` : error.message);
      done(127);
    });
    child.once("exit", (status, signal) => done(status ?? (signal === "SIGINT" ? 130 : 1)));
  });
}

/** Runs a program with our terminal; stops the script when it fails. */
export async function run(command, args = [], options = {}) {
  const status = await code(command, args, options);
  if (status !== 0) throw new Stop(`failed (${status}): ${[command, ...args].join(" ")}`);
}

/** What a program prints, or undefined when it fails. */
export function output(command, args = []) {
  const got = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  return got.status === 0 ? got.stdout.trim() : undefined;
}

/** Runs `main`, saying plainly what stopped it. */
export async function script(main) {
  // Ctrl-C reaches the program that runs now as well as us; SIGTERM is passed on. We end when that program does.
  process.on("SIGINT", () => (stopped = true));
  process.on("SIGTERM", () => {
    stopped = true;
    running?.kill("SIGTERM");
  });
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    console.error(`\n[slipstream] ${stopped ? "stopped" : error.message}`);
    process.exitCode = stopped ? 130 : 1;
  }
}

const files = (folder, skip = []) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !skip.includes(entry.name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? files(join(folder, entry.name), skip) : [join(folder, entry.name)]));

function digest(paths) {
  const hash = createHash("sha256");
  for (const path of paths) hash.update(path).update("\0").update(readFileSync(path)).update("\0");
  return hash.digest("hex");
}

const read = (path) => (existsSync(path) ? readFileSync(path, "utf8") : undefined);

/** Does `make` unless `stamp` says that it was done for these files. */
async function once(stamp, paths, text, make) {
  const now = digest(paths);
  if (read(stamp) === now) return;
  step(text);
  await make();
  writeFileSync(stamp, now);
}

// ---------------------------------------------------------------------------------------------- system packages

const packages = {
  build: [
    "build-essential",
    "cmake",
    "libayatana-appindicator3-dev",
    "libclang-dev",
    "librsvg2-dev",
    "libssl-dev",
    "libwebkit2gtk-4.1-dev",
    "libxdo-dev",
    "ninja-build",
    "pkg-config",
  ],
  stories: ["dbus", "dbus-x11", "fonts-dejavu-core", "imagemagick", "webkit2gtk-driver", "xauth", "xvfb"],
};

/** Installs the Debian packages of these groups that are missing; says how where it cannot. */
export async function systemPackages(...groups) {
  if (!isLinux) return;
  const wanted = groups.flatMap((group) => packages[group]);
  if (!output("dpkg-query", ["--version"])) return otherLinux(groups);
  const list = spawnSync("dpkg-query", ["-W", "-f", "${binary:Package} ${db:Status-Status}\n", ...wanted], { encoding: "utf8" });
  const there = new Set(
    list.stdout
      .split("\n")
      .filter((line) => line.endsWith(" installed"))
      .map((line) => line.split(/[ :]/)[0]),
  );
  const missing = wanted.filter((name) => !there.has(name));
  if (missing.length === 0) return;

  const install = ["apt-get", "-o", "DPkg::Lock::Timeout=600", "install", "-y", "--no-install-recommends", ...missing];
  const isRoot = process.getuid() === 0;
  const sudo = isRoot ? [] : ["sudo"];
  if (!isRoot && output("sudo", ["-n", "true"]) === undefined && !(process.stdin.isTTY && output("sudo", ["--version"]))) {
    throw new Stop(`these packages are missing. Install them, then run this again:\n\n  sudo apt-get update && sudo ${install.join(" ")}\n`);
  }
  step(`installing ${missing.length} system packages: ${missing.join(" ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const [first, ...rest] = [...sudo, "apt-get", "-o", "DPkg::Lock::Timeout=600", "update", "-q"];
  await run(first, rest, { env });
  const [again, ...args] = [...sudo, ...install, "-q"];
  await run(again, args, { env });
}

/** Where there is no apt, the person installs; we say what. */
function otherLinux(groups) {
  const hasWebkit = output("pkg-config", ["--exists", "webkit2gtk-4.1"]) !== undefined;
  const hasDriver = !groups.includes("stories") || ["Xvfb", "WebKitWebDriver", "dbus-daemon"].every((name) => output("which", [name]));
  if (hasWebkit && hasDriver) return;
  const extra = groups.includes("stories");
  throw new Stop(
    "WebKitGTK's files for developers are missing, or for the tests Xvfb and WebKitWebDriver. Install them, then run this again:\n\n" +
      `  Fedora  sudo dnf install webkit2gtk4.1-devel librsvg2-devel libxdo-devel openssl-devel cmake ninja-build clang-devel gcc-c++${extra ? " xorg-x11-server-Xvfb webkit2gtk-driver" : ""}\n` +
      `  Arch    sudo pacman -S --needed webkit2gtk-4.1 librsvg xdotool openssl cmake ninja clang base-devel${extra ? " xorg-server-xvfb" : ""}\n`,
  );
}

// ---------------------------------------------------------------------------------------------- one step each

/** Rust and Python must be there: what gets them differs too much between machines. */
export function toolchains() {
  const missing = [];
  const rust = output("cargo", ["--version"])?.match(/\d+\.(\d+)/);
  if (!rust) missing.push("Rust is missing: https://rustup.rs");
  else if (Number(rust[1]) < 95) missing.push(`Rust ${rust[0]} is too old, 1.95 is needed: rustup update stable`);
  if (isLinux && !output("python3", ["--version"])) missing.push("python3 is missing: sudo apt-get install python3 python3-pip");
  if (missing.length > 0) throw new Stop(missing.join("\n"));
}

/** `node_modules` as the lock file has it. */
export async function nodeModules() {
  await once(
    join(root, "node_modules", ".slipstream"),
    [join(root, "package.json"), join(root, "package-lock.json")],
    "installing the window's packages (npm ci)",
    () => run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
  ).catch((error) => {
    if (error.code === "ENOENT") throw new Stop("npm ci left no node_modules");
    throw error;
  });
}

/** MLX, ready for cargo. */
export const native = (...args) => run("bash", [join(root, "models", "native", "setup.sh"), ...args]);

/** `ui/dist`, which is compiled into the program. */
export async function uiBuild() {
  const ui = join(root, "ui");
  const dist = join(ui, "dist");
  const stamp = join(root, "target", "ui.sha256");
  mkdirSync(join(root, "target"), { recursive: true });
  const inputs = [...files(ui, ["dist", "node_modules"]), join(root, "package-lock.json")];
  if (!existsSync(join(dist, "index.html"))) writeFileSync(stamp, "");
  await once(stamp, inputs, "building the window", () => run("npx", ["--no-install", "vite", "build", "ui", "--config", "ui/vite.config.ts"]));
}

/** The program. */
export async function appBuild(...args) {
  step("building the program (some minutes the first time)");
  await run("cargo", ["build", "--release", "-p", "app", "--locked", ...args]);
}

/** What the stories start beside the program: its window with a past, and a hub on loopback. */
export const storyWindow = () =>
  run("cargo", ["build", "--release", "-p", "tests", "--bin", "fake-hub", "--bin", "paced-window", "--locked"]);

/** All that `cargo build` needs. */
export async function everything(...groups) {
  toolchains();
  await nodeModules();
  await systemPackages("build", ...groups);
  await native();
  await uiBuild();
}

/** tauri-driver drives the real window in the stories. */
export async function tauriDriver() {
  const version = "2.1.0";
  if (output("cargo", ["install", "--list"])?.includes(`tauri-driver v${version}:`)) return;
  step(`installing tauri-driver ${version}`);
  await run("cargo", ["install", "tauri-driver", "--version", version, "--locked", "-q"]);
}

/** A Python with the hub's official client, for the tests that compare ours with it; undefined where none can be had. */
export async function hubPython() {
  if (process.env.HUB_PYTHON) return process.env.HUB_PYTHON;
  const version = "2.4.0";
  const folder = join(targetDir, "hub-python");
  const python = join(folder, "bin", "python");
  const isReady = () => output(python, ["-c", "import huggingface_hub as hub; print(hub.__version__)"]) === version;
  if (isReady()) return python;
  step(`installing the hub's official client for its tests (huggingface_hub ${version})`);
  // Debian's Python brings no pip for new environments: its own installs into ours.
  const made = (await code("python3", ["-m", "venv", "--clear", "--without-pip", folder])) === 0;
  const pip = ["-m", "pip", "--python", python, "--disable-pip-version-check", "--retries", "1", "--timeout", "15", "install", "-q", `huggingface_hub==${version}`];
  if (made && (await code("python3", pip)) === 0 && isReady()) return python;
  if (stopped) throw new Stop("stopped");
  console.log("SKIPPED: the tests with the hub's official client. Python 3 with venv and pip and a way to a package index are needed, or HUB_PYTHON.");
}

// ---------------------------------------------------------------------------------------------- sections

/** Sections of checks, run to the end. `wanted` names some of them; none means all. Resolves to the exit code. */
export async function sections(list, wanted = []) {
  const unknown = wanted.filter((name) => !list.some((section) => section.name === name));
  if (unknown.length > 0) throw new Stop(`no section ${unknown.join(", ")}; there are ${list.map(({ name }) => name).join(", ")}`);
  const results = [];
  for (const { name, text, run: go } of list) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    console.log(`\n${"=".repeat(100)}\n== ${name}: ${text}\n${"=".repeat(100)}`);
    const start = Date.now();
    let failure;
    try {
      const status = await go();
      if (status) failure = `exit code ${status}`;
    } catch (error) {
      failure = error.message;
    }
    const seconds = Math.round((Date.now() - start) / 1000);
    console.log(`== ${name}: ${failure ? `FAILED, ${failure}` : "passed"} (${seconds} s)`);
    results.push({ name, failure, seconds });
    if (stopped) throw new Stop("stopped");
  }
  const failed = results.filter(({ failure }) => failure);
  console.log(`\n${"=".repeat(100)}`);
  for (const { name, failure, seconds } of results) {
    console.log(`  ${failure ? "FAILED" : "passed"}  ${name.padEnd(12)} ${String(seconds).padStart(5)} s  ${failure ?? ""}`);
  }
  console.log(`\n${results.length - failed.length} passed, ${failed.length} failed`);
  return failed.length === 0 ? 0 : 1;
}
