// Makes the calls of a script with a client, and prints the revision that was agreed on and the answers, as JSON.
// A script is a list of [method, params]; an error of the protocol is answered by its code.
import { readFileSync } from "node:fs";

const VERBS = {
  "tools/list": (client) => client.listTools(),
  "tools/call": (client, params) => client.callTool(params),
  "resources/list": (client) => client.listResources(),
  "resources/templates/list": (client) => client.listResourceTemplates(),
  "resources/read": (client, params) => client.readResource(params),
  "prompts/list": (client) => client.listPrompts(),
  "prompts/get": (client, params) => client.getPrompt(params),
};

export async function run(client, transport, revision) {
  const script = JSON.parse(readFileSync(0, "utf8"));
  const answers = [];
  await client.connect(transport);
  for (const [method, params] of script) {
    try {
      answers.push(await VERBS[method](client, params));
    } catch (fault) {
      if (typeof fault.code !== "number") throw fault;
      answers.push({ error: fault.code });
    }
  }
  const spoken = revision();
  await client.close();
  process.stdout.write(JSON.stringify({ revision: spoken, answers }));
}

export function target() {
  // Either `http URL` with the token in the environment, or `stdio COMMAND ARGUMENTS...`.
  const [kind, first, ...rest] = process.argv.slice(2);
  const headers = { Authorization: `Bearer ${process.env.KEEPWARD_TOKEN ?? ""}` };
  return { kind, url: kind === "http" ? new URL(first) : null, headers, command: first, args: rest };
}
