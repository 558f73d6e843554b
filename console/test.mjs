// Run the tests of functions that only judge: `node test.mjs`. No browser and no server takes part.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { tmpdir } from "node:os";
import path from "node:path";

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = await mkdtemp(path.join(tmpdir(), "keepward-console-"));
const names = (await readdir(path.join(here, "tests"))).filter((name) => name.endsWith(".test.ts"));
await build({
  absWorkingDir: here,
  entryPoints: names.map((name) => path.join("tests", name)),
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".css": "empty" },
  // What modules ask of a browser when they are loaded.
  define: { "location.origin": '"http://localhost:8321"' },
  banner: { js: "globalThis.BroadcastChannel = class { addEventListener() {} postMessage() {} };" },
  logLevel: "warning",
});
const files = names.map((name) => path.join(folder, name.replace(/\.ts$/, ".mjs")));
const done = spawnSync(process.execPath, ["--test", "--test-force-exit", ...files], { stdio: "inherit" });
await rm(folder, { recursive: true });
process.exitCode = done.status ?? 1;
