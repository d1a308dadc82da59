// npm run measure:window: how fast the window is, in the real webview, with a table and artifacts/window.json. Some minutes.
import { join } from "node:path";
import { code, everything, isLinux, root, script, Stop, storyWindow, tauriDriver } from "./lib.mjs";

await script(async () => {
  if (!isLinux) throw new Stop("tauri-driver has no macOS side");
  await everything("stories");
  await tauriDriver();
  await storyWindow();
  return code("node", ["--test", "--test-reporter=spec", join(root, "tests", "webview", "measure.mjs")]);
});
