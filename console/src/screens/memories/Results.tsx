/** What a search finds: first what contains the words, then what means much the same. */

import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";
import { go } from "../../address";
import type { Problem, Schemas } from "../../api";
import { FACETS, NOT_IN_SEARCH, searched, type Facet, type Query } from "../../browse";
import { useKeys } from "../../keys";
import { commits } from "../../events";
import { whole } from "../../listed";
import { useGet, type Found as Answered } from "../../load";
import { Button } from "../../parts/Button";
import { counted } from "../../parts/Contain";
import { MemorySummary } from "../../parts/MemorySummary";
import { MemoryText } from "../../parts/MemoryText";
import { Said } from "../../parts/Said";
import { Empty, Failed, Loading } from "../../parts/States";
import { Tag } from "../../parts/Tag";
import { said, seen } from "../../parts/seen";
import { FOUND, isInList, placeOf, type Cursor, type Picked } from "./picked";

type Memory = Schemas["Record"];
type LoadedFacets = Answered<"/memory/facets">;

// Memories that are looked for by a part of their text, and the longest text that is looked for so.
const CONTAINING = 50;
const LONGEST = 1_000;

/** A memory that was found, and by what. */
interface Finding {
  memory: Memory;
  why: string;
  weak: boolean;
}

/** What is on screen, and for which words. */
interface Found {
  asked: string;
  findings: Finding[];
  /** Whether these are all that there is. */
  isWhole: boolean;
  /** How many memories contain the words; undefined while it is not known. */
  saying: number | undefined;
  notes: readonly string[];
}

/** Return what contains the words first, in the order of the search, and then what the search found beside it. */
function merged(asked: string, hits: readonly Schemas["Hit"][], containing: readonly Memory[]): Finding[] {
  // What is found by words is here first; what else contains them comes behind it when it is read.
  const words = asked.toLowerCase();
  const saying = hits.filter((hit) => hit.memory.text.toLowerCase().includes(words)).map((hit) => hit.memory);
  const says = new Set([...containing, ...saying].map((each) => each.id));
  const found = new Set(hits.map((each) => each.memory.id));
  const byHit = (hit: Schemas["Hit"]): Finding => ({
    memory: hit.memory,
    why: `found by ${hit.why.join(" and ") || "its place"}`,
    weak: hit.weak,
  });
  return [
    ...hits.filter((hit) => says.has(hit.memory.id)).map(byHit),
    ...containing.filter((each) => !found.has(each.id)).map((memory) => ({ memory, why: "says it", weak: false })),
    ...hits.filter((hit) => !says.has(hit.memory.id)).map(byHit),
  ];
}

/** Return what marks the words of a search; null where it has none. */
function marksOf(asked: string): RegExp | null {
  const words = asked.match(/[\p{L}\p{N}]{3,}/gu)?.slice(0, 20) ?? [];
  return words.length ? new RegExp(`(${words.join("|")})`, "giu") : null;
}

/** Whether a memory passes the filters that a search does not take. */
function passes(memory: Memory, query: Query): boolean {
  return NOT_IN_SEARCH.every((name) => {
    const wanted = (query as Record<string, readonly string[] | undefined>)[name];
    return !wanted || wanted.includes(memory[name]);
  });
}

/** What a search came to. */
export interface Findings {
  /** What is on screen; null before the first answer. */
  shown: Found | null;
  /** The answers are for the words on screen. */
  isNow: boolean;
  sure: readonly Finding[];
  problem: Problem | undefined;
  retry: () => void;
}

/** Search for words, and for texts that contain them; what was found stays while one types on. */
export function useFindings(query: Query, asked: string): Findings {
  const { query: _, limit: __, ...narrowed } = searched(query, asked);
  const others = Object.fromEntries(NOT_IN_SEARCH.map((name) => [name, query[name]]));
  const follow = query.as_of ? null : commits;
  const found = useGet(asked ? "/memory/search" : null, { params: { query: searched(query, asked) } }, follow);
  const containing = useGet(
    !asked || asked.length > LONGEST ? null : "/memory/items",
    {
      params: {
        query: {
          ...narrowed,
          ...others,
          include_ended: query.include_ended,
          text: asked,
          limit: CONTAINING,
          below: true,
        },
      },
    },
    follow,
  );
  // What was found by words is shown at once: to look through all texts takes longer in a large store.
  const now: Found | null = found.data
    ? {
        asked,
        findings: merged(
          asked,
          found.data.hits.shown.filter((hit) => passes(hit.memory, query)),
          containing.data?.items.shown ?? [],
        ),
        isWhole: found.data.hits.isWhole && (asked.length > LONGEST || containing.data?.items.isWhole === true),
        saying: containing.data?.items.total,
        notes: found.data.notes,
      }
    : null;
  const isWaiting = asked.length <= LONGEST && !containing.data && !containing.problem;
  const last = useRef<Found | null>(null);
  if (now) last.current = now;
  const shown = asked ? (now ?? last.current) : null;
  const all = shown?.findings ?? [];
  // What only lies near is for who asks for it, unless there is nothing else.
  const sure = all.some((finding) => !finding.weak) ? all.filter((finding) => !finding.weak) : all;
  const problem = found.data ? undefined : found.problem;
  return { shown, isNow: now !== null && !isWaiting, sure, problem, retry: found.reload };
}

/** Return what was found and how many there are, as a sentence. */
export function foundWords({ asked, isWhole, saying }: Omit<Found, "findings" | "notes">, shown: number): string {
  const number = `${shown.toLocaleString()}${isWhole ? "" : "+"} ${shown === 1 && isWhole ? "memory" : "memories"} found`;
  if (isWhole || saying === undefined) return number;
  return `${number}; ${saying.toLocaleString()} ${saying === 1 ? "says" : "say"} “${asked}”`;
}

/** Return how many of some memories have each value of a facet, as the store counts its own. */
export function facetsOf(memories: readonly Memory[]): LoadedFacets {
  const facets = Object.fromEntries(
    FACETS.map(({ name }) => {
      const counts = new Map<string, number>();
      for (const memory of memories) {
        for (const value of valuesOf(memory, name)) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      const order = [...counts].sort(([one, few], [other, many]) => many - few || one.localeCompare(other));
      return [name, whole(order.map(([value, count]) => ({ value, count })))];
    }),
  );
  return { head: "", seq: 0, total: memories.length, facets, notes: [] };
}

function valuesOf(memory: Memory, facet: Facet["name"]): readonly string[] {
  if (facet === "tag") return memory.tags;
  const value = facet === "author" ? memory.text_by : memory[facet];
  return value ? [value] : [];
}

interface Props extends Picked, Cursor {
  query: Query;
  found: Findings;
  /** Whether what only lies near is shown, too. */
  wide: boolean;
  onWide: () => void;
}

export function Results({ query, found, wide, onWide, selected, turn, cursor, onCursor }: Props) {
  const { shown, isNow, sure } = found;
  const all = shown?.findings ?? [];
  const findings = wide ? all : sure;
  const here = findings[cursor];
  const step = (by: number) => onCursor(Math.max(0, Math.min(findings.length - 1, cursor + by)));
  const inList = (by: number) => (event: KeyboardEvent) => (isInList(event) ? step(by) : false);
  useEffect(() => {
    document.getElementById(`${FOUND}-${cursor}`)?.scrollIntoView({ block: "nearest" });
  }, [cursor]);
  useKeys("Memories", {
    j: { does: "Next", run: () => step(1) },
    k: { does: "The one before", run: () => step(-1) },
    x: { does: "Select, or not any more", run: () => here && turn(here.memory) },
    ArrowDown: { does: "Next, from the search or in the list", run: inList(1) },
    ArrowUp: { does: "The one before, in the list", run: inList(-1) },
    Enter: { does: "Open", run: () => (here ? go(placeOf(here.memory, query.as_of)) : false) },
  });
  if (found.problem) return <Failed problem={found.problem} retry={found.retry} />;
  if (!shown) return <Loading />;
  if (!findings.length)
    return (
      <div class="card">
        <Empty
          title={isNow ? (shown.isWhole ? "Nothing is found" : "Nothing of the best passes the filters") : "Looking…"}
        >
          {shown.notes.map((note) => (
            <p key={note}>{said(note)}</p>
          ))}
        </Empty>
      </div>
    );
  const marks = marksOf(shown.asked);
  return (
    <section class="card" aria-label="Found" aria-busy={!isNow}>
      <p class="memory-head small soft line">
        <span>
          {seen(foundWords(shown, findings.length))}.
          {shown.notes.map((note) => (
            <> {said(note)}.</>
          ))}
        </span>
      </p>
      <div class="found-hits" role="grid" id={FOUND} aria-label="Memories that were found">
        {findings.map(({ memory, why, weak }, at) => (
          <div
            key={memory.id}
            id={`${FOUND}-${at}`}
            role="row"
            aria-selected={at === cursor}
            class={`found-hit ${at === cursor ? "on" : ""} ${selected.has(memory.id) ? "picked" : ""}`}
          >
            <span role="gridcell">
              <input
                type="checkbox"
                checked={selected.has(memory.id)}
                onChange={() => turn(memory)}
                aria-label={`Select ${memory.text.slice(0, 60)}`}
              />
            </span>
            <div class="stack" role="gridcell">
              <Link href={placeOf(memory, query.as_of)} class="memory-link">
                <MemoryText text={memory.text} limit={600} marks={marks} />
              </Link>
              <div class="line small soft">
                <MemorySummary memory={memory} />
                <Said memory={memory} />
                <span>· {why}</span>
                {weak ? <Tag tone="warn">unsure</Tag> : null}
              </div>
            </div>
          </div>
        ))}
      </div>
      {findings.length < all.length ? (
        <p class="memory-head">
          <Button small tone="quiet" onClick={onWide}>
            Show {counted(all.length - findings.length, "more that hardly fits", "more that hardly fit")}
          </Button>
        </p>
      ) : null}
    </section>
  );
}
