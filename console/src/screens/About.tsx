/** Everything about one name: what is believed, what disagrees, what it said, where it is named, and how all of it goes. */

import "./sources.css";
import { Link } from "wouter-preact";
import { useAddress } from "../address";
import { addressOf, type Schemas } from "../api";
import { everywhere, listOf } from "../browse";
import { useGet, type Loaded } from "../load";
import { mayChange } from "../session";
import { Page } from "../parts/Page";
import { Empty, Shown } from "../parts/States";
import { seen, written } from "../parts/seen";
import { Delivered, Proposed } from "./about/Acts";
import { Disagreements } from "./about/Disagreements";
import { Export } from "./about/Export";
import { Head } from "./about/Head";
import { Prompts } from "./about/Prompts";
import { Statement } from "./about/Statement";
import { namedBy, parted, type Named } from "./about/names";
import { Detail, Unknown } from "./Sources";

type Memory = Schemas["Record"];

// Memories that are shown of each sort; the link beside them has all.
const SHOWN = 20;
const QUERY = { below: true, limit: SHOWN } as const;

export function About() {
  const name = useAddress().get("name");
  return (
    <Page
      title={name ? written(name) : "About"}
      lede="everything about this name"
      json={addressOf("/memory/items", { params: { query: { below: true, text: parted(name)[1] } } })}
      actions={
        <>
          <Export name={name} />
          <Erase name={name} />
        </>
      }
    >
      {name ? (
        <section aria-label={`About ${written(name)}`}>
          <Everything key={name} name={name} />
        </section>
      ) : (
        <Empty title="No name is given" />
      )}
    </Page>
  );
}

/** The way to erase what there is of a name. */
export function Erase({ name }: { name: string }) {
  if (!name || !mayChange()) return null;
  return (
    <Link class="btn sm no" href={`/erase?${new URLSearchParams({ who: name })}`}>
      Erase for good…
    </Link>
  );
}

/** Return the scopes of some memories, each once. */
function scopesOf(memories: readonly Memory[]): string[] {
  return [...new Set(memories.map((memory) => memory.scope))].sort();
}

/** All that is known under a name; each part is drawn where there is something of it. */
export function Everything({ name }: { name: string }) {
  const [, bare] = parted(name);
  const sources = useGet("/memory/sources", { params: { query: { below: true, name: bare } } });
  const facets = useGet("/memory/facets", { params: { query: { below: true, of: ["subject"], name: bare } } });
  return (
    <div class="about">
      <Shown of={sources}>
        {(found) => (
          <Shown of={facets}>
            {(counts) => <Parts name={name} named={namedBy(name, found, counts.facets["subject"]?.shown ?? [])} />}
          </Shown>
        )}
      </Shown>
    </div>
  );
}

function Parts({ name, named }: { name: string; named: Named }) {
  const { bare, subjects, origins, scopes } = named;
  const subject = subjects[0];
  const believed = useGet(subject ? "/memory/items" : null, { params: { query: { ...QUERY, subject } } });
  const [first, second, third] = scopes;
  const kept = [
    useGet(first ? "/memory/items" : null, { params: { query: { ...QUERY, within: first } } }),
    useGet(second ? "/memory/items" : null, { params: { query: { ...QUERY, within: second } } }),
    useGet(third ? "/memory/items" : null, { params: { query: { ...QUERY, within: third } } }),
  ];
  // Pages and files are not named in texts as people are.
  const person = !origins.some(({ list }) => list !== "actors");
  const naming = useGet(person ? "/memory/items" : null, { params: { query: { ...QUERY, text: bare } } });
  const spoken = useGet(person ? "/memory/search" : null, {
    params: { query: { query: bare, limit: 100, within: everywhere() } },
  });
  const shown = new Set<string>();
  const fresh = (memories: readonly Memory[]) => {
    const left = memories.filter((memory) => !shown.has(memory.id));
    for (const memory of left) shown.add(memory.id);
    return left;
  };
  const speaking = (spoken.data?.hits.shown ?? [])
    .map((hit) => hit.memory)
    .filter((memory) => memory.speaker?.toLowerCase() === bare.toLowerCase());
  const parts = [
    {
      title: "What is believed",
      of: fresh(believed.data?.items.shown ?? []),
      all: listOf({ subject: subject ?? "" }),
      left: believed.data?.items.left,
      found: believed,
    },
    ...kept.map((found, at) => ({
      title: `What is kept in ${scopes[at]}`,
      of: fresh(found.data?.items.shown ?? []),
      all: listOf({ within: scopes[at] ?? "" }),
      left: found.data?.items.left,
      found,
    })),
    { title: "What others wrote down as said", of: fresh(speaking), all: "", left: 0, found: spoken },
    {
      title: "Where the name is mentioned",
      of: fresh(naming.data?.items.shown ?? []),
      all: listOf({ q: bare }),
      left: naming.data?.items.left,
      found: naming,
    },
  ];
  const read = [believed, ...kept, naming, spoken].every((each) => !each.loading);
  const ids = [...shown];
  const problem = parts.some(({ found }) => found.problem);
  // An actor that proposed and wrote nothing that is kept has commits and proposals all the same.
  const unlisted = parted(name)[0] !== "" && !origins.length;
  // Who proposes and asks, by kind and name.
  const actor = parted(name)[0] ? name : origins.find(({ list }) => list === "actors")?.row.name;
  const places = scopes.filter((_, at) => kept[at]?.data?.items.isEmpty === false);
  return (
    <>
      <Head name={name} named={named} places={places} />
      {ids.length || problem || !read || !origins.length || actor ? (
        <div class="stack">
          {subject ? <Disagreements subject={subject} scopes={scopesOf(believed.data?.items.shown ?? [])} /> : null}
          {parts.map(({ title, of, all, found, left }) =>
            found.problem ? (
              <Shown key={title} of={found as Loaded<unknown>}>
                {() => null}
              </Shown>
            ) : of.length ? (
              <section key={title} class="card pad stack" aria-label={title}>
                <div class="line">
                  <h2>{seen(title)}</h2>
                  <span class="spread" />
                  {all ? (
                    <Link class="small" href={all}>
                      All of it
                    </Link>
                  ) : null}
                </div>
                <ul class="plain-list boxed" aria-label={title} tabIndex={0}>
                  {of.slice(0, SHOWN).map((memory) => (
                    <li key={memory.id}>
                      <Statement memory={memory} />
                    </li>
                  ))}
                  {left ? <li class="soft small">and {left.toLocaleString()} more</li> : null}
                </ul>
              </section>
            ) : null,
          )}
          {person && actor ? <Proposed name={actor} /> : null}
          {person && actor ? <Delivered name={actor} /> : null}
          {ids.length ? <Prompts ids={ids.slice(0, SHOWN)} /> : null}
          {unlisted && read ? <Unknown list="actors" name={name} /> : null}
          {read && !ids.length && !origins.length && !unlisted ? (
            <div class="card">
              <Empty title="Nothing is known under this name">
                <Link href={listOf({ q: bare })}>Search for it</Link>
              </Empty>
            </div>
          ) : null}
        </div>
      ) : null}
      {origins.length ? (
        <div class="stack">
          {origins.map(({ list, row }) => (
            <Detail key={`${list} ${row.name}`} list={list} row={row} />
          ))}
        </div>
      ) : null}
    </>
  );
}
