/** Commands of the command line, as they work where they are pasted: with the store that this server has. */

import { status } from "./status";

function quoted(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Return a `keepward` command for this store; as it is where the store's place is not known, or the command names its own files. */
export function onThisStore(command: string): string {
  const path = status.value?.path;
  if (!path || path === ":memory:" || / --db /.test(command) || /^keepward (model|serve|store recover)\b/.test(command))
    return command;
  return `${command} --db ${quoted(path)}`;
}
