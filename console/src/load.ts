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
import { addressOf, api, ask, type Answer, type Problem, type Schemas } from "./api";
import { commits, following, queueMoves } from "./events";
import { Listed } from "./listed";

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
type Sent<P extends GetPath> = paths[P] extends { get: { responses: infer R extends Record<number, unknown> } }
  ? SuccessResponse<R, "application/json">
  : never;
/** An answer with some of its lists as `Listed`, and without what said how many there are. */
type Labelled<P extends GetPath, Names extends keyof Sent<P>, Said extends keyof Sent<P> = never> = Omit<
  Sent<P>,
  Names | Said
> & { [Name in Names]: Sent<P>[Name] extends readonly (infer T)[] ? Listed<T> : never };

type Happened = "learned" | "changed" | "ended" | "erased" | "decisions" | "refusals";

/** Answers that may have a part of a list. */
interface Parts {
  "/memory/items": Labelled<"/memory/items", "items", "total">;
  "/memory/quarantine": Labelled<"/memory/quarantine", "items", "total">;
  "/memory/commits": Labelled<"/memory/commits", "items">;
  "/memory/receipts": Labelled<"/memory/receipts", "items">;
  "/memory/search": Labelled<"/memory/search", "hits">;
  "/memory/contradictions": Labelled<"/memory/contradictions", "items", "total">;
  "/memory/branches": Labelled<"/memory/branches", "items", "total">;
  "/memory/branches/{name}": Labelled<"/memory/branches/{name}", "changes", "total">;
  "/memory/sources": Labelled<"/memory/sources", "actors" | "sources" | "references" | "sessions", "more">;
  "/memory/activity": Labelled<"/memory/activity", "series", "more">;
  "/memory/news": Omit<Schemas["News"], Happened> & Record<Happened, Listed<Schemas["Happening"]>>;
  "/memory/facets": Omit<Schemas["Facets"], "facets" | "more"> & {
    facets: Readonly<Record<string, Listed<Schemas["Count"]>>>;
  };
}
/** What a call returns; of a list that may be a part, how many there are. */
export type Found<P extends GetPath> = P extends keyof Parts ? Parts[P] : Sent<P>;

/** How each answer says how many there are. */
const LABELS: { [P in keyof Parts]: (answer: Sent<P>) => Parts[P] } = {
  "/memory/items": ({ total, items, ...rest }) => ({
    ...rest,
    items: new Listed(items, total ?? (rest.cursor ? undefined : items.length)),
  }),
  "/memory/quarantine": ({ total, items, ...rest }) => ({ ...rest, items: new Listed(items, total) }),
  "/memory/commits": ({ items, ...rest }) => ({ ...rest, items: upTo(items, rest.next_before !== null) }),
  "/memory/receipts": ({ items, ...rest }) => ({ ...rest, items: upTo(items, rest.before !== null) }),
  "/memory/search": ({ hits, ...rest }) => ({ ...rest, hits: upTo(hits, rest.cursor !== null) }),
  "/memory/contradictions": ({ items, total, ...rest }) => ({
    ...rest,
    items: new Listed(items, rest.is_partial ? undefined : total),
  }),
  "/memory/branches": ({ items, total, ...rest }) => ({ ...rest, items: new Listed(items, total) }),
  "/memory/branches/{name}": ({ changes, total, ...rest }) => ({ ...rest, changes: new Listed(changes, total) }),
  "/memory/sources": ({ actors, sources, references, sessions, more, ...rest }) => ({
    ...rest,
    actors: besides(actors, more["actors"]),
    sources: besides(sources, more["sources"]),
    references: besides(references, more["references"]),
    sessions: besides(sessions, more["sessions"]),
  }),
  "/memory/activity": ({ series, more, ...rest }) => ({ ...rest, series: besides(series, more) }),
  "/memory/news": (answer) => ({
    ...answer,
    learned: newest(answer.learned),
    changed: newest(answer.changed),
    ended: newest(answer.ended),
    erased: newest(answer.erased),
    decisions: newest(answer.decisions),
    refusals: newest(answer.refusals),
  }),
  "/memory/facets": ({ facets, more, ...rest }) => ({
    ...rest,
    facets: Object.fromEntries(Object.entries(facets).map(([name, counts]) => [name, besides(counts, more[name])])),
  }),
};

function newest({ newest: items, total }: Schemas["Happenings"]): Listed<Schemas["Happening"]> {
  return new Listed(items, total ?? undefined);
}

function upTo<T>(items: readonly T[], more: boolean): Listed<T> {
  return new Listed(items, more ? undefined : items.length);
}

function besides<T>(items: readonly T[], more = 0): Listed<T> {
  return new Listed(items, items.length + more);
}

// `get` says which path and which answer belong together; the compiler cannot tell for a path that is not known yet.
const GET = api.GET as (path: GetPath, init?: object) => ReturnType<typeof api.GET>;

/** Make a call once, and return its answer with how many there are of each list. */
export async function get<P extends GetPath>(path: P, init?: Init<P>): Promise<Answer<Found<P>>> {
  const answer = (await ask(GET(path, init))) as Answer<Sent<P>>;
  if (!answer.ok) return answer;
  const label = (LABELS as Partial<Record<string, (answer: Sent<P>) => unknown>>)[path];
  return { ...answer, data: (label ? label(answer.data) : answer.data) as Found<P> };
}

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
  const load = (signal: AbortSignal) => get(path as P, { ...init, signal } as Init<P>);
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
