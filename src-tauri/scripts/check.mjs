// npm run check [-- format|lints|types ...]: what must hold before any test is worth running.
import { everything, script, sections } from "./lib.mjs";
import { checks } from "./parts.mjs";

await script(async () => {
  await everything();
  return sections(checks, process.argv.slice(2));
});
