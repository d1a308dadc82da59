// npm run test:cases [-- FOLDER]: the table tests alone, of the repository or of another folder of the same schema.
import { resolve } from "node:path";
import { code, everything, script } from "./lib.mjs";

await script(async () => {
  await everything();
  const folder = process.argv[2];
  const env = folder ? { ...process.env, CASES_ROOT: resolve(process.env.INIT_CWD ?? ".", folder) } : process.env;
  return code("cargo", ["test", "--release", "-p", "tests", "--locked", "--no-fail-fast", "--", "cases::"], { env });
});
