/** Loading: what a screen shows comes from here, stays while it is read again, and follows the store. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { MaybeOptionalInit } from "openapi-fetch";
import type { PathsWithMethod, SuccessResponse } from "openapi-typescript-helpers";
import type { Signal } from "@preact/signals";
import type { paths } from "./schema";
import { addressOf, api, ask, type Answer, type Problem } from "./api";
import { commits, following } from "./live";

/** What was loaded; `data` stays while it is loaded again. */
export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  /** True until there is data or a problem. */
  loading: boolean;
  /** Address of the call. */
  url: string;
  reload: () => void;
}

type GetPath = PathsWithMethod<paths, "get">;
type Init<P extends GetPath> = MaybeOptionalInit<paths[P], "get">;
type Found<P extends GetPath> = paths[P] extends { get: { responses: infer R extends Record<number, unknown> } }
  ? SuccessResponse<R, "application/json">
  : never;

// What was read lately, so that going back shows it at once; it is read again all the same.
const RECENT = 60;
const recent = new Map<string, unknown>();

function note(url: string, data: unknown): void {
  recent.delete(url);
  recent.set(url, data);
  const [oldest] = recent.keys();
  if (recent.size > RECENT && oldest !== undefined) recent.delete(oldest);
}

/**
 * Read an address of the API, and again whenever `follow` moves (by default: at each commit).
 *
 * `path` null reads nothing. The reading that was asked for last counts.
 */
export function useGet<P extends GetPath>(
  path: P | null,
  init?: Init<P>,
  follow: Signal<unknown> | null = commits,
): Loaded<Found<P>> {
  const url = path === null ? "" : addressOf(path, init as never);
  // The parameters are in the address, so it stands for both.
  const load = () => ask(api.GET(path as never, init as never) as never) as Promise<Answer<Found<P>>>;
  return useLoad(url, load, follow);
}

/** Like `useGet`, for what takes more than one call; `url` names the reading, and empty reads nothing. */
export function useLoad<T>(
  url: string,
  load: () => Promise<Answer<T>>,
  follow: Signal<unknown> | null = commits,
): Loaded<T> {
  const [state, setState] = useState<{ url: string; data?: T; problem?: Problem }>({ url: "" });
  const latest = useRef(0);
  const took = useRef(0);
  const reading = useRef(load);
  reading.current = load;
  const reload = useCallback(() => {
    if (!url) return;
    const turn = ++latest.current;
    const began = performance.now();
    void reading.current().then((answer) => {
      if (turn !== latest.current) return;
      took.current = performance.now() - began;
      if (answer.ok) {
        note(url, answer.data);
        setState({ url, data: answer.data });
      } else {
        // What is on the screen stays there while the server is away.
        setState((before) => ({ url, data: before.url === url ? before.data : undefined, problem: answer.problem }));
      }
    });
  }, [url]);
  useEffect(() => {
    reload();
    return () => {
      latest.current += 1;
    };
  }, [reload]);
  useEffect(() => {
    if (!follow || !url) return undefined;
    return following(follow, () => took.current, reload);
  }, [follow, reload, url]);
  const here = state.url === url ? state : { url };
  const data = here.data ?? (url ? (recent.get(url) as T | undefined) : undefined);
  return { data, problem: here.problem, loading: data === undefined && !here.problem && url !== "", url, reload };
}
