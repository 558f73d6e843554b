/** The client: every operation of a memory over HTTP. */

import { Handle } from "./handle.js";
import { Transport, type ClientOptions } from "./transport.js";

/**
 * A handle on the memories of a server.
 *
 * ```ts
 * const memory = new Client("http://127.0.0.1:8321", token);
 * await memory.remember("Ana prefers tabs", { source: "user_message" });
 * ```
 *
 * Nothing is sent before the first operation, and nothing is read from the environment. Tenant and scope default to
 * those of the token. Without a token, only what the server allows to everyone works.
 */
export class Client extends Handle {
  constructor(url: string, token?: string, options: ClientOptions = {}) {
    const { tenant, scope } = options;
    super(new Transport(url, token, options), { ...(tenant ? { tenant } : {}), ...(scope ? { scope } : {}) });
  }
}
