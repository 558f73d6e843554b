/** The address holds the state of a screen: what is searched, chosen and opened survives a reload and can be sent on. */

import { useCallback, useMemo } from "preact/hooks";
import { useSearch } from "wouter-preact";
import { navigate } from "wouter-preact/use-browser-location";

export type Change = Record<string, string | number | readonly string[] | null | undefined>;

export interface Address {
  /** The value of a parameter; the empty text where there is none. */
  get: (name: string) => string;
  /** All values of a parameter, in order. */
  all: (name: string) => string[];
  /** Change parameters: null, undefined, the empty text and empty lists remove. `push` makes a step to go back to. */
  set: (change: Change, options?: { push?: boolean }) => void;
}

/** Return what the address says after `?`, and how to change it. */
export function useAddress(): Address {
  // The router says when it changes, but has decoded it once already: a percent sign would be lost.
  const search = useSearch();
  // It is read anew when `search` changes.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const params = useMemo(() => new URLSearchParams(location.search), [search]);
  const set = useCallback((change: Change, options?: { push?: boolean }) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(change)) {
      next.delete(name);
      const values = Array.isArray(value) ? value : [value];
      for (const each of values) {
        if (each !== null && each !== undefined && each !== "") next.append(name, String(each));
      }
    }
    const text = next.toString();
    const to = location.pathname + (text ? `?${text}` : "");
    if (to !== location.pathname + location.search) navigate(to, { replace: !options?.push });
  }, []);
  return { get: (name) => params.get(name) ?? "", all: (name) => params.getAll(name), set };
}

/** Go to a screen of the console; `to` begins with a slash and is within the console. */
export function go(to: string): void {
  navigate(BASE + to);
}

/** Where the console is served. */
export const BASE = "/console";
