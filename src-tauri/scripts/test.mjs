// npm test [-- ui|rust|webview ...]: installs what the tests need, runs all of them, says what failed.
import { everything, script, sections } from "./lib.mjs";
import { tests } from "./parts.mjs";

await script(async () => {
  const wanted = process.argv.slice(2);
  await everything(...(wanted.length === 0 || wanted.includes("webview") ? ["stories"] : []));
  return sections(tests, wanted);
});
