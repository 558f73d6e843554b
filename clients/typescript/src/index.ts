/** Keepward: memory for AI agents that one can audit, approve and undo. The client of a server, over HTTP. */

export { Client } from "./client.js";
export { Draft, newId } from "./draft.js";
export * from "./errors.js";
export { Handle, type Upload } from "./handle.js";
export type { Schemas } from "./operations.js";
export type { ClientOptions } from "./transport.js";
export type * from "./values.js";
