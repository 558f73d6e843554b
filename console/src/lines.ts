/** Long work that answers line by line: how far it has come, what it found on the way, and the result. */

import { csrf, online, type Problem } from "./api";

/** What a line holds; the last one has `result` or `error`. */
export interface Line<R, P = unknown> {
  done?: number;
  total?: number;
  line?: P;
  result?: R;
  error?: Problem;
}

/** Have long work done; `tell` gets each line as it comes. Aborting the signal ends the work. */
export async function watch<R, P = unknown>(path: string, tell: (line: Line<R, P>) => void, signal: AbortSignal): Promise<Problem | null> {
  try {
    const headers = { "Keepward-Csrf": csrf.value ?? "" };
    const answer = await fetch(path, { method: "POST", headers, credentials: "same-origin", signal });
    online.value = true;
    if (!answer.ok || !answer.body) return (await answer.json()) as Problem;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + (value ?? "")).split("\n");
      rest = lines.pop() ?? "";
      for (const each of lines) {
        const line = JSON.parse(each) as Line<R, P>;
        if (line.error) return line.error;
        tell(line);
      }
      if (done) return null;
    }
  } catch (fault) {
    if (signal.aborted) return null;
    return { status: 0, code: "offline", title: "It was broken off", detail: `The server stopped answering. ${String(fault)}` };
  }
}
