// Everything, from a fresh clone: `.ci/run`.
import { script, sections } from "./lib.mjs";
import { checks, extras, install, tests } from "./parts.mjs";

await script(() => sections([...install, ...checks, ...tests, ...extras], process.argv.slice(2)));
