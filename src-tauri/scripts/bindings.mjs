// npm run bindings: writes ui/src/bindings.ts from src-tauri/src/ipc.
import { everything, run, script } from "./lib.mjs";

await script(async () => {
  await everything();
  await run("cargo", ["test", "--release", "-p", "tests", "--locked", "--", "bindings::the_committed_bindings"], {
    env: { ...process.env, SLIPSTREAM_WRITE_BINDINGS: "1" },
  });
});
