// npm start [-- arguments of slipstream]: from a fresh clone to an open window.
import { appBuild, binary, code, everything, isLinux, script, step } from "./lib.mjs";

await script(async () => {
  await everything();
  await appBuild();
  const args = process.argv.slice(2);
  const hasDisplay = !isLinux || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (args.length === 0 && !hasDisplay) {
    step("there is no display here, so this chats in the terminal (on a desktop, npm start opens the window)");
    return code(binary, ["chat"]);
  }
  step(`starting ${binary}`);
  return code(binary, args);
});
