/** Each block of the pages on TypeScript and of the README runs as it is, against a fresh store. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import { serve } from "./server.ts";

const PAGES = {
  page: "../../../docs/howto/typescript.md",
  frameworks: "../../../docs/howto/frameworks/typescript.md",
  readme: "../README.md",
};
/** Beside this file, so that the names of packages are found, and compiled with it. */
const folder = new URL("snippets/", import.meta.url);
const { url, token } = await serve();

await rm(folder, { recursive: true, force: true });
await mkdir(folder);
after(() => rm(folder, { recursive: true }));

for (const [name, page] of Object.entries(PAGES)) {
  const text = await readFile(new URL(page, import.meta.url), "utf8");
  const blocks = [...text.matchAll(/```ts\n([^]*?)```/g)].map((each) => each[1] ?? "");
  test(`the ${name} has code`, () => assert.ok(blocks.length > 0));
  for (const [number, block] of blocks.entries()) {
    test(`block ${number + 1} of the ${name} runs`, async () => {
      const file = new URL(`${name}-${number + 1}.ts`, folder);
      await writeFile(file, block.replaceAll("http://127.0.0.1:8321", url));
      const environ = { ...process.env, KEEPWARD_TOKEN: token };
      const ran = spawn(process.execPath, [file.pathname], { env: environ, stdio: ["ignore", "ignore", "pipe"] });
      let said = "";
      ran.stderr.on("data", (piece: Buffer) => (said += piece.toString()));
      const [code] = (await once(ran, "exit")) as [number];
      assert.equal(code, 0, said);
    });
  }
}
