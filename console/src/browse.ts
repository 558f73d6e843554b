/** What is browsed: filters as they stand in the address, and as the API takes them. */

import type { Address } from "./address";
import type { paths } from "./schema";
import { status } from "./status";

export type Query = NonNullable<paths["/memory/items"]["get"]["parameters"]["query"]>;

/** Facets in the order in which they are shown, with what they are called and the parameter that takes their values. */
export const FACETS = [
  { name: "tier", title: "Tier" },
  { name: "status", title: "Status" },
  { name: "kind", title: "Kind" },
  { name: "trust", title: "Trust" },
  { name: "source", title: "Source" },
  { name: "author", title: "Written by" },
  { name: "scope", title: "Scope" },
  { name: "tag", title: "Tag" },
  { name: "subject", title: "Subject", one: true },
  { name: "category", title: "Category", one: true },
  { name: "session", title: "Session", one: true },
  { name: "content_type", title: "Content" },
] as const;

export type Facet = (typeof FACETS)[number];

// What narrows beside the facets.
const OTHERS = ["since", "until", "within", "where", "importance"];
/** Filters that a search as recall does not take: what it finds is sifted by them afterwards. */
export const NOT_IN_SEARCH = ["scope", "source", "trust", "status", "author"] as const;

/** Where a search looks that names no scope: everywhere, for who sees everything, as browsing does. */
export function everywhere(): string | undefined {
  return status.value?.scope === "/" ? "/" : undefined;
}

/** The filters that a search takes. */
const SEARCH_FILTERS = [
  "tier",
  "kind",
  "tags",
  "content_type",
  "subject",
  "category",
  "session",
  "since",
  "until",
  "where",
  "min_importance",
  "as_of",
] as const satisfies readonly (keyof Query)[];

/** Return the parameters of a search for a text, with the filters that a search takes. */
export function searched(query: Query, text: string) {
  const filters = Object.fromEntries(SEARCH_FILTERS.map((name) => [name, query[name]]));
  return {
    query: text,
    limit: 100,
    ...(filters as Pick<Query, (typeof SEARCH_FILTERS)[number]>),
    within: query.within ?? everywhere(),
  };
}

/** Return the filters of an address, as every call of browsing takes them. */
export function filtersOf(address: Address): Query {
  const several = (name: string) => {
    const values = address.all(name);
    return values.length ? values : undefined;
  };
  const one = (name: string) => address.get(name) || undefined;
  // Names come from the facets, or from whoever wrote the address: the server refuses what is none.
  return {
    tier: several("tier"),
    kind: several("kind"),
    scope: several("scope"),
    source: several("source"),
    trust: several("trust"),
    status: several("status"),
    author: several("author"),
    tags: several("tag"),
    content_type: several("content_type"),
    subject: one("subject"),
    category: one("category"),
    session: one("session"),
    since: dayBegins(address.get("since")),
    until: dayBegins(address.get("until"), 1),
    within: one("within"),
    where: one("where"),
    min_importance: Number(address.get("importance")) || undefined,
    as_of: one("at"),
    include_ended: address.get("ended") === "1" || undefined,
    below: true,
  } as Query;
}

/** How many filters an address has. */
export function filterCount(address: Address): number {
  const lists = FACETS.reduce((count, each) => count + address.all(each.name).length, 0);
  return lists + OTHERS.filter((name) => address.get(name)).length;
}

/** What takes all filters off. */
export const NO_FILTERS = Object.fromEntries(
  [...FACETS.map((each) => each.name), ...OTHERS].map((name) => [name, null]),
);

/** Return the instant at which a day begins in the reader's zone, `later` days on; undefined for no day. */
export function dayBegins(day: string, later = 0): string | undefined {
  const [year, month, date] = day.split("-").map(Number);
  if (!year || !month || !date) return undefined;
  return new Date(year, month - 1, date + later).toISOString();
}

/** Minutes by which the reader's zone is east of UTC. */
export function zone(): number {
  return -new Date().getTimezoneOffset();
}

/** Return the address of the list of memories with some filters, within the console. */
export function listOf(filters: Record<string, string>): string {
  return `/memories?${new URLSearchParams(filters)}`;
}
