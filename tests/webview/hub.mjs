// The hub on loopback (tests/support/fake_hub), as a program that a story tells what to do.
import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const root = resolve(import.meta.dirname, "../..");
const program = join(resolve(root, process.env.CARGO_TARGET_DIR ?? "target"), "release", "fake-hub");

/** Starts a hub with these repositories, each from a folder. */
export async function startHub(repositories) {
  const args = Object.entries(repositories).map(([id, folder]) => `${id}=${folder}`);
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => (await lines.next()).value;
  const ask = (text) => {
    child.stdin.write(`${text}\n`);
    return line();
  };
  return {
    url: await line(),
    /** No file is sent beyond this byte until `free`. */
    hold: (byte) => ask(`hold ${byte}`),
    speed: (bytes) => ask(`speed ${bytes}`),
    free: () => ask("free"),
    /** Bytes of files sent since the start. */
    served: async () => Number(await ask("served")),
    stop: () => child.kill(),
  };
}
