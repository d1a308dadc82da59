// npm run dev: the window with the interface reloading as its files change.
import { everything, run, script } from "./lib.mjs";

await script(async () => {
  await everything();
  await run("npx", ["--no-install", "tauri", "dev", "--release", "--no-default-features"]);
});
