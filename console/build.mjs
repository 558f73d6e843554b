// Build the console into the Python package. The same sources give the same bytes on every machine.
//
// usage: node build.mjs [FOLDER]; without one, the folder that the server serves.

import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import path from "node:path";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.resolve(process.argv[2] ?? path.join(here, "../src/keepward/http/page"));
// All that a browser loads, compressed.
const MOST = 150_000;

await mkdir(target, { recursive: true });
for (const name of await readdir(target)) if (/^console-/.test(name)) await rm(path.join(target, name));
const made = await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx" },
  outdir: target,
  // A name that says what is in the file: a browser keeps it for good.
  entryNames: "[name]-[hash]",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  define: { SETTING_MEANINGS: JSON.stringify(await meanings()) },
  metafile: true,
  logLevel: "warning",
});

const files = Object.keys(made.metafile.outputs).map((file) => path.basename(file));
let page = await readFile(path.join(here, "src/index.html"), "utf8");
for (const name of files) page = page.replace(`{${name.replace(/-[^.]*/, "")}}`, name);
await writeFile(path.join(target, "index.html"), page);
await writeFile(path.join(target, "licences.txt"), await licences(Object.keys(made.metafile.inputs)));

const sizes = await Promise.all(
  [...files, "index.html"].map(async (name) => gzipSync(await readFile(path.join(target, name))).length),
);
const total = sizes.reduce((sum, each) => sum + each, 0);
console.log(`console: ${total} bytes compressed, of ${MOST} at most`);
if (total > MOST) process.exitCode = 1;

// What each setting means, by name: the tables of the reference have it in their last column.
async function meanings() {
  const text = await readFile(path.join(here, "../docs/reference/settings.md"), "utf8");
  const found = {};
  let table = "";
  for (const line of text.split("\n")) {
    const heading = /^## (?:Under `\[(\w+)\]`|(.*))/.exec(line);
    if (heading) table = heading[1] ? `${heading[1]}.` : "";
    const cells = line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((each) => each.trim());
    const name = /^`(\w+)`$/.exec(cells[0] ?? "")?.[1];
    if (name && !/^KEEPWARD_/.test(name)) found[`${table}${name}`] = cells.at(-1).replaceAll("\\|", "|");
  }
  return found;
}

// The licences of what is in the bundle; most of them ask to travel along.
async function licences(inputs) {
  const names = [...new Set(inputs.map(packageOf).filter(Boolean))].sort();
  const parts = await Promise.all(names.map(licence));
  return parts.join("\n");
}

function packageOf(file) {
  return /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1];
}

async function licence(name) {
  const folder = path.join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).sort().find((each) => /^licen[cs]e/i.test(each));
  const text = file ? await readFile(path.join(folder, file), "utf8") : "";
  return `${name} ${version} (${license})\n\n${text.replaceAll("\r\n", "\n").trim()}\n`;
}
