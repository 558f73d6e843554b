/** What a search offers to erase: people, places and sources, and what is ticked of it as one selection. */

import { api, ask, type Answer, type Schemas } from "../../api";
import { Listed, whole } from "../../listed";
import { get, type Found } from "../../load";
import { say } from "../../parts/Toasts";
import type { Selection } from "./selection";

// Memories that are chosen one by one: more would not fit an address.
export const MOST = 200;
export const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const OFFERED = 12;

/** Memories that go together by what they have in common. */
export interface Offer {
  title: string;
  /** What a search has to be like. */
  name: string;
  count: number;
  /** How the plan names them; those without are named by their ids. */
  way?: { subject: string } | { source: string };
  /** Filters that find them. */
  filters: Record<string, string | string[]>;
  /** Whether it is a person of that name, and so ticked where the name alone is written. */
  person?: boolean;
}

/** Return how much of so many memories an offer without a name of its own can be: a plan names few ids. */
function allOf(count: number): string {
  return count > MOST ? `The first ${MOST}` : "All";
}

/** Return what has a part of its name in common with a search, and how much there is of it. */
export function offersOf(
  facets: Found<"/memory/facets"> | undefined,
  sources: Found<"/memory/sources"> | undefined,
  users: readonly Schemas["Member"][],
  projects: readonly Schemas["Member"][],
): Listed<Offer> {
  const about = (subject: Schemas["Count"]): Offer => ({
    title: `All about ${subject.value}`,
    name: subject.value,
    count: subject.count,
    way: { subject: subject.value },
    filters: { subject: subject.value },
    person: true,
  });
  const kept =
    (place: "users" | "projects") =>
    (member: Schemas["Member"]): Offer => ({
      title: `${allOf(member.memories)} kept for the ${place === "users" ? "user" : "project"} ${member.name}`,
      name: member.name,
      count: member.memories,
      filters: { within: `/${place}/${member.name}` },
      person: place === "users",
    });
  const from = (row: Schemas["SourceActivity"]): Offer => ({
    title: `All from ${row.name}`,
    name: row.name,
    count: row.memories,
    way: { source: row.name },
    filters: {},
  });
  const by = (row: Schemas["SourceActivity"]): Offer => ({
    title: `${allOf(row.memories)} that ${row.name} wrote`,
    name: row.name,
    count: row.memories,
    filters: { author: row.name },
    person: row.name.startsWith("user:"),
  });
  const subjects = facets?.facets["subject"] ?? whole([]);
  const { actors, sources: kinds, references } = sources ?? NO_SOURCES;
  const offers = [
    ...subjects.shown.map(about),
    ...users.map(kept("users")),
    ...projects.map(kept("projects")),
    ...actors.shown.map(by),
    ...kinds.shown.map(from),
    ...references.shown.map(from),
  ];
  const isWhole = [subjects, actors, kinds, references].every((list) => list.isWhole);
  return new Listed(offers, isWhole ? offers.length : undefined);
}

const NO_SOURCES: Pick<Found<"/memory/sources">, "actors" | "sources" | "references"> = {
  actors: whole([]),
  sources: whole([]),
  references: whole([]),
};

/** Whether an offer is meant by a name before anybody ticks it. */
export function isMeant(offer: Offer, name: string): boolean {
  const sought = name.toLowerCase();
  const own = offer.name.toLowerCase();
  return (
    own === sought ||
    (offer.person === true && own === `user:${sought}`) ||
    (offer.person === true && sought === `user:${own}`)
  );
}

export const ALL = { below: true, include_ended: true } as const;

/** Return the ids of what some filters find. */
async function idsOf(filters: Offer["filters"]): Promise<Answer<Listed<string>>> {
  const found = await get("/memory/items", {
    params: { query: { ...ALL, ...filters, limit: MOST, include_sensitive: true } },
  });
  return found.ok ? { ...found, data: found.data.items.map((memory) => memory.id) } : found;
}

/** Return what is ticked as one selection: the first subject or source by its name, everything else by ids. */
export async function selected(offers: readonly Offer[], ids: readonly string[]): Promise<Answer<Selection>> {
  const named = offers.find((offer) => offer.way);
  const others = new Set(ids);
  let left = 0;
  for (const offer of offers) {
    if (offer === named) continue;
    const filters = offer.way && "source" in offer.way ? null : offer.filters;
    const found = filters ? await idsOf(filters) : await fromSource(offer.name);
    if (!found.ok) return found;
    for (const id of found.data.shown) others.add(id);
    left += found.data.left ?? 0;
  }
  const rest = [...others].slice(0, MOST);
  left += others.size - rest.length;
  if (left)
    say(`A plan names at most ${MOST} ids. Erase these, then choose the other ${left.toLocaleString()}.`, {
      tone: "bad",
    });
  const data: Selection = named?.way ? { ...named.way, also: rest } : { ids: rest.join(" ") };
  return { ok: true, status: 200, etag: null, data };
}

/** Return the ids of what came from a source, by its class or by its address. */
async function fromSource(source: string): Promise<Answer<Listed<string>>> {
  const found = await ask(api.GET("/memory/impact", { params: { query: { source } } }));
  return found.ok ? { ...found, data: whole(found.data.direct.map((memory) => memory.id)) } : found;
}
