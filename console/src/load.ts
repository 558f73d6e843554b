/**
 * Loading: a screen's data comes from here, stays while it is loaded again, and follows the store.
 *
 * Readers of one address share one request, and a request that nobody waits for any more is cancelled.
 */

import { useCallback, useEffect, useReducer, useState } from "preact/hooks";
import type { MaybeOptionalInit } from "openapi-fetch";
import type { PathsWithMethod, SuccessResponse } from "openapi-typescript-helpers";
import type { Signal } from "@preact/signals";
import { QueryClient, QueryObserver } from "@tanstack/query-core";
import type { paths } from "./schema";
import { addressOf, api, ask, type Answer, type Problem } from "./api";
import { commits, following, queueMoves } from "./events";

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

/** Data with the time that loading it began and the time it took, in milliseconds. */
interface Timed<T> {
  data: T;
  tookMs: number;
}

// Milliseconds within which readers that follow the same signal share a request.
const SHARED_MS = 60;
// Milliseconds for which data is fresh for a further reader, unless something is committed or proposed.
const FRESH_MS = 1_000;
/** When the current request of each address began. */
const began = new Map<string, number>();

/** The cache of what was loaded; the signals decide what is loaded again. */
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      retry: false,
      networkMode: "always",
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
    },
  },
});
queueMoves.subscribe(() => void queries.invalidateQueries({ refetchType: "none" }));
queries.getQueryCache().subscribe(({ type, query }) => {
  if (type === "removed") began.delete(String((query.queryKey as [string])[0]));
});

/** Load what `url` names, with its time; throws the problem. */
async function timed<T>(
  url: string,
  load: (signal: AbortSignal) => Promise<Answer<T>>,
  signal: AbortSignal,
): Promise<Timed<T>> {
  const start = performance.now();
  began.set(url, start);
  const answer = await load(signal);
  // Readers get the problem itself.
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  if (!answer.ok) throw answer.problem;
  return { data: answer.data, tookMs: performance.now() - start };
}

/**
 * Load an address of the API, and again whenever `follow` moves (by default: at each commit).
 *
 * `path` null loads nothing. The answer that was asked for last counts.
 */
export function useGet<P extends GetPath>(
  path: P | null,
  init?: Init<P>,
  follow: Signal<unknown> | null = commits,
): Loaded<Found<P>> {
  const url = path === null ? "" : addressOf(path, init);
  // The parameters are in the address, so it stands for both.
  const load = (signal: AbortSignal) =>
    ask(api.GET(path as never, { ...(init as object), signal } as never) as never) as Promise<Answer<Found<P>>>;
  return useLoad(url, load, follow);
}

/** Like `useGet`, for what takes more than one call; `url` names the data, and empty loads nothing. */
export function useLoad<T>(
  url: string,
  load: (signal: AbortSignal) => Promise<Answer<T>>,
  follow: Signal<unknown> | null = commits,
): Loaded<T> {
  const options = queries.defaultQueryOptions<Timed<T>, Problem, T, Timed<T>, string[]>({
    queryKey: [url],
    queryFn: ({ signal }) => timed(url, load, signal),
    select: dataOf,
    enabled: url !== "",
    notifyOnChangeProps: ["data", "error"],
  });
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const [observer] = useState(() => new QueryObserver(queries, options));
  const { data, error } = observer.getOptimisticResult(options);
  useEffect(() => observer.subscribe(redraw), [observer]);
  useEffect(() => observer.setOptions(options));
  const reload = useCallback(() => {
    if (url) void observer.refetch();
  }, [observer, url]);
  useEffect(() => {
    if (!follow || !url) return undefined;
    const took = () => queries.getQueryData<Timed<T>>([url])?.tookMs ?? 0;
    return following(follow, took, () => {
      const shared = performance.now() - (began.get(url) ?? 0) < SHARED_MS;
      void observer.refetch({ cancelRefetch: !shared });
    });
  }, [follow, observer, url]);
  return {
    data,
    problem: error ?? undefined,
    loading: data === undefined && !error && url !== "",
    url,
    reload,
  };
}

function dataOf<T>(timed: Timed<T>): T {
  return timed.data;
}
