/** Memories: one search by words and meaning, or all of them with facets, at any commit. */

import "./memories/memories.css";
import { useCallback, useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../address";
import { addressOf, type Schemas } from "../api";
import { filterCount, filtersOf, searched } from "../browse";
import { noteOf } from "../contexts";
import { useGet } from "../load";
import { Button } from "../parts/Button";
import { Facets } from "../parts/Facets";
import { Page } from "../parts/Page";
import { Shown } from "../parts/States";
import { said } from "../parts/seen";
import { AsOf } from "./memories/AsOf";
import { Browser } from "./memories/Browser";
import { Filters } from "./memories/Filters";
import { Results, facetsOf, useFindings } from "./memories/Results";
import { Saved } from "./memories/Saved";
import { Search } from "./memories/Search";
import { Selection } from "./memories/Selection";
import { FOUND, MOST } from "./memories/picked";

type Memory = Schemas["Record"];

export function Memories() {
  const address = useAddress();
  const query = filtersOf(address);
  const asked = address.get("q");
  const { as_of: _, ...now } = query;
  const facets = useGet(query.as_of || asked ? null : "/memory/facets", { params: { query: now } });
  const found = useFindings(query, asked);
  // The words for which what only lies near is shown, too.
  const [wide, setWide] = useState<string | null>(null);
  const listed = wide === asked ? (found.shown?.findings ?? []) : found.sure;
  const [selected, setSelected] = useState<ReadonlyMap<string, Memory>>(new Map());
  const [more, setMore] = useState(false);
  const [cursor, setCursor] = useState(-1);
  const name = JSON.stringify([query, asked]);
  useEffect(() => setCursor(-1), [name]);
  const turn = useCallback((each: Memory) => {
    setSelected((before) => {
      const next = new Map(before);
      if (!next.delete(each.id) && next.size < MOST) next.set(each.id, each);
      return next;
    });
  }, []);
  const count = filterCount(address);
  const total = facets.data?.total;
  const json = asked
    ? addressOf("/memory/search", { params: { query: searched(query, asked) } })
    : addressOf("/memory/items", { params: { query: { ...query, offset: 0 } } });
  return (
    <Page
      title="Memories"
      lede={
        asked
          ? "by words and meaning, best first"
          : total === undefined
            ? ""
            : `${total.toLocaleString()}${count ? " found" : query.include_ended ? " in all" : " active"}${query.as_of ? ", as it was" : ""}`
      }
      json={json}
      actions={
        asked ? (
          <Link class="btn sm quiet" href={`/recall?${new URLSearchParams({ q: asked })}`}>
            Why in this order?
          </Link>
        ) : null
      }
    >
      <div class="memories-top">
        <Search
          address={address}
          current={asked && cursor >= 0 ? `${FOUND}-${cursor}` : undefined}
          onWrite={() => setCursor(-1)}
        />
        <AsOf address={address} />
      </div>
      <div class="memories">
        <aside class={more ? "open" : ""} aria-label="Filters">
          <Button small class="narrow-only" aria-expanded={more} onClick={() => setMore(!more)}>
            {count ? `Filters (${count})` : "Filters"}
          </Button>
          <div class="memory-filters">
            <Saved />
            <Filters address={address} count={count} />
            {query.as_of && !asked ? (
              <p class="soft small">Counts are of the present: choose “Now” to filter by them.</p>
            ) : null}
            {asked && found.shown && !found.shown.isWhole ? (
              <p class="soft small">Counts are of the {listed.length.toLocaleString()} memories that are shown.</p>
            ) : null}
            {asked ? (
              <Facets found={facetsOf(listed.map(({ memory }) => memory))} address={address} query={now} />
            ) : (
              <Shown of={facets}>{(data) => <Facets found={data} address={address} query={now} />}</Shown>
            )}
          </div>
        </aside>
        <div class="memories-main">
          {facets.data?.notes.map((note) => (
            <p key={note} class="soft small">
              {said(noteOf(note))}
            </p>
          ))}
          {asked ? (
            <Results
              query={query}
              found={found}
              wide={wide === asked}
              onWide={() => setWide(asked)}
              selected={selected}
              turn={turn}
              cursor={cursor}
              onCursor={setCursor}
            />
          ) : (
            <Browser
              address={address}
              query={query}
              selected={selected}
              turn={turn}
              cursor={cursor}
              onCursor={setCursor}
            />
          )}
          {selected.size ? (
            <Selection
              selected={selected}
              clear={() => setSelected(new Map())}
              query={query}
              choose={setSelected}
              total={asked ? undefined : total}
            />
          ) : null}
        </div>
      </div>
    </Page>
  );
}
