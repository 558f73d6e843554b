// Build the console into the Python package. The same sources give the same bytes on every machine.
//
// usage: node build.mjs [FOLDER]; without one, the folder that the server serves.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import path from "node:path";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.resolve(process.argv[2] ?? path.join(here, "../src/keepward/http/page"));
// Compressed bytes that a browser loads at most before a screen is painted.
const MAX_FIRST_PAINT = 110_000;

await mkdir(target, { recursive: true });
for (const name of await readdir(target)) if (/^console-/.test(name)) await rm(path.join(target, name));
const options = {
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx" },
  outdir: target,
  // A name that says what is in the file: a browser keeps it for good.
  entryNames: "[name]-[hash]",
  chunkNames: "console-[name]-[hash]",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  plugins: [{ name: "setting meanings", setup: importMeanings }],
  metafile: true,
  logLevel: "warning",
};
// The code of a screen is a file of its own; the styles of all screens are one.
const scripts = await build({ ...options, splitting: true, loader: { ".css": "empty" } });
const styles = await build({ ...options, outdir: undefined, outfile: "styles.js", write: false });
const style = styles.outputFiles.find((file) => file.path.endsWith(".css"));
const styleName = `console-${createHash("sha256").update(style.contents).digest("hex").slice(0, 8)}.css`;
await writeFile(path.join(target, styleName), style.contents);

const outputs = Object.fromEntries(
  Object.entries(scripts.metafile.outputs).map(([file, output]) => [path.basename(file), output]),
);
const entry = Object.keys(outputs).find((name) => outputs[name].entryPoint === "src/main.tsx");
const shared = filesOf(entry).filter((name) => name !== entry);
const page = (await readFile(path.join(here, "src/index.html"), "utf8"))
  .replace("{console.css}", styleName)
  .replace("{console.js}", entry)
  .replace("{shared}", shared.map((name) => `<link rel="modulepreload" href="/console/${name}" />`).join("\n    "));
await writeFile(path.join(target, "index.html"), page);
await writeFile(path.join(target, "licences.txt"), await licences(Object.keys(styles.metafile.inputs)));

const sizes = Object.fromEntries(
  await Promise.all(
    ["index.html", styleName, ...Object.keys(outputs)].map(async (name) => [
      name,
      gzipSync(await readFile(path.join(target, name))).length,
    ]),
  ),
);
const screens = Object.keys(outputs).filter((name) => /^src\/screens\/\w+\.tsx$/.test(outputs[name].entryPoint ?? ""));
const paints = screens.map((name) => {
  const files = new Set(["index.html", styleName, ...filesOf(entry), ...filesOf(name)]);
  return [path.basename(outputs[name].entryPoint, ".tsx"), [...files].reduce((sum, file) => sum + sizes[file], 0)];
});
const [screen, largest] = paints.sort((one, other) => other[1] - one[1])[0];
console.log(`console: ${largest} bytes compressed for the largest screen (${screen}), ${MAX_FIRST_PAINT} at most`);
if (largest > MAX_FIRST_PAINT) process.exitCode = 1;

// The files that a script needs before it runs, itself included.
function filesOf(name, files = []) {
  if (files.includes(name)) return files;
  files.push(name);
  for (const { path: file, kind } of outputs[name].imports) {
    if (kind === "import-statement") filesOf(path.basename(file), files);
  }
  return files;
}

// Lets a screen import what each setting means.
function importMeanings({ onResolve, onLoad }) {
  onResolve({ filter: /^setting-meanings$/ }, ({ path: name }) => ({ path: name, namespace: "generated" }));
  onLoad({ filter: /./, namespace: "generated" }, async () => ({
    contents: JSON.stringify(await meanings()),
    loader: "json",
  }));
}

// What each setting means, by name: the tables of the reference have it in their last column.
async function meanings() {
  const text = await readFile(path.join(here, "../build/reference/settings.md"), "utf8");
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
