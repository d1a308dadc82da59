// The sections of `npm run check`, `npm test` and CI.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { appBuild, code, everything, hubPython, isLinux, output, root, run, storyWindow, tauriDriver } from "./lib.mjs";

const npx = (...args) => code("npx", ["--no-install", ...args]);

export const install = [
  { name: "install", text: "system packages, npm packages, MLX, the window's files", run: () => everything("stories") },
];

export const checks = [
  { name: "format", text: "cargo fmt", run: () => code("cargo", ["fmt", "--all", "--check"]) },
  {
    name: "lints",
    text: "cargo clippy",
    run: () => code("cargo", ["clippy", "--release", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
  },
  { name: "types", text: "svelte-check", run: () => npx("svelte-check", "--tsconfig", "ui/tsconfig.json", "--fail-on-warnings") },
];

export const tests = [
  { name: "ui", text: "the window's rules (vitest)", run: () => npx("vitest", "run", "--config", "ui/vite.config.ts") },
  {
    name: "rust",
    text: "the engine and the app (cargo test)",
    run: async () => {
      // The command-line tests run the program itself, which `cargo test` alone does not build.
      await appBuild();
      const python = await hubPython();
      const env = python ? { ...process.env, HUB_PYTHON: python } : process.env;
      return code("cargo", ["test", "--release", "--workspace", "--locked", "--no-fail-fast"], { env });
    },
  },
  {
    name: "webview",
    text: "stories in the real window",
    run: async () => {
      if (!isLinux) return console.log("skipped: tauri-driver has no macOS side");
      await tauriDriver();
      await appBuild();
      await storyWindow();
      const folder = join(root, "tests", "webview");
      const files = readdirSync(folder).filter((name) => name.endsWith(".test.mjs"));
      return code("node", ["--test", "--test-concurrency=1", "--test-reporter=spec", ...files.map((name) => join(folder, name))]);
    },
  },
];

export const extras = [
  {
    name: "licences",
    text: "cargo deny",
    run: async () => {
      if (!output("cargo", ["deny", "--version"])) await run("cargo", ["install", "cargo-deny", "--version", "0.20.2", "--locked", "-q"]);
      return code("cargo", ["deny", "--all-features", "check", "licenses", "bans", "sources"]);
    },
  },
  {
    name: "mac",
    text: "the macOS build type-checks",
    run: () => {
      const isBookworm = isLinux && readFileSync("/etc/os-release", "utf8").includes("VERSION_CODENAME=bookworm");
      if (isBookworm) return code("bash", [join(root, "tests/mac-check/check.sh")]);
      console.log("skipped: only Debian 12 has the toolchain for it");
    },
  },
];
