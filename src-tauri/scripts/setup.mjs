// npm run setup [-- cpu|cuda]: installs what building needs, and gets MLX ready.
import { native, nodeModules, script, step, systemPackages, toolchains } from "./lib.mjs";

await script(async () => {
  toolchains();
  await nodeModules();
  await systemPackages("build");
  await native(...process.argv.slice(2));
  step("ready: npm start builds and opens Slipstream");
});
