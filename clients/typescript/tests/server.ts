/** A `keepward serve` of its own for the tests of a file, on a fresh store. */

import { Client } from "keepward";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";

export interface Server {
  url: string;
  /** The owner's token. */
  token: string;
  owner: Client;
  /** Return a client of a new agent, which may propose and decides on nothing. */
  agent(name: string, options?: { scope?: string }): Promise<Client>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Start a server; it ends with the tests of the file. */
export async function serve(...more: string[]): Promise<Server> {
  const folder = await mkdtemp(path.join(tmpdir(), "keepward-"));
  const port = await freePort();
  const environ = {
    ...process.env,
    KEEPWARD_DB: path.join(folder, "memory.db"),
    KEEPWARD_HOME: path.join(folder, "home"),
    KEEPWARD_EMBEDDER: "hashed",
    KEEPWARD_MAINTENANCE: "off",
  };
  const [command = "keepward", ...words] = (process.env.KEEPWARD ?? "keepward").split(" ");
  let running: ChildProcess | undefined;

  async function start(): Promise<{ url: string; token_file: string }> {
    const process = spawn(
      command,
      [...words, "serve", "--port", String(port), "--json", "--no-mcp", "--quiet", ...more],
      {
        cwd: folder,
        env: environ,
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    running = process;
    for await (const line of createInterface(process.stdout))
      return JSON.parse(line) as { url: string; token_file: string };
    throw new Error("`keepward serve` did not start; see above");
  }

  async function stop(): Promise<void> {
    if (running === undefined || running.exitCode !== null) return;
    const ended = once(running, "exit");
    running.kill("SIGTERM");
    await ended;
  }

  after(async () => {
    await stop();
    await rm(folder, { recursive: true });
  });
  const { url, token_file } = await start();
  const token = (await readFile(token_file, "utf8")).trim();
  const owner = new Client(url, token);
  return {
    url,
    token,
    owner,
    agent: async (name, { scope = `/agents/${name}` } = {}) => {
      const { secret } = await owner.createToken(name, { scope });
      return new Client(url, secret);
    },
    stop,
    start: async () => {
      await start();
    },
  };
}

/** Return a port that is free now: a server that starts again has to come back under its address. */
export async function freePort(): Promise<number> {
  const bound = createServer().listen(0, "127.0.0.1");
  await once(bound, "listening");
  const { port } = bound.address() as AddressInfo;
  bound.close();
  return port;
}
