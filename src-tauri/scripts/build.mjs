// npm run build: what is shipped (.app and .dmg on macOS, .deb on Linux), with the profile `dist`.
import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { everything, isLinux, isMac, root, run, script, Stop, step, targetDir } from "./lib.mjs";

/** On macOS the .app carries MLX's Metal kernels as Resources/mlx.metallib: mlx-sys puts them where this says. */
const metal = join(root, "target/native/metal");
const withMetal = { bundle: { resources: { "../target/native/metal/mlx.metallib": "mlx.metallib" } } };

/** The .deb carries MLX in /usr/lib/slipstream, laid out as in the wheel: libmlx.so looks for its BLAS beside it. */
function mlx() {
  const native = join(root, "target/native");
  if (readFileSync(join(native, "kind"), "utf8").trim() !== "cpu") {
    throw new Stop("the .deb carries the CPU build of MLX (CUDA's libraries are too large): npm run setup -- cpu, then again");
  }
  rmSync(join(native, "package"), { recursive: true, force: true });
  for (const name of ["mlx/lib/libmlx.so", "mlx/lib/libmlxc.so", "mlx_cpu.libs"]) {
    cpSync(join(native, "cpu", name), join(native, "package", name), { recursive: true });
  }
  for (const name of readdirSync(join(native, "cpu")).filter((name) => name.endsWith(".dist-info"))) {
    cpSync(join(native, "cpu", name, "licenses"), join(native, "package", "licenses"), { recursive: true });
  }
}

await script(async () => {
  await everything();
  if (isLinux) mlx();
  step("building the package (thin LTO: about 10 minutes the first time)");
  const config = isMac ? ["--config", JSON.stringify(withMetal)] : [];
  const env = isMac ? { ...process.env, MLX_RS_METAL_PATH: metal } : process.env;
  await run("npx", ["--no-install", "tauri", "build", ...config, "--", "--profile", "dist", "--locked"], { env });
  step(`done: ${join(targetDir, "dist/bundle")}`);
});
