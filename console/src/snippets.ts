/** A call of the API as a person would make it: in a shell, and in Python. */

/** What a call is, apart from who makes it. */
export interface ApiCall {
  method: "GET" | "POST";
  /** Path of the API, with its query. */
  path: string;
  body?: Record<string, unknown>;
  scope?: string;
  /** Name of the method of `Client`, its first argument, and the others by name. */
  verb: string;
  first: string;
  named: Record<string, unknown>;
}

/** Return the call as a command of curl; the token is read from `KEEPWARD_TOKEN`. */
export function curl({ method, path, body, scope }: ApiCall): string {
  const parts = ["curl -s", '-H "Authorization: Bearer $KEEPWARD_TOKEN"'];
  if (scope) parts.push(`-H ${quoted(`Keepward-Scope: ${scope}`)}`);
  if (method === "POST") parts.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body ?? {}))}`);
  return [...parts, quoted(location.origin + path)].join(" \\\n  ");
}

/** Return the call as a program in Python. */
export function python({ verb, first, named, scope }: ApiCall): string {
  const given = Object.entries(named).filter(([, value]) => value !== undefined && value !== null);
  const call = [literal(first), ...given.map(([name, value]) => `${name}=${literal(value)}`)].join(", ");
  const at = scope ? `, scope=${literal(scope)}` : "";
  return [
    "import os",
    "from keepward import Client",
    "",
    `with Client(${literal(location.origin)}, os.environ["KEEPWARD_TOKEN"]${at}) as memory:`,
    `    print(memory.${verb}(${call}))`,
    "",
  ].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function literal(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  // Text in JSON is text in Python.
  return JSON.stringify(value);
}
