// The second TypeScript SDK: as the first; the era from PROOF_ERA, `legacy` or `auto`.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { run, target } from "./calls.mjs";

const { kind, url, headers, command, args } = target();
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(url, { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
const options = { versionNegotiation: { mode: process.env.PROOF_ERA ?? "auto" } };
const client = new Client({ name: "proof", version: "1" }, options);
await run(client, transport, () => client.getNegotiatedProtocolVersion());
