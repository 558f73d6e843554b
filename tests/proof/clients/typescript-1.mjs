// The first TypeScript SDK: `node typescript-1.mjs http URL < script`, or `... stdio COMMAND ARGUMENTS...`.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { run, target } from "./calls.mjs";

const { kind, url, headers, command, args } = target();
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(url, { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
// The client tells its transport alone what was agreed on.
let revision;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (spoken) => {
  revision = spoken;
  tell?.(spoken);
};
await run(new Client({ name: "proof", version: "1" }), transport, () => revision);
